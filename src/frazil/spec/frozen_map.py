"""A dict that cannot change, so that frozen values stay frozen and still pickle, compare and print.

Frozen dataclasses call `freeze_tuples` and `freeze_maps` when they are made, so that callers may hand over lists and
dicts and change theirs afterwards.
"""

from __future__ import annotations

from typing import Any, Generic, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenMap(dict[K, V], Generic[K, V]):
    """An immutable mapping; equal to a dict of the same items, hashable where its values are."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping is part of a frozen value; build a new one instead")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenMap, (dict(self),)


NO_EXTRA: FrozenMap[str, Any] = FrozenMap()
"""The empty `extra`: nothing unknown was read."""


def freeze_tuples(value: object, *names: str, may_be_none: bool = False) -> None:
    """Make tuples of some fields of a frozen value that is being made."""
    for name in names:
        held = getattr(value, name)
        if not isinstance(held, tuple) and not (held is None and may_be_none):
            object.__setattr__(value, name, tuple(held))


def freeze_maps(value: object, *names: str, may_be_none: bool = False) -> None:
    """Make frozen maps of some fields of a frozen value that is being made."""
    for name in names:
        held = getattr(value, name)
        if not isinstance(held, FrozenMap) and not (held is None and may_be_none):
            object.__setattr__(value, name, FrozenMap(held))
