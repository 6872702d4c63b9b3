"""What names mean in a session: the lakes attached to it, and where names without a lake are looked up.

    lake.db.t               the table db.t of the attached lake `lake`
    t, db.t                 after USE lake.db: t in that namespace, db.t in that lake
    lake.db.t.snapshots     a metadata table;  lake.db.t.branch_x, .tag_x, .snapshot_id_1, .at_timestamp_1 a state
    lake.db.t.branch_x.files                  both

A table whose own name is such a word wins over the meaning of the word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from frazil.catalog.names import format_name
from frazil.errors import InvalidRequestError, NotFoundError, TableNotFoundError
from frazil.metadata_tables.tables import METADATA_TABLES
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.sql.statements import Name
from frazil.table.lake import Lake
from frazil.table.table import Table, hold

SPARK_CATALOG = "spark_catalog"
CHANGES = "changes"
FILE_FORMATS = frozenset({"parquet", "orc", "csv", "json", "text", "avro", "delta", "xml", "binaryfile", "iceberg"})
_SELECTOR = re.compile(r"(branch|tag)_(.+)|snapshot_id_(\d+)|at_timestamp_(\d+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class FullName:
    """A name in a lake: what follows the lake's name."""

    lake_name: str
    lake: Lake
    name: Name
    views: tuple[Name, ...] = ()
    """The views of the lake that it is read through, the outermost first."""

    def __str__(self) -> str:
        return format_name((self.lake_name, *self.name))


@dataclass(frozen=True, slots=True)
class State:
    """Which state of a table is meant; nothing given is the current one."""

    snapshot_id: int | None = None
    as_of_ms: int | None = None
    branch: str | None = None
    tag: str | None = None
    ref: str | None = None

    @property
    def is_given(self) -> bool:
        """Whether a state other than the current one is meant."""
        return self != CURRENT

    @property
    def reference(self) -> str | None:
        """The branch or tag that is meant."""
        return self.branch or self.tag or self.ref

    @property
    def choice(self) -> SnapshotChoice:
        """The snapshot to read."""
        return SnapshotChoice(self.snapshot_id, self.as_of_ms, self.reference)


CURRENT = State()


@dataclass(frozen=True, slots=True)
class Relation:
    """Something to read: a table in a state, or one of its metadata tables."""

    full_name: FullName
    table: Table
    state: State = CURRENT
    metadata_table: str | None = None


def check_writable(relation: Relation, name: str) -> None:
    """Refuse to write to a metadata table, and to a state that is no branch; `name` is what was written for it."""
    state = relation.state
    if relation.metadata_table is not None:
        raise InvalidRequestError(f"Cannot write to {name}: it is a metadata table")
    if state.is_given and state.branch is None:
        raise InvalidRequestError(
            f"Cannot write to {name}: only branches can be written to", hint="Write to the table, or a branch."
        )
    if state.branch is not None:
        relation.table.metadata.ref(state.branch)


@dataclass
class SqlSession:
    """The lakes of a session and its current namespace."""

    lakes: dict[str, Lake] = field(default_factory=dict)
    catalog: str | None = None
    namespace: Name = ()
    is_temporary_view: Callable[[Name], bool] = field(default=lambda name: False)
    is_foreign_catalog: Callable[[str], bool] = field(default=lambda name: False)

    # Whose names

    def find_full_name(self, name: Name) -> FullName | None:
        """Return where a table's or view's name points in a lake; None where it is Spark's."""
        if len(name) > 1 and name[0] in self.lakes:
            return FullName(name[0], self.lakes[name[0]], name[1:])
        if self.catalog is None or not name or self._is_spark_name(name):
            return None
        lake = self.lakes[self.catalog]
        if len(name) == 1:
            return FullName(self.catalog, lake, (*self.namespace, *name))
        if self.namespace and is_suffix(name[1:]) and lake.table_exists((*self.namespace, name[0])):
            # t.snapshots in the current namespace; Iceberg Java wants its name before it.
            return FullName(self.catalog, lake, (*self.namespace, *name))
        full_name = FullName(self.catalog, lake, name)
        if name[0].lower() in FILE_FORMATS and not lake.catalog.namespace_exists(name[:-1]):
            # parquet.`/some/folder` reads files.
            return None
        return full_name

    def _is_spark_name(self, name: Name) -> bool:
        if len(name) == 1:
            return self.is_temporary_view(name)
        return name[0] == SPARK_CATALOG or name[0] == "global_temp" or self.is_foreign_catalog(name[0])

    def find_namespace(self, name: Name) -> FullName | None:
        """Return the namespace that a name means, the current one for no name; None where it is Spark's."""
        if name and name[0] in self.lakes:
            return FullName(name[0], self.lakes[name[0]], name[1:])
        if self.catalog is None:
            return None
        if name and (name[0] == SPARK_CATALOG or self.is_foreign_catalog(name[0])):
            return None
        return FullName(self.catalog, self.lakes[self.catalog], name or self.namespace)

    def is_ours(self, entity: str, name: Name) -> bool:
        """Return whether a lake answers for a name; what the parser asks."""
        if entity in ("namespace", "namespaces"):
            return self.find_namespace(name) is not None
        if entity == "function":
            # Functions are Spark's own but for those of a lake's namespace `system`.
            return name[-2:-1] == ("system",) and self.find_function(name) is not None
        return self.find_full_name(name) is not None

    def find_function(self, name: Name) -> tuple[Lake, str, str] | None:
        """Return the lake, its name and the function of its `system` that a name means."""
        lower = tuple(step.lower() for step in name)
        if len(name) == 3 and name[0] in self.lakes and lower[1] == "system":
            return self.lakes[name[0]], name[0], lower[2]
        if len(name) == 2 and lower[0] == "system" and self.catalog is not None:
            return self.lakes[self.catalog], self.catalog, lower[1]
        return None

    def full_name(self, name: Name) -> FullName:
        """Return where a name points in a lake; the parser has made sure that it does."""
        found = self.find_full_name(name)
        if found is None:
            raise InvalidRequestError(f"Cannot use {format_name(name)}: it is not in a lake")
        return found

    def namespace_place(self, name: Name) -> FullName:
        """Return the namespace that a name means."""
        found = self.find_namespace(name)
        if found is None:
            raise InvalidRequestError(f"Cannot use {format_name(name)}: it is not in a lake")
        return found

    def same_lake(self, full_name: FullName, name: Name) -> Name:
        """Return the name within a lake that a rename's target means; refuse one in another lake."""
        if len(name) > 1 and name[0] in self.lakes and name[0] != full_name.lake_name:
            raise InvalidRequestError(f"Cannot rename {full_name} to {format_name(name)}: it is in another lake")
        if len(name) > 1 and name[0] == full_name.lake_name:
            return name[1:]
        return (*full_name.name[:-1], *name) if len(name) == 1 else name

    # Tables

    def table(self, name: Name) -> Table:
        """Return the table that a name means, held for one statement that takes no state of it."""
        full_name = self.full_name(name)
        return hold(full_name.lake.table(full_name.name))

    def write_target(self, name: Name) -> tuple[FullName, Table, str | None]:
        """Return the table to write to, held for one statement, and the branch that the name carries."""
        relation = self.relation(self.full_name(name))
        check_writable(relation, format_name(name))
        return relation.full_name, hold(relation.table), relation.state.branch

    def relation(self, full_name: FullName) -> Relation:
        """Return what a name means: a table, a state of one, or one of its metadata tables."""
        problem: NotFoundError | None = None
        for taken in (0, 1, 2):
            identifier = full_name.name[: len(full_name.name) - taken]
            suffixes = full_name.name[len(full_name.name) - taken :]
            if taken and (not identifier or not is_suffix(suffixes)):
                break
            try:
                table = full_name.lake._table_for(identifier, full_name.views)
            except NotFoundError as error:
                problem = problem or error
                continue
            found = replace(full_name, name=identifier)
            return with_suffixes(Relation(found, table), suffixes)
        if problem is None:
            raise TableNotFoundError(f"Cannot find {full_name}: there is no such table")
        raise problem


