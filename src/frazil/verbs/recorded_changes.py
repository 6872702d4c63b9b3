"""Changes of the schema or the partitioning that are recorded one by one and committed together."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from frazil.commit.update_schema import UpdateSchema, schema_update
from frazil.commit.update_spec import UpdateSpec, spec_update
from frazil.spec.partition_evolution import PartitionSpecUpdate
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.verbs.write_session import WriteSession

Update = TypeVar("Update")
"""What a recorder records: changes of a schema, or of the partitioning."""


def update_schema(session: WriteSession, *, case_sensitive: bool) -> Recorder[SchemaUpdate]:
    """Record changes of the schema."""
    state = session.load()
    update = schema_update(state.metadata, case_sensitive=case_sensitive)
    return Recorder(update, lambda replay: session.commit(state, (UpdateSchema(replay, case_sensitive),), ()))


def update_spec(session: WriteSession, *, case_sensitive: bool) -> Recorder[PartitionSpecUpdate]:
    """Record changes of the partitioning."""
    state = session.load()
    update = spec_update(state.metadata, case_sensitive=case_sensitive)
    return Recorder(update, lambda replay: session.commit(state, (UpdateSpec(replay, case_sensitive),), ()))


class Recorder(Generic[Update]):
    """Changes made one by one, each checked at once, and carried out together at the end of the `with` block.

    Calls are kept, so that they can be made again on a newer state of the table. An exception inside the block
    drops them all. Type checkers are told that the block has the update itself, whose methods it passes on.
    """

    def __init__(self, update: Update, finish: Callable[[Callable[[Update], None]], object]) -> None:
        self._update = update
        self._finish = finish
        self._calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Recorder[Update]]:
            if name not in _changes_of(self._update):
                known = ", ".join(_changes_of(self._update))
                raise AttributeError(f"no such change as {name!r}; there are: {known}")

            def call(*arguments: Any, **options: Any) -> Recorder[Update]:
                getattr(self._update, name)(*arguments, **options)
                self._calls.append((name, arguments, options))
                return self

            return call

    def __dir__(self) -> list[str]:
        return _changes_of(self._update)

    def __repr__(self) -> str:
        made = ", ".join(name for name, _, _ in self._calls)
        return f"<changes: {made or 'none yet'}; there are: {', '.join(_changes_of(self._update))}>"

    def _replay(self, update: Update) -> None:
        for name, arguments, options in self._calls:
            getattr(update, name)(*arguments, **options)

    def __enter__(self) -> Update:
        return cast(Update, self)

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error_type is None and self._calls:
            self._finish(self._replay)


def _changes_of(update: object) -> list[str]:
    return [name for name in dir(type(update)) if not name.startswith("_") and callable(getattr(type(update), name))]
