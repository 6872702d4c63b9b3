"""Delete, update, upsert, merge and overwrite without Spark: data of every kind, bad input, nothing half done."""

from __future__ import annotations

import itertools
import math
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import frazil
from frazil.catalog.memory import MemoryCatalog
from frazil.codec.manifest_list_avro import decode_manifest_list
from frazil.commit.row_delta import RowDelta
from frazil.errors import (
    FieldNotFoundError,
    FrazilError,
    InvalidRequestError,
    SchemaMismatchError,
    TextSyntaxError,
    UnsupportedError,
)
from frazil.scan import read_manifests
from frazil.storage.failing import FailingStorage
from frazil.storage.memory import MemoryStorage
from frazil.table.lake import Lake
from frazil.verbs import choose_engine
from tests.support.equality_delete_writer import write_equality_deletes
from tests.support.write_history import VERSIONS_AND_MODES

DDL = "id bigint, k string, v int"
ROWS: list[dict[str, Any]] = [{"id": at, "k": "ab"[at % 2], "v": 10 * at} for at in range(6)]


def new_table(version: int = 2, mode: str = "merge-on-read", ddl: str = DDL, **options: Any) -> frazil.Table:
    lake = frazil.connect("memory:", catalog="memory")
    lake.create_namespace("db")
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    return lake.create_table("db.t", ddl, format_version=version, properties=properties, **options)


@pytest.fixture(params=VERSIONS_AND_MODES, ids=lambda one: f"v{one[0]}-{one[1]}")
def table(request: pytest.FixtureRequest) -> frazil.Table:
    made = new_table(*request.param)
    made.append(ROWS)
    return made


def found(table: frazil.Table) -> dict[Any, Any]:
    return {row["id"]: (row["k"], row["v"]) for row in table.refresh().scan().to_arrow().to_pylist()}


def files(table: frazil.Table) -> set[str]:
    storage = table.state.storage
    return {one.path for one in storage.list(table.location) if "/data/" in one.path}


def counts(snapshot: Any) -> dict[str, str]:
    prefix = "spark.merge-into.num-target-rows-"
    return {name[len(prefix) :]: value for name, value in snapshot.summary.items() if name.startswith(prefix)}


# Data of every kind


def arrow() -> pa.Table:
    return pa.table({"id": [1, 9], "k": ["new", "more"], "v": pa.array([7, None], pa.int32())})


def source_table() -> frazil.Table:
    made = new_table()
    made.append(arrow())
    return made