def is_suffix(suffixes: Name) -> bool:
    """Return whether parts of a name can say a state, a metadata table, or both."""
    if not 1 <= len(suffixes) <= 2:
        return False
    last = suffixes[-1].lower()
    is_table = last in METADATA_TABLES or last == CHANGES
    if len(suffixes) == 1:
        return is_table or _SELECTOR.fullmatch(suffixes[0]) is not None
    return is_table and _SELECTOR.fullmatch(suffixes[0]) is not None


def with_suffixes(relation: Relation, suffixes: Name) -> Relation:
    """Return what a relation is where parts after its name say a state, a metadata table, or both."""
    state, metadata_table = relation.state, None
    for suffix in suffixes:
        selector = _SELECTOR.fullmatch(suffix)
        if selector is not None:
            state = _state_of(selector)
        else:
            metadata_table = suffix.lower()
    return Relation(relation.full_name, relation.table, state, metadata_table)


def _state_of(selector: re.Match[str]) -> State:
    ref_type, name, snapshot_id, as_of_ms = selector.groups()
    if snapshot_id is not None:
        return State(snapshot_id=int(snapshot_id))
    if as_of_ms is not None:
        return State(as_of_ms=int(as_of_ms))
    return State(branch=name) if ref_type.lower() == "branch" else State(tag=name)


def selector_of(state: State) -> str | None:
    """Return the part of a name that says a state; None for the current one."""
    if state.snapshot_id is not None:
        return f"snapshot_id_{state.snapshot_id}"
    if state.as_of_ms is not None:
        return f"at_timestamp_{state.as_of_ms}"
    if state.branch is not None and state.tag is not None:
        raise InvalidRequestError("Cannot read with both branch and tag: give one")
    if state.branch is not None:
        return f"branch_{state.branch}"
    return None if state.tag is None else f"tag_{state.tag}"


STATE_OPTIONS = ("snapshot-id", "as-of-timestamp", "branch", "tag", "versionasof", "timestampasof")
"""Read options that name a state of a table, in lower case."""


def state_of_options(options: Mapping[str, str]) -> State:
    """Return the state that read options name: `snapshot-id`, `as-of-timestamp`, `branch`, `tag`, `versionAsOf`."""
    known: dict[str, Any] = {key.lower(): value for key, value in options.items()}
    found = [key for key in STATE_OPTIONS if key in known]
    if len(found) > 1:
        raise InvalidRequestError(f"Cannot read with both {found[0]} and {found[1]}: give one")
    if "snapshot-id" in known:
        return State(snapshot_id=_whole(known["snapshot-id"], "snapshot-id"))
    if "as-of-timestamp" in known:
        return State(as_of_ms=_whole(known["as-of-timestamp"], "as-of-timestamp"))
    if "versionasof" in known:
        return version_state(str(known["versionasof"]))
    return State(branch=known.get("branch"), tag=known.get("tag"))


def version_state(version: str) -> State:
    """Return the state that VERSION AS OF names: a number is a snapshot's id, anything else a branch or tag."""
    if re.fullmatch(r"\s*-?\d+\s*", version):
        return State(snapshot_id=int(version))
    return State(ref=version)


def _whole(value: object, name: str) -> int:
    try:
        return int(str(value))
    except ValueError as error:
        raise InvalidRequestError(f"Cannot read with {name} {value!r}: it is not a whole number") from error
