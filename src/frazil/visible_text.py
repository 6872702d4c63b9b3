"""Escape characters that could manipulate a terminal.

Names, comments and values of a table may be untrusted. Errors, reports, progress lines and all output of the terminal
commands go through `visible`.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_OR_LINES = re.compile(f"[\t\n\u2028\u2029]|{_UNSAFE.pattern}")


def visible(text: str, *, keeps_lines: bool = False) -> str:
    """Return the text with control characters, marks of bidirectional text and surrogates escaped.

    With `keeps_lines`, line ends and tabs stay as they are.
    """
    pattern = _UNSAFE if keeps_lines else _UNSAFE_OR_LINES
    return pattern.sub(lambda match: repr(match[0])[1:-1], text)