SOURCES: dict[str, Callable[[], Any]] = {
    "table": arrow,
    "batch": lambda: arrow().to_batches()[0],
    "reader": lambda: arrow().to_reader(),
    "pandas": lambda: pd.DataFrame({"id": [1, 9], "k": ["new", "more"], "v": pd.array([7, None], "Int32")}),
    "polars": lambda: pl.from_arrow(arrow()),
    "duckdb": lambda: duckdb.from_arrow(arrow()),
    "dicts": lambda: arrow().to_pylist(),
    "large": lambda: arrow().cast(pa.schema([("id", pa.int32()), ("k", pa.large_string()), ("v", pa.int64())])),
    "lazy": lambda: pl.from_arrow(arrow()).lazy(),  # type: ignore[union-attr]
    "dataset": lambda: pyarrow.dataset.dataset(arrow()),
    "scan": lambda: source_table().scan(),
    "lake table": lambda: source_table(),
    "batches": lambda: arrow().to_batches(),
    "iterator": lambda: iter(arrow().to_batches()),
    "iterator of dicts": lambda: iter(arrow().to_pylist()),
    "dictionary": lambda: arrow().set_column(1, "k", arrow().column("k").dictionary_encode()),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_upsert_accepts_every_kind_of_rows(kind: str) -> None:
    table = new_table()
    table.append(ROWS)
    snapshot = table.upsert(SOURCES[kind](), keys=["id"], engine="local")
    assert counts(snapshot) == {
        "updated": "1", "matched-updated": "1", "inserted": "1", "copied": "0", "unchanged": "0"
    }  # fmt: skip
    assert found(table) == {row["id"]: (row["k"], row["v"]) for row in ROWS} | {1: ("new", 7), 9: ("more", None)}


@pytest.mark.parametrize("kind", SOURCES)
def test_merge_and_overwrite_accept_every_kind_of_rows(kind: str) -> None:
    table = new_table()
    table.append(ROWS)
    merge = table.merge(SOURCES[kind](), on="target.id = source.id", engine="local")
    merge.when_matched().update({"v": "source.v + target.v"}).when_not_matched().insert_all().execute()
    assert found(table)[1] == ("b", 17)
    assert found(table)[9] == ("more", None)
    if kind != "large":
        table.overwrite(SOURCES[kind](), where="id % 3 = 1", engine="local")
        assert found(table)[1] == ("new", 7)
        assert 4 not in found(table)


# What the verbs do


def test_rows_keep_ids_and_unchanged_rows_keep_their_sequence_number() -> None:
    for mode in ("copy-on-write", "merge-on-read"):
        table = new_table(3, mode)
        table.append(ROWS)
        lineage = ["id", "_row_id", "_last_updated_sequence_number"]
        before = {row["id"]: row["_row_id"] for row in table.scan(columns=lineage).to_arrow().to_pylist()}
        table.update({"v": "v + 1"}, where="id % 2 = 0", engine="local")
        table.upsert([{**ROWS[1], "v": 5}, ROWS[3], {"id": 77}], keys=["id"], engine="local")
        after = {row["id"]: row for row in table.scan(columns=lineage).to_arrow().to_pylist()}
        assert {at: after[at]["_row_id"] for at in before} == before
        assert {at: one["_last_updated_sequence_number"] for at, one in after.items()} == {
            0: 2, 2: 2, 4: 2, 1: 3, 77: 3, 3: 1, 5: 1
        }  # fmt: skip
        assert after[77]["_row_id"] not in before.values()


def test_upsert_without_changes_writes_nothing(table: frazil.Table) -> None:
    before, written = table.metadata_location, files(table)
    assert table.upsert(ROWS[:3], keys=["id"], engine="local") is None
    assert (table.refresh().metadata_location, files(table)) == (before, written)


def test_changed_nan_or_zero_sign_counts_as_a_change() -> None:
    table = new_table(ddl="id int, d double, s struct<a: float>, l list<int>, u uuid")
    row = {"id": 1, "d": math.nan, "s": {"a": 0.0}, "l": [1, None], "u": uuid.UUID(int=5)}
    table.append([row])
    assert table.upsert([row], keys=["id"], engine="local") is None
    for changed in ({"d": 1.0}, {"s": {"a": -0.0}}, {"s": None}, {"l": [1]}, {"u": uuid.UUID(int=6)}, {"d": None}):
        row |= changed
        assert table.upsert([row], keys=["id"], engine="local") is not None
    assert table.upsert([row], keys=["u"], engine="local") is None


def test_upsert_returns_its_counts(table: frazil.Table) -> None:
    snapshot = table.upsert([ROWS[0], {**ROWS[1], "v": 5}, {"id": 50, "k": "z"}], keys=["id"], engine="local")
    told = counts(snapshot)
    assert (told["updated"], told["inserted"], told["unchanged"]) == ("1", "1", "1")
    assert told["copied"] == ("0" if "merge-on-read" in str(table.properties) and table.format_version > 1 else "5")


def test_change_without_matching_rows_makes_no_snapshot(table: frazil.Table) -> None:
    written = files(table)
    assert table.update({"v": "1"}, where="id > 100", engine="local") is None
    assert table.delete("v % 7 = 9", engine="local") is None
    merge = table.merge([{"id": 900}], on="target.id = source.id", engine="local").when_matched().delete()
    assert merge.execute() is None
    assert files(table) == written


def test_empty_source_changes_nothing(table: frazil.Table) -> None:
    empty = arrow().slice(0, 0)
    assert table.upsert(empty, keys=["id"], engine="local") is None
    merge = table.merge(empty, on="target.id = source.id", engine="local")
    assert merge.when_matched().delete().when_not_matched().insert_all().execute() is None
    table.merge(empty, on="target.id = source.id", engine="local").when_not_matched_by_source(
        "v > 20"
    ).delete().execute()
    assert sorted(found(table)) == [0, 1, 2]


def test_empty_table_accepts_an_upsert(table: frazil.Table) -> None:
    table.delete("true")
    table.upsert(arrow(), keys=["id"], engine="local")
    assert found(table) == {1: ("new", 7), 9: ("more", None)}
    first = new_table()
    first.upsert(arrow(), keys=["id"], engine="local")
    assert found(first) == found(table)
    assert new_table().delete("id = 1", engine="local") is None


def test_null_and_nan_match_themselves_in_upsert_keys() -> None:
    table = new_table(ddl="id double, k string, v int")
    table.append([{"id": None, "k": "n", "v": 1}, {"id": math.nan, "k": "nan", "v": 2}, {"id": 0.0, "k": "z", "v": 3}])
    table.upsert(
        [{"id": None, "k": "n", "v": 10}, {"id": math.nan, "k": "nan", "v": 20}, {"id": -0.0, "k": "z", "v": 30}],
        keys=["id"],
        engine="local",
    )
    assert sorted(row["v"] for row in table.scan().to_arrow().to_pylist()) == [10, 20, 30]


def test_null_keys_match_nothing_in_merge_unless_null_safe() -> None:
    table = new_table()
    table.append([{"id": None, "k": "x", "v": 1}])
    source = [{"id": None, "k": "y", "v": 2}]
    table.merge(source, on="target.id <=> source.id", engine="local").when_matched().update_all().execute()
    assert found(table) == {None: ("y", 2)}
    table.merge(source, on="target.id = source.id", engine="local").when_matched().delete().execute()
    assert found(table) == {None: ("y", 2)}


def test_merge_joins_on_any_condition(table: frazil.Table) -> None:
    ranges = [{"low": 1, "high": 2, "to": 100}, {"low": 4, "high": 4, "to": 200}]
    merge = table.merge(ranges, on="target.id between source.low and source.high", engine="local")
    merge.when_matched("target.k = 'b'").update({"v": "source.to"}).when_matched().delete().execute()
    assert found(table) == {0: ("a", 0), 1: ("b", 100), 3: ("b", 30), 5: ("b", 50)}
    table.merge([{"x": 1}], on="true", engine="local").when_matched("target.id = 0").delete().execute()
    assert sorted(found(table)) == [1, 3, 5]


def test_ambiguous_match_without_effect_is_not_an_error(table: frazil.Table) -> None:
    source = [{"id": 1, "k": "x"}, {"id": 1, "k": "y"}, {"id": 5, "k": "z"}, {"id": 60, "k": "w"}]
    merge = table.merge(source, on="target.id = source.id", engine="local")
    merge = merge.when_not_matched().insert({"id": "id", "k": "k"})
    merge.when_not_matched_by_source("target.v > 10").update({"v": "target.v + 1"}).execute()
    assert {at: v for at, (_, v) in found(table).items()} == {0: 0, 1: 10, 2: 21, 3: 31, 4: 41, 5: 50, 60: None}


def test_equality_deletes_are_kept_when_rows_change() -> None:
    for mode in ("copy-on-write", "merge-on-read"):
        table = new_table(2, mode)
        table.append(ROWS)
        deletes = write_equality_deletes(pa.table({"id": [3]}), table.refresh().state, ["id"])
        table._run(RowDelta(tuple(deletes), None))
        table.update({"v": "v + 1"}, where="id % 2 = 1", engine="local")
        table.delete("id = 5", engine="local")
        assert found(table) == {0: ("a", 0), 1: ("b", 11), 2: ("a", 20), 4: ("a", 40)}
        assert table.check(bounds=True).ok


def test_key_may_be_an_expression(table: frazil.Table) -> None:
    source = [{"text": "A", "n": 2}]
    merge = table.merge(source, on="upper(target.k) = source.text and target.id = n + 2", engine="local")
    merge.when_matched().update({"k": "text"}).execute()
    assert [at for at, (k, _) in found(table).items() if k == "A"] == [4]


def test_older_deletes_of_every_kind_are_respected() -> None:
    table = new_table(2)
    table.append(ROWS)
    table.delete("id = 0", engine="local")
    table.upgrade(3)
    table.delete("id = 1", engine="local")
    table.update({"v": "-1"}, where="id = 2", engine="local")
    assert found(table) == {2: ("a", -1), 3: ("b", 30), 4: ("a", 40), 5: ("b", 50)}
    assert table.check(bounds=True).ok


def test_changes_support_branches_and_transactions(table: frazil.Table) -> None:
    table.create_branch("dev")
    table.update({"v": "0"}, where="id = 1", branch="dev", engine="local")
    assert found(table)[1] == ("b", 10)
    assert table.scan("v = 0 and id = 1", ref="dev").count() == 1
    with table.transaction() as both:
        both.delete("id = 5", engine="local")
        both.upsert([{"id": 5, "k": "again", "v": 1}], keys=["id"], engine="local")
        both.update({"v": "v + 1"}, where="id = 5", engine="local")
    assert found(table)[5] == ("again", 2)


def test_renamed_added_and_dropped_columns_are_read_by_current_schema(table: frazil.Table) -> None:
    with table.update_schema() as change:
        change.rename_column("v", "w")
        change.add_column("n", "long")
    table.update({"n": "w * 2", "w": "null"}, where="w > 20", engine="local")
    rows = {row["id"]: (row["w"], row["n"]) for row in table.scan().to_arrow().to_pylist()}
    assert rows[5] == (None, 100)
    assert rows[1] == (10, None)


def test_merge_may_add_columns(table: frazil.Table) -> None:
    source = pa.table({"id": [1, 70], "k": ["x", "y"], "extra": ["e", "f"]})
    merge = table.merge(source, on="target.id = source.id", merge_schema=True, engine="local")
    merge.when_matched().update_all().when_not_matched().insert_all().execute()
    rows = {row["id"]: row for row in table.scan("id in (1, 70)").to_arrow().to_pylist()}
    assert rows == {
        1: {"id": 1, "k": "x", "v": 10, "extra": "e"}, 70: {"id": 70, "k": "y", "v": None, "extra": "f"}
    }  # fmt: skip


def test_rows_move_to_the_partitions_of_their_new_values() -> None:
    table = new_table(3, partition_by=["k", "bucket(4, id)"])
    table.append(ROWS)
    table.update({"k": "concat(k, k)"}, where="id < 3", engine="local")
    assert found(table) == {row["id"]: (row["k"] * (2 if row["id"] < 3 else 1), row["v"]) for row in ROWS}
    assert table.scan("k = 'aa'").count() == 2
    assert table.check(bounds=True).ok


def test_upsert_without_keys_uses_identifier_fields() -> None:
    table = new_table(ddl="id bigint not null, k string, v int")
    table.append(ROWS)
    with pytest.raises(InvalidRequestError, match=r"no keys are given, and the table has no identifier fields\nHint"):
        table.upsert(arrow())
    with table.update_schema() as update:
        update.set_identifier_fields(["id"])
    assert "filter: id in" in table.explain.upsert(arrow())
    table.upsert(arrow())
    assert found(table) == {row["id"]: (row["k"], row["v"]) for row in ROWS} | {1: ("new", 7), 9: ("more", None)}


# What is read


@pytest.mark.parametrize(
    ("keys", "read"),
    [
        ([25.0], {2}),
        ([25.5, math.nan, math.inf], set()),
        ([25.5, 31.0, None], {3}),
        ([25.0, 2.0**53], {0, 1, 2, 3}),  # from there on one double equals several longs
        ([-0.0, 39.0], {0, 3}),
        (pa.array([Decimal("12.0"), Decimal("22.5")], pa.decimal128(20, 1)), {1}),
        (pa.array([Decimal(2**63), Decimal(-(2**63)), Decimal(7)], pa.decimal128(38, 0)), {0}),
        (pa.array([31, 2**64 - 1], pa.uint64()), {3}),
        (pa.array([15], pa.int8()), {1}),
    ],
)
def test_keys_of_other_types_still_prune_files(keys: Any, read: set[int]) -> None:
    storage = FailingStorage(MemoryStorage())
    table = Lake(MemoryCatalog(storage=storage)).create_table("db.t", "id bigint, v int")
    for at in range(4):
        table.append([{"id": one, "v": 0} for one in range(at * 10, at * 10 + 10)])
    places = {task.data_file.file_path: at for at, task in enumerate(reversed(table.scan().plan().tasks))}
    source = pa.table({"id": keys if isinstance(keys, pa.Array) else pa.array(keys, pa.float64())})
    storage.calls.clear()
    table.merge(source, on="target.id = source.id", engine="local").when_matched().update({"v": "7"}).execute()
    assert {places[one.path] for one in storage.calls if one.verb.startswith("read") and one.path in places} == read
    found = table.scan("v = 7").to_arrow()["id"].to_pylist()
    assert set(found) == set(range(40)) & set(source["id"].to_pylist())


# Engines and what they are told


def test_engine_choice_is_explained(table: frazil.Table) -> None:
    assert "engine: local, since it was asked for" in table.explain.delete("v % 20 = 0", engine="local")
    told = table.explain.update({"v": "v + 1"}, where="id = 3")
    assert "engine: local" in told
    assert "files to read: 1, with 6 rows" in told
    assert "filter: id = 3" in told
    assert "by metadata alone" in table.explain.delete("true")
    assert "filter: id in" in table.explain.upsert(arrow(), keys=["id"])
    assert "by metadata alone" in table.explain.overwrite(arrow())
    assert "overwrite db.t\n  engine: local" in table.explain.overwrite(arrow(), "id = :x", x=3)
    merge = table.merge(arrow(), on="target.id = source.id").when_matched().delete()
    assert "merge into db.t\n  engine: local" in merge.explain()
    assert len(table.refresh().snapshots) == 1


def test_unknown_or_unsuitable_engine_is_refused(table: frazil.Table) -> None:
    with pytest.raises(InvalidRequestError, match="the engine 'duckdb'"):
        table.delete("id = 1", engine="duckdb")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="memory of this process"):
        table.delete("id = 1", engine="spark")
    for where in (True, "true", "id = 1"):  # where files go whole, too
        given = {} if where is True else {"where": where}
        with pytest.raises(InvalidRequestError, match="the engine 'duckdb'"):
            table.overwrite(ROWS, engine="duckdb", **given)  # type: ignore[arg-type]
        with pytest.raises(UnsupportedError, match="memory of this process"):
            table.overwrite(ROWS, engine="spark", **given)  # type: ignore[arg-type]
        with pytest.raises(UnsupportedError, match="memory of this process"):
            table.explain.overwrite(ROWS, engine="spark", **given)
    with pytest.raises(UnsupportedError, match=r"soundex.*\n.*engine=\"spark\""):
        table.delete("soundex(k) = 'x'", engine="local")
    with pytest.raises(TextSyntaxError, match=r"engine=\"spark\""):
        table.update({"v": "v << 1"}, engine="local")


