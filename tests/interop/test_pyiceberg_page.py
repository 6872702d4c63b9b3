"""`docs/migrate-from-pyiceberg.md`: every row of its tables is run on both sides and comes to the same."""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.catalog.sql import SqlCatalog
from frazil.catalog.sqlite import SqliteDatabase
from frazil.storage.local import LocalStorage
from frazil.table.lake import Lake

pytest.importorskip("pyiceberg")
pytestmark = pytest.mark.interop

PAGE = (Path(__file__).parents[2] / "docs" / "migrate-from-pyiceberg.md").read_text()
RUN, _, REST = PAGE.partition("\nNot run there:\n")
READING = ("Tables", "Reading", "Metadata tables")
SECTIONS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", RUN, re.MULTILINE | re.DOTALL))
ROWS = {head: re.findall(r"^\| `(.+?)` \| `(.+?)` \|", text, re.MULTILINE) for head, text in SECTIONS.items()}
READS = [row for head in READING for row in ROWS[head]]
CHANGES = [row for head, many in ROWS.items() if head not in READING for row in many]
ARROW = pa.table({"id": pa.array([10, 11]), "kind": ["a", "z"], "small": pa.array([1, 2], pa.int32())})
ARROW = ARROW.cast(
    pa.schema([pa.field("id", pa.int64(), nullable=False), ARROW.schema.field(1), ARROW.schema.field(2)])
)
SCHEMA = "id bigint not null, kind string, small int"


def make_lake(folder: Path) -> Lake:
    folder.mkdir()
    database = SqliteDatabase(folder / "catalog.db")
    lake = Lake(SqlCatalog("lake", f"file://{folder}", database, LocalStorage(durable=False)))
    lake.create_namespace("db", {"owner": "me"})
    lake.create_namespace("empty")
    for name, partition_by in (("t", []), ("parted", ["kind"])):
        table = lake.create_table(f"db.{name}", SCHEMA, properties={"owner": "me"}, partition_by=partition_by)
        for at, kind in enumerate("abc"):
            table.append([{"id": at + 1, "kind": kind, "small": at}])
        table.create_tag("tagged", table.snapshots[0].snapshot_id)
        table.create_branch("work")
    return lake


def names_of(lake: Lake, folder: Path) -> dict[str, Any]:
    """Return what both sides' code can name: one lake is as good as the other."""
    table = lake.table("db.t")
    first, middle, last = (one.snapshot_id for one in table.snapshots)
    pq.write_table(ARROW, folder / "other.parquet")
    return {
        "arrow": ARROW,
        "changed": ARROW.set_column(0, ARROW.schema.field(0), pa.array([1, 11])),
        "first": first,
        "middle": middle,
        "last": last,
        "moment": table.snapshots[0].timestamp_ms,
        "distant": datetime.datetime(2000, 1, 1),
        "file": f"file://{folder}/other.parquet",
        "place": f"file://{folder}/elsewhere",
    }


def run(code: str, names: dict[str, Any]) -> Any:
    try:
        ast.parse(code, mode="eval")
    except SyntaxError:
        exec(code, names)
        return None
    return eval(code, names)


def plain(value: Any, folder: Path) -> Any:
    """Return an answer in a form that both libraries have."""
    if isinstance(value, pl.DataFrame):
        value = value.to_arrow()
    if isinstance(value, pd.DataFrame):
        value = pa.Table.from_pandas(value, preserve_index=False)
    if isinstance(value, pa.Table):
        return sorted(value.to_pylist(), key=str)
    if isinstance(value, str):
        return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>", value.replace(str(folder), "<lake>"))
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return sorted(value)
    return value if isinstance(value, bool | int | float | tuple | list | dict) else None


def state_of(lake: Lake, folder: Path) -> dict[str, Any]:
    """Return what a lake holds: names, properties, and of each table its columns, layout, history and rows."""
    found: dict[str, Any] = {"namespaces": {one: lake.namespace_properties(one) for one in lake.list_namespaces()}}
    for identifier in sorted(lake.list_tables("db")):
        table = lake.table(identifier)
        heads = {name: table.metadata.snapshot(ref.snapshot_id).sequence_number for name, ref in table.refs.items()}
        found[".".join(identifier)] = {
            "columns": [(part.name, str(part.field_type), part.required, part.doc) for part in table.schema],
            "identifiers": sorted(table.schema.identifier_field_ids),
            "spec": [(part.name, str(part.transform)) for part in table.spec.fields if not part.transform.is_void],
            "order": [str(part) for part in table.sort_order.fields],
            "properties": {key: value for key, value in table.properties.items() if key in ("owner", "a")},
            "heads": {name: at for name, at in heads.items() if name not in ("main", "work")},
            "refs": sorted(heads),
            "rows": plain(table.scan().to_arrow(), folder),
            "work": plain(table.scan(ref="work").to_arrow(), folder) if "work" in heads else None,
        }
    return found


