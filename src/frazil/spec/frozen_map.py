"""An immutable dict that can be pickled, compared and printed, for the fields of frozen values.

Frozen dataclasses call `freeze_tuples` and `freeze_maps` on creation, so that callers may pass lists and dicts and
change them afterwards.
"""

from __future__ import annotations

from typing import Any, Generic, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenMap(dict[K, V], Generic[K, V]):
    """An immutable mapping, equal to a dict of the same items, and hashable if its values are."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping is part of a frozen value; build a new one instead")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenMap, (dict(self),)


NO_EXTRA: FrozenMap[str, Any] = FrozenMap()
"""The empty `extra`, of an object without unrecognised fields."""


def freeze_tuples(value: object, *names: str, may_be_none: bool = False) -> None:
    """Convert some fields of a frozen value to tuples, while it is being created."""
    for name in names:
        current = getattr(value, name)
        if not isinstance(current, tuple) and not (current is None and may_be_none):
            object.__setattr__(value, name, tuple(current))


def freeze_maps(value: object, *names: str, may_be_none: bool = False) -> None:
    """Convert some fields of a frozen value to frozen maps, while it is being created."""
    for name in names:
        current = getattr(value, name)
        if not isinstance(current, FrozenMap) and not (current is None and may_be_none):
            object.__setattr__(value, name, FrozenMap(current))