@pytest.fixture
def stored(tmp_path: Path) -> frazil.Table:
    """A table that Spark could read too."""
    made = frazil.connect(tmp_path / "lake").create_table("db.t", DDL)
    made.append(ROWS)
    return made


def test_spark_is_chosen_for_unsupported_expressions_and_large_inputs(
    stored: frazil.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in ("soundex(k) = 'x'", "id in (select 1)", "k rlike '(?i)a' and id % 2 = 1", 'k = "a"'):
        assert "engine: spark, since this process cannot: " in stored.explain.delete(where)
        assert "engine: spark, since this process cannot: " in stored.explain.overwrite(ROWS, where)
    monkeypatch.setattr(choose_engine, "AUTO_BYTES", 1)
    told = stored.explain.update({"v": "1"}, "id = 1")
    assert re.search(r"engine: spark, since \d+ bytes must be read, more than the 1 ", told)


@pytest.mark.parametrize("where", ["id = = 3", "id =", "(id = 3", "id = 3)", "id id", "id % 2 = 'a", "id = 3 and"])
def test_typo_is_reported_without_starting_spark(stored: frazil.Table, where: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: stored.delete(where),
        lambda: stored.update({"v": "1"}, where),
        lambda: stored.overwrite(ROWS, where),
        lambda: stored.merge(ROWS, on=where).when_matched().delete().execute(),
        lambda: stored.explain.delete(where),
    ]
    for call in calls:
        with pytest.raises(TextSyntaxError, match="Cannot parse"):
            call()
    assert len(stored.refresh().snapshots) == 1


def test_missing_parameter_is_reported_without_starting_spark(stored: frazil.Table) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: stored.delete("id % 2 = :x"),
        lambda: stored.update({"v": "v + :x"}),
        lambda: stored.overwrite(ROWS, "id = :x"),
        lambda: stored.merge(ROWS, on="target.id = source.id").when_matched("v = :x").delete().execute(),
    ]
    for call in calls:
        with pytest.raises(
            InvalidRequestError, match=r"Cannot use :x in .*: it has no value\nHint: Give it by name: x="
        ):
            call()
    stored.delete("k = ':x' or v::string = '20'")
    assert 2 not in found(stored)


