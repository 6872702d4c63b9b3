"""Tables that PyIceberg wrote, and changed, have no problems: the check accepts what another sound writer does."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil

pytest.importorskip("sqlalchemy", reason="PyIceberg's SqlCatalog needs SQLAlchemy")
pyiceberg_sql = pytest.importorskip("pyiceberg.catalog.sql")

pytestmark = pytest.mark.interop


def rows(start: int, end: int) -> pa.Table:
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    return pa.table(
        {
            "id": pa.array(range(start, end), pa.int64()),
            "ts": pa.array([moment + datetime.timedelta(hours=8 * at) for at in range(start, end)]),
            "kind": [f"a rather long text of kind {at % 3}" if at % 5 else None for at in range(start, end)],
            "score": [float("nan") if at % 4 == 0 else at / 3 for at in range(start, end)],
        },
        schema=pa.schema(
            [
                ("id", pa.int64()),
                ("ts", pa.timestamp("us", "UTC")),
                ("kind", pa.string()),
                ("score", pa.float64()),
            ]
        ),
    )


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_table_that_pyiceberg_wrote_has_no_problems(tmp_path: Path, version: str) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    theirs: Any = pyiceberg_sql.SqlCatalog("lake", uri=uri, warehouse=f"file://{tmp_path}/wh")
    try:
        theirs.create_namespace("db")
        table = theirs.create_table("db.t", rows(0, 1).schema, properties={"format-version": version})
        with table.update_spec() as spec:
            spec.add_identity("kind")
        for start in range(0, 40, 10):
            table.append(rows(start, start + 10))
        table.delete("id = 17")
        table.overwrite(rows(100, 105), overwrite_filter="id < 5")
        with table.update_schema() as schema:
            schema.rename_column("kind", "sort")
        with frazil.connect(tmp_path / "wh", catalog=uri) as lake:
            ours = lake.table("db.t")
            report = ours.check(bounds=True)
            assert report.ok, str(report)
            assert report.facts["snapshots"] >= 6
            ours.append(rows(200, 210).rename_columns({"kind": "sort"}))
            report = ours.check(bounds=True)
            assert report.ok, str(report)
    finally:
        theirs.close()
