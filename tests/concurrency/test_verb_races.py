"""Every verb of a table beside a rival: it ends like one after the other, or is refused and changes nothing.

What one after the other comes to is not modelled but done: the two run on copies of the table, in both orders. A verb
that replaces rows must do more: the rows that a rival adds after it has begun are there afterwards, or it is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.memory import MemoryCatalog
from frazil.errors import CommitError, FrazilError
from frazil.storage.memory import MemoryStorage
from frazil.table.lake import Lake
from frazil.table.writable import Writable
from tests.support.races import Point, Race
from tests.support.write_history import VERSIONS_AND_MODES

Row = tuple[int | str | None, ...]
View = tuple[tuple[str, ...], dict[str, list[Row]], str]
"""Columns, the rows of each branch, and a property."""
Form = tuple[int, str]
"""The version of a table, and the mode of its changes."""
FORMS: list[Form] = VERSIONS_AND_MODES[1:]

PROPERTIES = {"commit.retry.min-wait-ms": "1", "write.wap.enabled": "true"}
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.string())])


@cache
def first_files(form: Form) -> tuple[dict[str, bytes], str]:
    """Return the files of the table that everything starts from, and which of them is its metadata."""
    storage = MemoryStorage()
    version, mode = form
    modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    table = Lake(MemoryCatalog(storage=storage)).create_table(
        "db.t",
        "id bigint, p string, v string",
        partition_by=["p"],
        properties={**PROPERTIES, **modes},
        format_version=version,
    )
    # The partition field keeps its name, so that columns may be exchanged: none may have that of another's field.
    with table.update_schema() as update:
        update.rename_column("p", "k")
    table.append(rows((1, "a"), (2, "b")))
    table.create_tag("old")
    table.append(rows((3, "a")))
    table.append(rows((4, "c")), snapshot_properties={"wap.id": "w"})
    table.create_branch("dev")
    table.append(rows((5, "b")), branch="dev")
    assert table.metadata_location is not None
    return {one.path: storage.read(one.path) for one in storage.list("memory://")}, table.metadata_location


class World:
    """A table that a verb and its rival start from, in memory."""

    def __init__(self, form: Form = FORMS[0]) -> None:
        files, metadata_location = first_files(form)
        storage = MemoryStorage()
        for path, data in files.items():
            storage.create(path, data)
        self.lake = Lake(MemoryCatalog(storage=storage))
        self.lake.create_namespace("db")
        self.lake.register_table("db.t", metadata_location)
        self.race: Race | None = None

    def table(self) -> frazil.Table:
        return self.lake.table("db.t")

    def view(self) -> View:
        table = self.table()

        columns = tuple(part.name for part in table.schema.fields)
        found: dict[str, list[Row]] = {}
        for ref in ("main", "dev"):
            if ref in table.refs:
                found[ref] = sorted(map(row_of, table.scan(ref=ref).to_arrow().to_pylist()), key=repr)
        return columns, found, table.properties.get("mark", "")

    def during(self, table: pa.Table) -> pa.RecordBatchReader:
        """Return rows that take a while: whoever waits for that moment comes between the first and the last."""

        def batches() -> Iterator[pa.RecordBatch]:
            yield from table.to_batches()
            if self.race is not None:
                self.race.reach("written")

        return pa.RecordBatchReader.from_batches(table.schema, batches())


def row_of(row: dict[str, int | str | None]) -> Row:
    return tuple(row.values())


def rows(*given: tuple[int, str]) -> pa.Table:
    return pa.table([[one[0] for one in given], [one[1] for one in given], ["v"] * len(given)], schema=SCHEMA)


Change = Callable[[World, frazil.Table], object]


def wide(*given: tuple[int, str]) -> pa.Table:
    return rows(*given).append_column("w", pa.array(["w"] * len(given)))


def rename(world: World, table: frazil.Table) -> None:
    with table.update_schema() as update:
        update.rename_column("v", "u")


def exchange(world: World, table: frazil.Table) -> None:
    with table.transaction() as changes:
        for old, new in (("k", "x"), ("v", "k"), ("x", "v")):
            with changes.update_schema() as update:
                update.rename_column(old, new)


def add_column(world: World, table: Writable) -> None:
    with table.update_schema() as update:
        update.add_column("w", "string")


def add_another(world: World, table: frazil.Table) -> None:
    with table.update_schema() as update:
        update.add_column("x", "string")


def change_spec(world: World, table: frazil.Table) -> None:
    with table.update_spec() as update:
        update.add_field("bucket(4, id)")


def transact(world: World, table: frazil.Table) -> None:
    with table.transaction() as changes:
        changes.overwrite(world.during(rows((20, "a"))), where="k = 'a'")
        changes.append(rows((21, "b")))


def transact_columns(world: World, table: frazil.Table) -> None:
    with table.transaction() as changes:
        add_column(world, changes)
        changes.append(world.during(wide((23, "a"))))


def transact_lake(world: World, table: frazil.Table) -> None:
    with world.lake.transaction() as changes:
        other = changes.table("db.t")
        other.delete("k = 'b'")
        other.append(world.during(rows((22, "b"))))


def merge(world: World, table: frazil.Table) -> None:
    merging = table.merge(world.during(rows((1, "d"), (2, "u"), (10, "c"))), on="target.id = source.id")
    merging = merging.when_matched("source.k = 'd'").delete().when_matched().update({"v": "source.k"})
    merging.when_not_matched().insert_all().when_not_matched_by_source("target.id = 3").delete().execute()


def recreate(world: World, table: frazil.Table) -> None:
    world.lake.drop_table("db.t")
    world.lake.create_table("db.t", "id bigint, k string, v string", properties=PROPERTIES).append(rows((30, "a")))


VERBS: dict[str, Change] = {
    "append": lambda world, table: table.append(world.during(rows((10, "a")))),
    "append to a branch": lambda world, table: table.append(world.during(rows((10, "a"))), branch="dev"),
    "append with new columns": lambda world, table: table.append(world.during(wide((10, "a"))), merge_schema=True),
    "overwrite": lambda world, table: table.overwrite(world.during(rows((11, "a")))),
    "overwrite by nothing": lambda world, table: table.overwrite(world.during(rows())),
    "overwrite a branch": lambda world, table: table.overwrite(world.during(rows((11, "a"))), branch="dev"),
    "overwrite a partition": lambda world, table: table.overwrite(world.during(rows((12, "a"))), where="k = 'a'"),
    "overwrite another": lambda world, table: table.overwrite(world.during(rows((12, "c"))), where="k = 'c'"),
    "overwrite with new columns": lambda world, table: table.overwrite(
        world.during(wide((13, "a"))), where="k = 'a'", merge_schema=True
    ),
    "overwrite partitions": lambda world, table: table.overwrite_partitions(world.during(rows((14, "a")))),
    "overwrite partitions with new columns": lambda world, table: table.overwrite_partitions(
        world.during(wide((14, "a"))), merge_schema=True
    ),
    "delete": lambda world, table: table.delete("k = 'a'"),
    "delete all": lambda world, table: table.delete("true"),
    "delete rows": lambda world, table: table.delete("id % 2 = 1"),
    "delete a row": lambda world, table: table.delete("id = 1"),
    "update": lambda world, table: table.update({"v": "concat(v, 'x')"}, where="k = 'a'"),
    "update rows": lambda world, table: table.update({"k": "upper(k)", "v": "'new'"}, where="id % 2 = 1"),
    "upsert": lambda world, table: table.upsert(world.during(rows((1, "a"), (2, "z"), (10, "c"))), keys=["id"]),
    "merge": merge,
    "overwrite rows": lambda world, table: table.overwrite(world.during(rows((15, "a"))), where="id % 2 = 1"),
    "transaction": transact,
    "transaction with a new column": transact_columns,
    "transaction of the lake": transact_lake,
    "compact": lambda world, table: table.maintain.rewrite_data_files(rewrite_all=True),
    "rewrite manifests": lambda world, table: table.maintain.rewrite_manifests(),
    "expire": lambda world, table: table.expire_snapshots(older_than=1 << 60, retain_last=1),
    "expire by maintenance": lambda world, table: table.maintain.expire_snapshots(older_than=1 << 60),
    "roll back": lambda world, table: table.rollback_to(table.refs["old"].snapshot_id),
    "set current": lambda world, table: table.set_current_snapshot(ref="dev"),
    "cherry-pick": lambda world, table: table.publish_changes("w"),
    "fast-forward": lambda world, table: table.fast_forward("main", to="dev"),
    "replace branch": lambda world, table: table.replace_branch("dev", table.refs["old"].snapshot_id),
    "add column": add_column,
    "rename column": rename,
    "exchange columns": exchange,
    "change spec": change_spec,
    "set property": lambda world, table: table.set_properties({"mark": "x"}),
}
RIVALS: dict[str, Change] = {
    "append": lambda world, table: table.append(rows((99, "a"))),
    "append elsewhere": lambda world, table: table.append(rows((99, "z"))),
    "append to a branch": lambda world, table: table.append(rows((99, "a")), branch="dev"),
    "delete": lambda world, table: table.delete("k = 'a'"),
    "delete elsewhere": lambda world, table: table.delete("k = 'b'"),
    "overwrite": lambda world, table: table.overwrite(rows((98, "a"))),
    "overwrite partitions": lambda world, table: table.overwrite_partitions(rows((98, "b"))),
    "delete a row": VERBS["delete a row"],
    "update rows": lambda world, table: table.update({"v": "'rival'"}, where="id in (1, 2)"),
    "upsert": lambda world, table: table.upsert(rows((1, "b"), (97, "a")), keys=["id"]),
    **{
        name: VERBS[name]
        for name in (
            "compact",
            "expire",
            "roll back",
            "fast-forward",
            "add column",
            "rename column",
            "exchange columns",
            "change spec",
            "set property",
        )
    },
    "add another column": add_another,
    "drop a branch": lambda world, table: table.drop_branch("dev"),
    "drop and create": recreate,
}
HAS_DATA = [name for name in VERBS if name.startswith(("append", "overwrite", "transaction", "upsert", "merge"))]
CHANGES_ROWS = ("delete rows", "delete a row", "update", "update rows", "upsert", "merge", "overwrite rows")
REPLACES = [name for name in VERBS if name.startswith("overwrite")]
ADDS = {"append": (99, "a", "v"), "append elsewhere": (99, "z", "v"), "append to a branch": (99, "a", "v")}


def run(world: World, change: Change) -> None:
    """Run a verb on a fresh handle; it may be refused."""
    table = world.table()
    if "old" in table.refs:  # else it is another table, and there is nothing to go back to
        with contextlib.suppress(FrazilError):
            change(world, table)


def serial(verb: str, rival: str, form: Form) -> tuple[View, View, View]:
    """Return the table after the rival alone, after the verb and the rival, and after the rival and the verb."""
    return (
        after(form, RIVALS[rival]),
        after(form, VERBS[verb], RIVALS[rival]),
        after(form, RIVALS[rival], VERBS[verb]),
    )


@cache
def after(form: Form, *changes: Change) -> View:
    """Return the table after changes one by one, those left out that are refused."""
    world = World(form)
    for change in changes:
        run(world, change)
    return world.view()


def race(verb: str, rival: str, point: Point, form: Form = FORMS[0], *, checks: bool = False) -> None:
    world = World(form)
    handle = world.table()
    with Race(world.lake.catalog, point, lambda: run(world, RIVALS[rival])) as racing:
        world.race = racing
        try:
            VERBS[verb](world, handle)
            refused = None
        except FrazilError as error:
            refused = error
    alone, first, second = serial(verb, rival, form)
    found = world.view()
    where = f"{verb} beside {rival} at {point}, {form}: {refused!r}"
    if not racing.has_run:
        assert point == "commit", where  # nothing was to be committed
        return
    if refused is not None:
        assert found == alone, where
        return
    assert found in (first, second), where
    if verb in REPLACES and rival in ADDS:
        ref = "dev" if rival == "append to a branch" else "main"
        assert ADDS[rival] in [one[:3] for one in found[1][ref]], where
    if checks:
        assert world.table().check().ok, where


def points(verb: str) -> tuple[Point, ...]:
    return ("begun", "written", "commit") if verb in HAS_DATA else ("begun", "commit")


@pytest.mark.extended
@pytest.mark.every_case
@pytest.mark.parametrize("verb", VERBS)
def test_verb_beside_a_rival_is_serializable_or_refused(verb: str) -> None:
    for rival in ("append", "exchange columns", *(("add another column",) if "new column" in verb else ())):
        race(verb, rival, "written" if verb in HAS_DATA else "commit")


@pytest.mark.extended
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("verb", CHANGES_ROWS)
def test_concurrent_changes_to_the_same_rows_are_both_preserved(verb: str, form: Form) -> None:
    for rival in ("append", "delete a row", "update rows", "upsert", "compact"):
        race(verb, rival, "commit", form, checks=True)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("verb", ["overwrite", "overwrite by nothing", "overwrite a partition"])
def test_whole_file_overwrite_beside_a_compaction_succeeds(verb: str, form: Form) -> None:
    world = World(form)
    handle = world.table()
    with Race(world.lake.catalog, "commit", lambda: run(world, RIVALS["compact"])) as racing:
        VERBS[verb](world, handle)
    assert racing.has_run
    assert world.view() == after(form, RIVALS["compact"], VERBS[verb])
    assert world.table().check().ok


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_beside_every_rival_at_every_point_is_serializable(verb: str, form: Form) -> None:
    for rival in RIVALS:
        for point in points(verb):
            race(verb, rival, point, form, checks=True)


@pytest.mark.parametrize("point", ["begun", "commit"])
@pytest.mark.parametrize("verb", REPLACES)
def test_replacing_verbs_never_erase_a_concurrent_append(verb: str, point: Point) -> None:
    for rival in ADDS:
        race(verb, rival, point)


@pytest.mark.parametrize(
    "verb",
    ["overwrite", "overwrite a partition", "overwrite partitions", "transaction", "update", "overwrite rows", "merge"],
)
def test_refused_verb_leaves_no_files(verb: str) -> None:
    world = World()
    handle = world.table()
    before = files(world)
    with Race(world.lake.catalog, "commit", lambda: handle.delete("k = 'a'")):
        with pytest.raises(CommitError):
            VERBS[verb](world, world.table())
    assert files(world) == before


def files(world: World) -> set[str]:
    table = world.table()
    return {one.path for one in table.state.storage.list(f"{table.location}/data")}


@pytest.mark.every_case
@pytest.mark.parametrize("verb", VERBS)
def test_verb_loads_its_table_once(verb: str) -> None:
    world = World()
    handle = world.table()
    with Race(world.lake.catalog) as counting:
        VERBS[verb](world, handle)
    # Maintenance may have worked for hours: it looks at the table again before it commits.
    assert counting.loads <= (2 if verb in MAINTENANCE else 1)


MAINTENANCE = ("compact", "rewrite manifests", "expire by maintenance")