def test_parameters_are_values_and_never_sql(table: frazil.Table) -> None:
    table.update({"k": ":new"}, where="id = :id", new="it's :id -- x", id=2)
    assert found(table)[2] == ("it's :id -- x", 20)
    table.delete("k = :k", k="it's :id -- x")
    table.update({"v": "v -:n"}, where="id = 1", n=-5)
    assert found(table)[1] == ("b", 15)
    merge = table.merge([{"id": 3}], on="target.id = source.id + :more", more=0, least=Decimal("29.5"))
    merge.when_matched("target.v > :least").delete().execute()
    assert 3 not in found(table)
    with pytest.raises(InvalidRequestError, match="nothing names it"):
        table.delete("id = 1", x=1)
    with pytest.raises(InvalidRequestError, match=":y"):
        table.delete("id = :x and v = :y", x=1)


# Bad input: nothing is half done


def unchanged(table: frazil.Table) -> Any:
    return table.refresh().metadata_location, files(table)


def test_duplicate_source_key_is_refused_and_named(table: frazil.Table) -> None:
    before = unchanged(table)
    with pytest.raises(InvalidRequestError, match=r"more than one row with id = 3\n.*Keep one row"):
        table.upsert([*ROWS, {"id": 3}], keys=["id"], engine="local")
    with pytest.raises(InvalidRequestError, match=r"more than one row with id = None, k = 'x'"):
        table.upsert([{"id": None, "k": "x", "v": 1}] * 2, keys=["id", "k"], engine="local")
    with pytest.raises(InvalidRequestError, match=r"more than one row with id = 0; id = 1; id = 2; and more\n"):
        table.upsert([*ROWS, *ROWS], keys=["id"], engine="local")
    with pytest.raises(InvalidRequestError, match=r"more than one row with id = 1; id = 4\n"):
        table.upsert([*ROWS, ROWS[4], ROWS[1]], keys=["id"], engine="local")
    merge = table.merge([{"id": 3, "v": 1}, {"id": 3, "v": 2}], on="target.id = source.id", engine="local")
    with pytest.raises(InvalidRequestError, match=r"more than one row of the source: .*'id': 3.*'id': 3"):
        merge.when_matched("source.v = 1").update({"v": "source.v"}).execute()
    assert unchanged(table) == before
    table.merge([{"id": 3}, {"id": 3}], on="target.id = source.id", engine="local").when_matched().delete().execute()
    assert 3 not in found(table)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda t: t.upsert([{"id": 1}], keys=["nokey"], engine="local"), FieldNotFoundError, "nokey"),
        (lambda t: t.upsert([{"k": "x"}], keys=["id"], engine="local"), FieldNotFoundError, "the source has no column"),
        (lambda t: t.upsert(ROWS, keys="id", engine="local"), InvalidRequestError, "list of names"),
        (lambda t: t.upsert(ROWS, keys=[], engine="local"), InvalidRequestError, "list of names"),
        (lambda t: t.upsert(pa.table({"id": [1]}), keys=["id"], engine="local"), SchemaMismatchError, "lacks k, v"),
        (
            lambda t: t.upsert(pa.table({"id": ["x"], "k": ["y"], "v": [1]}), keys=["id"], engine="local"),
            UnsupportedError,
            "text is compared with text",
        ),
        (
            lambda t: t.upsert(pa.table({"id": [1], "k": ["y"], "v": ["x"]}), keys=["id"], engine="local"),
            SchemaMismatchError,
            "v: string cannot be written as int",
        ),
        (
            lambda t: t.upsert(pa.table({"id": [1], "k": ["y"], "v": [2**40]}), keys=["id"], engine="local"),
            InvalidRequestError,
            "1099511627776 does not fit int",
        ),
        (lambda t: t.update({"v": "'x'"}, engine="local"), SchemaMismatchError, "string cannot be written as int"),
        (lambda t: t.update({"v": "1.5"}, engine="local"), InvalidRequestError, "1.5 does not fit int"),
        (lambda t: t.update({"v": "v / 0"}, engine="local"), InvalidRequestError, "divide by zero"),
        (lambda t: t.update({"v": "v + 2147483647"}, engine="local"), InvalidRequestError, "does not fit int"),
        (lambda t: t.update({"nothing": "1"}, engine="local"), FieldNotFoundError, "nothing"),
        (lambda t: t.update({}, engine="local"), InvalidRequestError, "no column is assigned"),
        (lambda t: t.update({"v": "1", "V": "2"}, engine="local"), InvalidRequestError, "twice"),
        (lambda t: t.delete("v + 1", engine="local"), InvalidRequestError, "not true or false"),
        (
            lambda t: t.merge(ROWS, on="target.id = source.id", engine="local").execute(),
            InvalidRequestError,
            "no clause",
        ),
        (lambda t: t.delete("id = 10 / (v - v)", engine="local"), InvalidRequestError, "divide by zero"),
    ],
)
def test_invalid_input_changes_nothing_and_is_reported(
    table: frazil.Table, change: Any, error: type[Exception], match: str
) -> None:
    before = unchanged(table)
    with pytest.raises(error, match=match):
        change(table)
    assert unchanged(table) == before


