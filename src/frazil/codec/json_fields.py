"""Strict reading of JSON objects: a missing or ill-typed field is an error with its path.

A `JsonObject` wraps one decoded object, returns type-checked fields, records which were read, and returns the rest as
`extra`, so that unrecognised fields survive a read and a write. Errors name the field by its path
(`schemas[1].fields[0].id`) and the specification's heading.

JSON has one kind of number; the specification's `int` is 32 bits and its `long` 64 bits, both checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from frazil.errors import CorruptTableError, InvalidMetadataError
from frazil.spec.frozen_map import NO_EXTRA, FrozenMap

T = TypeVar("T")

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


_MISSING: Any = object()


class JsonObject:
    """A JSON object being read; `where` is its path from the document's root, "" for the root itself."""

    __slots__ = ("_error", "_heading", "_seen", "_values", "where")

    def __init__(
        self,
        value: object,
        *,
        where: str = "",
        heading: str,
        error: type[CorruptTableError] = InvalidMetadataError,
    ) -> None:
        self.where = where
        self._heading = heading
        self._error = error
        self._seen: set[str] = set()
        if not isinstance(value, dict):
            raise self.fail(f"expected an object, found {_kind(value)}")
        self._values: dict[str, Any] = value

    @property
    def heading(self) -> str:
        """The specification's heading for errors."""
        return self._heading

    @property
    def error(self) -> type[CorruptTableError]:
        """The class of errors about this object."""
        return self._error

    def fail(self, reason: str, *, field: str | None = None) -> CorruptTableError:
        """Return (not raise) the error for this object, or for one of its fields."""
        path = self.path_of(field) if field is not None else (self.where or "the document")
        return self._error(f"Cannot read {path}: {reason}", heading=self._heading)

    def path_of(self, field: str) -> str:
        """Return the path of one of this object's fields."""
        return f"{self.where}.{field}" if self.where else field

    def __contains__(self, field: str) -> bool:
        return self._values.get(field) is not None

    def keys(self) -> Iterator[str]:
        """Return the names of all fields, including null ones."""
        return iter(self._values)

    def values(self) -> dict[str, Any]:
        """Return all fields as decoded, unchecked."""
        return self._values

    def raw(self, field: str, default: Any = None) -> Any:
        """Return a field as decoded, unchecked."""
        self._seen.add(field)
        return self._values.get(field, default)

    def _take(self, field: str, expected: str, default: Any, check: Callable[[Any], bool]) -> Any:
        self._seen.add(field)
        value = self._values.get(field)
        if value is None:
            if default is _MISSING:
                raise self.fail("the required field is missing", field=field)
            return default
        if not check(value):
            raise self.fail(f"expected {expected}, found {_kind(value)}", field=field)
        return value

    def int32(self, field: str, default: Any = _MISSING) -> Any:
        """Return a 32-bit integer field; required unless a default is given."""
        value = self._take(field, "an integer", default, _is_int)
        if _is_int(value) and not INT_MIN <= value <= INT_MAX:
            raise self.fail(f"{_shown(value)} does not fit 32 bits", field=field)
        return value

    def int64(self, field: str, default: Any = _MISSING) -> Any:
        """Return a 64-bit integer field; required unless a default is given."""
        value = self._take(field, "an integer", default, _is_int)
        if _is_int(value) and not LONG_MIN <= value <= LONG_MAX:
            raise self.fail(f"{_shown(value)} does not fit 64 bits", field=field)
        return value

    def string(self, field: str, default: Any = _MISSING) -> Any:
        """Return a string field; required unless a default is given."""
        return self._take(field, "a string", default, lambda value: isinstance(value, str))

    def boolean(self, field: str, default: Any = _MISSING) -> Any:
        """Return a boolean field; required unless a default is given."""
        return self._take(field, "a boolean", default, lambda value: isinstance(value, bool))

    def list(self, field: str, default: Any = _MISSING) -> Any:
        """Return a list field as decoded; required unless a default is given."""
        return self._take(field, "a list", default, lambda value: isinstance(value, list))

    def object(self, field: str) -> JsonObject:
        """Return a required object field as a `JsonObject`."""
        value = self._take(field, "an object", _MISSING, lambda value: isinstance(value, dict))
        return JsonObject(value, where=self.path_of(field), heading=self._heading, error=self._error)

    def objects(self, field: str, default: Any = _MISSING) -> Any:
        """Return a list of objects as `JsonObject`s; required unless a default is given."""
        values = self.list(field, default)
        if not isinstance(values, list):
            return values
        return [
            JsonObject(value, where=f"{self.path_of(field)}[{index}]", heading=self._heading, error=self._error)
            for index, value in enumerate(values)
        ]

    def int32s(self, field: str, default: Any = _MISSING) -> Any:
        """Return a list of 32-bit integers as a tuple; required unless a default is given."""
        values = self.list(field, default)
        if not isinstance(values, list):
            return values
        for index, value in enumerate(values):
            if not _is_int(value) or not INT_MIN <= value <= INT_MAX:
                raise self.fail(f"expected a 32-bit integer, found {_kind(value)}", field=f"{field}[{index}]")
        return tuple(values)

    def strings(self, field: str, default: Any = _MISSING) -> Any:
        """Return a list of strings as a tuple; required unless a default is given."""
        values = self.list(field, default)
        if not isinstance(values, list):
            return values
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise self.fail(f"expected a string, found {_kind(value)}", field=f"{field}[{index}]")
        return tuple(values)

    def string_map(self, field: str, default: Any = _MISSING) -> Any:
        """Return an object whose values are strings, as a dict; required unless a default is given."""
        values = self._take(field, "an object", default, lambda value: isinstance(value, dict))
        if isinstance(values, dict):
            for key, value in values.items():
                if not isinstance(value, str):
                    raise self.fail(f"expected a string, found {_kind(value)}", field=f"{field}[{key!r}]")
        return values

    def extra(self) -> FrozenMap[str, Any]:
        """Return the unrecognised fields (read-only)."""
        rest = {key: value for key, value in self._values.items() if key not in self._seen}
        return FrozenMap(rest) if rest else NO_EXTRA


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: object) -> str:
    text = repr(value) if not (isinstance(value, int) and abs(value) > LONG_MAX * 16) else "a very large integer"
    return text if len(text) <= 60 else text[:57] + "..."


def _kind(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "the boolean", int: "the number", float: "the number", str: "the string"}
    name = names.get(type(value))
    if name is not None:
        return f"{name} {_shown(value)}"
    containers: dict[type, str] = {dict: "an object", list: "a list"}
    return containers.get(type(value), type(value).__name__)