class Pair:
    """Two lakes that are alike: one for PyIceberg, one for frazil."""

    def __init__(self, folder: Path) -> None:
        from pyiceberg.catalog.sql import SqlCatalog as Peer
        from pyiceberg.transforms import BucketTransform, IdentityTransform
        from pyiceberg.types import LongType

        self.theirs_folder, self.ours_folder = folder / "theirs", folder / "ours"
        self.beside, self.lake = make_lake(self.theirs_folder), make_lake(self.ours_folder)
        self.peer = Peer(
            "lake", uri=f"sqlite:///{self.theirs_folder}/catalog.db", warehouse=f"file://{self.theirs_folder}"
        )
        self._theirs = names_of(self.beside, self.theirs_folder) | {
            "catalog": self.peer,
            "LongType": LongType,
            "BucketTransform": BucketTransform,
            "IdentityTransform": IdentityTransform,
        }
        self._ours = names_of(self.lake, self.ours_folder) | {"lake": self.lake}
        self._ours["distant"] = self._ours["distant"].replace(tzinfo=datetime.UTC)

    def check(self, theirs: str, ours: str) -> None:
        tables = {"table": self.peer.load_table("db.t"), "parted": self.peer.load_table("db.parted")}
        answer = run(theirs, self._theirs | tables)
        found = run(ours, self._ours | {"t": self.lake.table("db.t"), "parted": self.lake.table("db.parted")})
        assert plain(found, self.ours_folder) == plain(answer, self.theirs_folder)

    def check_states(self) -> None:
        assert state_of(self.lake, self.ours_folder) == state_of(self.beside, self.theirs_folder)

    def close(self) -> None:
        self.peer.close()
        self.beside.close()
        self.lake.close()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("lakes"))
    yield made
    made.close()


@pytest.mark.filterwarnings("ignore:Iceberg scan planning with the polars_iceberg plugin")
@pytest.mark.parametrize("theirs, ours", READS)
def test_examples_of_the_page_return_the_same(pair: Pair, theirs: str, ours: str) -> None:
    pair.check(theirs, ours)


@pytest.mark.parametrize("theirs, ours", CHANGES)
def test_examples_of_the_page_change_a_lake_alike(theirs: str, ours: str, tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    try:
        pair.check(theirs, ours)
        if "close()" not in ours:
            pair.check_states()
    finally:
        pair.close()


def calls_of(*classes: type) -> list[tuple[str, str]]:
    return [(one.__name__, name) for one in classes for name in dir(one) if not name.startswith("_")]


def test_page_names_every_method_of_pyiceberg() -> None:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import DataScan, IncrementalAppendScan, Table, Transaction
    from pyiceberg.table.inspect import InspectTable
    from pyiceberg.table.maintenance import MaintenanceTable
    from pyiceberg.table.update.schema import UpdateSchema
    from pyiceberg.table.update.snapshot import ExpireSnapshots, ManageSnapshots
    from pyiceberg.table.update.sorting import UpdateSortOrder
    from pyiceberg.table.update.spec import UpdateSpec
    from pyiceberg.table.update.statistics import UpdateStatistics

    calls = calls_of(
        Catalog, Table, Transaction, DataScan, IncrementalAppendScan, InspectTable, MaintenanceTable, UpdateSchema,
        ExpireSnapshots, ManageSnapshots, UpdateSortOrder, UpdateSpec, UpdateStatistics,
    )  # fmt: skip
    assert len(calls) > 100
    assert sorted({f"{owner}.{name}" for owner, name in calls if not re.search(rf"\b{name}\b", PAGE)}) == []


def test_page_has_the_generated_rows() -> None:
    assert len(READS) > 50 and len(CHANGES) > 40
    assert "`frazil.connect(warehouse" in REST