def test_required_column_rejects_null() -> None:
    for mode in ("copy-on-write", "merge-on-read"):
        table = new_table(3, mode, "id bigint not null, v int not null")
        table.append([{"id": 1, "v": 1}, {"id": 2, "v": 2}])
        before = unchanged(table)
        with pytest.raises(SchemaMismatchError, match="required column 'v'"):
            table.update({"v": "nullif(v, 2)"}, engine="local")
        with pytest.raises(SchemaMismatchError, match="required column 'v'"):
            table.upsert([{"id": 5, "v": None}], keys=["id"], engine="local")
        merge = table.merge([{"id": 7}], on="target.id = source.id", engine="local")
        with pytest.raises(SchemaMismatchError, match="'v' is not assigned"):
            merge.when_not_matched().insert({"id": "id"}).execute()
        assert unchanged(table) == before


@pytest.mark.parametrize("error", [OSError("broken pipe"), KeyboardInterrupt()])
def test_failing_source_leaves_no_files(table: frazil.Table, error: BaseException) -> None:
    before = unchanged(table)

    def batches() -> Iterator[pa.RecordBatch]:
        yield arrow().to_batches()[0]
        raise error

    changes: list[Callable[[Any], Any]] = [
        lambda data: table.upsert(data, keys=["id"], engine="local"),
        lambda data: table.overwrite(data, where="id % 2 = 1", engine="local"),
        lambda data: table.merge(data, on="target.id = source.id", engine="local").when_matched().delete().execute(),
    ]
    for change in changes:
        with pytest.raises((FrazilError, KeyboardInterrupt, OSError)):
            change(pa.RecordBatchReader.from_batches(arrow().schema, batches()))
        assert unchanged(table) == before


