"""Strict and bounded parsing and encoding of JSON text, used by every codec whose files are JSON.

Refused, because readers could disagree about it or because it could exhaust memory: duplicate keys, NaN and Infinity,
numbers that fit no 64-bit type, text that is not UTF-8 or not Unicode (lone surrogates), a byte order mark, anything
after the document, nesting deeper than `MAX_DEPTH`, more values than a text of its length should hold.

The parser (msgspec) refuses all of it except duplicate keys, of which it keeps the last, and deep nesting, which it
bounds by the stack. Duplicates show in the number of strings: a text without backslashes holds two quotes per string,
so if it holds more than the value's keys and strings account for, a key was dropped. That check runs at the speed of
`bytes.count`; only a text with backslashes, or one that fails the check, is parsed again to find the key.
"""

from __future__ import annotations

import codecs
import json
from typing import Any, Final

import msgspec

from frazil.errors import CorruptTableError, InvalidMetadataError, InvalidRequestError

MAX_DEPTH: Final = 640
"""How deep objects and lists may nest: enough for the deepest types, at three JSON levels each."""

_FREE_CONTAINERS: Final = 200_000
_BYTES_PER_CONTAINER: Final = 16
_FREE_VALUES: Final = 1_000_000
_BYTES_PER_VALUE: Final = 3
"""How densely a text may hold objects, lists and values, each of which takes far more memory than text."""

_UTF8_CHUNK = 1 << 20
_COUNT_CHUNK = 1 << 18
_decode_any = msgspec.json.Decoder().decode
_decode_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def parse_json(
    text: bytes, *, where: str = "", heading: str, error: type[CorruptTableError] = InvalidMetadataError
) -> Any:
    """Return the value of a JSON document, or of the part of one whose path is `where`."""
    reader = _Reader(where, heading, error)
    reader.check_text(text)
    return reader.parse(text)


def split_json_object(
    text: bytes, *, heading: str, error: type[CorruptTableError] = InvalidMetadataError
) -> dict[str, msgspec.Raw]:
    """Return the fields of a JSON object as raw text, for callers that read one field at a time.

    The text of each field is a view of the whole and is well-formed JSON, but duplicate keys inside it are
    only found when it is parsed (`parse_json`).
    """
    reader = _Reader("", heading, error)
    reader.check_text(text)
    parts: dict[str, msgspec.Raw] = reader.decode(_decode_parts, text)
    # Without spaces and escapes, the fields have exactly this length; a duplicate adds to it.
    length = 1 + sum(len(key.encode()) + 4 + memoryview(value).nbytes for key, value in parts.items())
    if length != len(text):
        counts = [count_plain_strings(value) for value in (text, *parts.values())]
        if None in counts or counts[0] != len(parts) + sum(count or 0 for count in counts[1:]):
            reader.refuse_duplicates(text)
    return parts


def encode_json(value: object) -> bytes:
    """Return the JSON text of a value, without spaces."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as problem:
        raise InvalidRequestError(f"Cannot write JSON: {_first_line(problem)}") from problem


def check_value_count(
    text: bytes, max_values: int, *, heading: str, error: type[CorruptTableError] = InvalidMetadataError
) -> None:
    """Refuse a text that may hold too many values: a highly compressed one need not fit in memory."""
    # Each value but the first of a container follows a comma, the first an opening bracket.
    count = text.count(b",") + text.count(b"{") + text.count(b"[")
    if count > max_values:
        raise error(
            f"Cannot read the document: it holds up to {count} values, more than the {max_values} that a file of "
            "its size may hold",
            heading=heading,
        )


def count_plain_strings(text: bytes | msgspec.Raw) -> int | None:
    """Return how many strings, including keys, a well-formed JSON text holds, or None if it has backslashes."""
    view = memoryview(text)
    quotes = 0
    for start in range(0, view.nbytes, _COUNT_CHUNK):
        chunk = bytes(view[start : start + _COUNT_CHUNK])
        if b"\\" in chunk:
            return None
        quotes += chunk.count(b'"')
    return quotes // 2


class DuplicateKey(Exception):
    """A key that occurs twice in an object."""


class _Reader:
    """A parser of one text; errors name its path."""

    __slots__ = ("_error", "_heading", "_where")

    def __init__(self, where: str, heading: str, error: type[CorruptTableError]) -> None:
        self._where = where or "the document"
        self._heading = heading
        self._error = error

    def fail(self, reason: str) -> CorruptTableError:
        return self._error(f"Cannot read {self._where}: {reason}", heading=self._heading)

    def check_text(self, text: bytes) -> None:
        if not text or text.isspace():
            raise self.fail("it is empty")
        if text.startswith(codecs.BOM_UTF8):
            raise self.fail("it starts with a byte order mark, which JSON does not allow")
        containers, values = text.count(b"[") + text.count(b"{"), text.count(b",")
        if (
            containers > _FREE_CONTAINERS + len(text) // _BYTES_PER_CONTAINER
            or values > _FREE_VALUES + len(text) // _BYTES_PER_VALUE
        ):
            raise self.fail(f"it holds {containers + values} values in {len(text)} bytes, which is too many to be read")
        if text.isascii():
            return
        decoder = codecs.getincrementaldecoder("utf-8")()
        view = memoryview(text)
        try:
            for start in range(0, len(text), _UTF8_CHUNK):
                decoder.decode(view[start : start + _UTF8_CHUNK])
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as problem:
            raise self.fail(f"it is not UTF-8 text: {problem.reason}") from problem

    def decode(self, decoder: Any, text: bytes) -> Any:
        try:
            return decoder(text)
        except msgspec.DecodeError as problem:
            raise self.fail(f"it is not JSON as expected: {_first_line(problem)}") from problem
        except RecursionError as problem:
            raise self.fail(f"it is nested deeper than {MAX_DEPTH} levels") from problem

    def parse(self, text: bytes) -> Any:
        value = self.decode(_decode_any, text)
        strings = self._count_strings(value)
        if count_plain_strings(text) != strings:
            self.refuse_duplicates(text)
        return value

    def refuse_duplicates(self, text: bytes) -> None:
        try:
            json.loads(text.decode(), object_pairs_hook=_unique, parse_int=_ignore, parse_float=_ignore)
        except DuplicateKey as problem:
            raise self.fail(f"an object has the key {problem} twice") from problem
        except RecursionError as problem:
            raise self.fail(f"it is nested deeper than {MAX_DEPTH} levels") from problem

    def _count_strings(self, value: Any) -> int:
        """Return how many keys and strings a value holds, refusing one with too many levels."""
        strings = 0
        level = [value]
        depth = 0
        while level:
            children: list[Any] = []
            for item in level:
                if isinstance(item, dict):
                    strings += len(item)
                    children += item.values()
                elif isinstance(item, list):
                    children += item
                elif isinstance(item, str):
                    strings += 1
            depth += 1
            if depth > MAX_DEPTH + 1:
                raise self.fail(f"it is nested deeper than {MAX_DEPTH} levels")
            level = children
        return strings


def _unique(pairs: list[tuple[str, Any]]) -> None:
    keys: set[str] = set()
    for key, _ in pairs:
        if key in keys:
            text = repr(key)
            raise DuplicateKey(text if len(text) <= 60 else text[:57] + "...")
        keys.add(key)


def _ignore(_: str) -> None:
    """Stand in for number parsing, which is wasted time when only keys matter."""


def _first_line(problem: BaseException) -> str:
    return str(problem).partition("\n")[0][:200] or type(problem).__name__
