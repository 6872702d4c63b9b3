"""Normalized JSON paths, which name fields of a variant. Specification: "Bounds for Variant".

A normalized path is the unique RFC 9535 form of a location in a JSON value: `$`, then each name as `['name']` and each
index as `[0]`. Bounds of variants are keyed by such paths, without indexes, since the bounds of an array's values
cover all of its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from frazil.errors import InvalidRequestError, TextSyntaxError

HEADING = "Bounds for Variant"
ROOT = "$"

_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "'": "\\'", "\\": "\\\\"}
_ESCAPES = {**{chr(code): f"\\u{code:04x}" for code in range(0x20)}, **_SHORT_ESCAPES}
_UNESCAPES = {escaped: char for char, escaped in _ESCAPES.items()}
_NEEDS_ESCAPE = re.compile(r"[\x00-\x1f'\\]")
_ESCAPED = re.compile(r"\\(?:u00[01][0-9a-f]|[btnfr'\\])")
_STEP = re.compile(rf"\['((?:[^\x00-\x1f'\\\ud800-\udfff]|{_ESCAPED.pattern})*)'\]|\[(0|[1-9][0-9]{{0,15}})\]")


def parse_json_path(text: str) -> tuple[str | int, ...]:
    """Parse a normalized path into its names and indexes; the root has none."""
    if not text.startswith(ROOT):
        raise _syntax_error(text, 0)
    parts: list[str | int] = []
    offset = len(ROOT)
    while offset < len(text):
        match = _STEP.match(text, offset)
        if match is None:
            raise _syntax_error(text, offset)
        if match[2] is not None:
            parts.append(int(match[2]))
        else:
            name = _ESCAPED.sub(_unescape, match[1])
            if format_json_path((name,)) != f"{ROOT}{match[0]}":  # such as \u000a, whose one form is \n
                raise _syntax_error(text, offset)
            parts.append(name)
        offset = match.end()
    return tuple(parts)


def format_json_path(parts: Iterable[str | int]) -> str:
    """Return the normalized path of names and indexes."""
    steps = [ROOT]
    for step in parts:
        if isinstance(step, int):
            if step < 0:
                raise InvalidRequestError(f"Cannot write the path: the index {step} is negative", heading=HEADING)
            steps.append(f"[{step}]")
        else:
            if not step.isascii() and any("\ud800" <= char <= "\udfff" for char in step):
                raise InvalidRequestError(
                    f"Cannot write the path: {step[:40]!r} has half a surrogate pair", heading=HEADING
                )
            steps.append(f"['{_NEEDS_ESCAPE.sub(lambda match: _ESCAPES[match[0]], step)}']")
    return "".join(steps)


def _unescape(match: re.Match[str]) -> str:
    return _UNESCAPES.get(match[0], "\ufffd")


def _syntax_error(text: str, offset: int) -> TextSyntaxError:
    return TextSyntaxError(
        f"Cannot parse the path {text[:80]!r}: it is not a normalized JSON path from character {offset}",
        hint="Normalized paths look like $['location']['latitude'].",
        heading=HEADING,
    )