def test_ctrl_c_while_writing_leaves_no_files(table: frazil.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    before = unchanged(table)
    calls = itertools.count()
    from frazil.change_rows import change_rows

    def interrupted(*arguments: Any) -> Any:
        if next(calls) == 0:
            return plain(*arguments)
        raise KeyboardInterrupt

    plain = change_rows._NewFiles.close
    monkeypatch.setattr(change_rows._NewFiles, "close", interrupted)
    table_of_two = [{**ROWS[1], "v": -1}, {"id": 800}]
    next(calls)
    with pytest.raises(KeyboardInterrupt):
        table.upsert(table_of_two, keys=["id"], engine="local")
    assert unchanged(table) == before


def test_columns_differing_in_case_get_their_own_values() -> None:
    lake = frazil.connect("memory:", catalog="memory")
    table = lake.create_table("db.t", "id bigint, m int, M int")
    table.append([{"id": 1, "m": 1, "M": 10}])
    table.upsert([{"id": 1, "M": 20, "m": 2}], keys=["id"], engine="local")
    assert table.refresh().scan().to_arrow().to_pylist() == [{"id": 1, "m": 2, "M": 20}]
    with pytest.raises(SchemaMismatchError, match="the source lacks m"):
        table.upsert(pa.table({"id": [1], "M": [30], "m_1": [3]}), keys=["id"], engine="local")
    other = lake.create_table("db.u", "id bigint, mm int")
    with pytest.raises(InvalidRequestError, match="Cannot match the column mm"):
        other.upsert(pa.table({"id": [1], "MM": [30], "Mm": [3]}), keys=["id"], engine="local")


@pytest.mark.parametrize(
    ("where", "value", "left"),
    [("d > :x", -math.inf, [1]), ("d >= :x", math.inf, [0, 1]), ("d = :x", math.nan, [0, 1, 2])],
)
def test_infinity_and_nan_are_parameter_values(where: str, value: float, left: list[int]) -> None:
    lake = frazil.connect("memory:", catalog="memory")
    table = lake.create_table("db.t", "id int, d double")
    table.append([{"id": at, "d": one} for at, one in enumerate((0.5, -math.inf, math.inf, math.nan))])
    table.delete(where, engine="local", x=value)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == left
    table.update({"d": ":x"}, "id = 1", engine="local", x=value)
    (found,) = table.scan("id = 1").to_arrow()["d"].to_pylist()
    assert str(found) == str(value)


def test_one_row_change_reads_the_manifest_list_once_without_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = frazil.connect(tmp_path / "lake")
    properties = {"write.update.mode": "merge-on-read"}
    table = lake.create_table("db.t", "id bigint, v bigint", format_version=3, properties=properties)
    for at in range(3):
        table.append([{"id": at, "v": 0}])
    lists: list[str] = []
    threads: list[str] = []
    start = threading.Thread.start

    def counted(data: bytes, *, path: str) -> Any:
        lists.append(path)
        return decode_manifest_list(data, path=path)

    def started(self: threading.Thread) -> None:
        threads.append(self.name)
        start(self)

    monkeypatch.setattr(read_manifests, "decode_manifest_list", counted)
    monkeypatch.setattr(threading.Thread, "start", started)
    table.update({"v": "v + 1"}, where="id = 1", engine="local")
    assert len(lists) == 1
    assert threads == []
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [0, 0, 1]
