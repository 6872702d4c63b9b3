"""Reading some pages of a row group gives the rows that reading all of it gives, and decodes fewer of them."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.datafile import parquet_pages, read_parquet

ROWS = 2000
DDL = (
    "id bigint, few string, text string, i int, f float, d double, o boolean, day date, at timestamptz, nt timestamp, "
    "p decimal(9, 2), big decimal(30, 3), b binary, s struct<x: int, y: string>, xs array<int>"
)
FLAT = ["id", "few", "text", "i", "f", "d", "o", "day", "at", "nt", "p", "big", "b"]
LAYOUTS = [
    {"write.parquet.page-row-limit": "100"},
    {"write.parquet.page-row-limit": "37", "write.parquet.compression-codec": "uncompressed"},
    {"write.parquet.page-size-bytes": "700", "write.parquet.compression-codec": "gzip"},
    {"write.parquet.page-row-limit": "250", "write.parquet.page-version": "v2"},
    {"write.parquet.row-group-size-bytes": "20000", "write.parquet.page-row-limit": "50"},
]


def make_rows(chance: random.Random) -> list[dict[str, Any]]:
    def maybe(value: Any, share: float = 0.1) -> Any:
        return None if chance.random() < share else value

    start = datetime.datetime(2024, 1, 1)
    rows = []
    for at in range(ROWS):
        moment = start + datetime.timedelta(minutes=at)
        number = chance.randint(-1000, 1000)
        rows.append(
            {
                "id": at,
                # A whole page of nulls, here and there.
                "few": None if at % 500 < 200 else maybe(f"k{at // 400}"),
                "text": maybe(f"{at:05d} {'x' * chance.randint(0, 20)}"),
                "i": maybe(at // 7),
                "f": maybe(chance.choice([float("nan"), 0.0, -0.0, float("inf"), number / 4])),
                "d": maybe(at / 8 if at % 11 else float("nan"), 0.02),
                "o": maybe(at < ROWS // 2),
                "day": maybe(moment.date()),
                "at": maybe(moment.replace(tzinfo=datetime.UTC)),
                "nt": maybe(moment),
                "p": maybe(Decimal(at) / 100),
                "big": maybe(Decimal(at * 10**20)),
                "b": maybe(at.to_bytes(4, "big")),
                "s": maybe({"x": maybe(at), "y": maybe(str(at))}),
                "xs": maybe([number] * (at % 3)),
            }
        )
    return rows


def make_condition(chance: random.Random, rows: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    parts: list[str] = []
    given: dict[str, Any] = {}
    for number in range(chance.randint(1, 3)):
        name = chance.choice(["id", "at", "text", *FLAT, "s.x"])
        kind = chance.choice(["=", "=", "=", "<", ">=", "between", "in", "in", "is null", "is not null", "!="])
        if kind.startswith("is"):
            parts.append(f"{name} {kind}")
            continue
        values: list[Any] = []
        while len(values) < 2:
            row: Any = chance.choice(rows)
            for step in name.split("."):
                row = None if row is None else row[step]
            if row is not None and row == row:
                values.append(row)
        names = [f"p{number}_{at}" for at in range(2)]
        given |= dict(zip(names, sorted(values), strict=True))
        if kind == "between":
            parts.append(f"{name} between :{names[0]} and :{names[1]}")
        elif kind == "in":
            parts.append(f"{name} in (:{names[0]}, :{names[1]})")
        else:
            del given[names[1]]
            parts.append(f"{name} {kind} :{names[0]}")
    return chance.choice([" and ", " and ", " or "]).join(parts), given


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pages were read one by one; row groups of any size are."""
    counted: list[int] = []
    plain = parquet_pages.ColumnPages.file_of

    def file_of(self: parquet_pages.ColumnPages, pages: Any, read_at: Any) -> bytes:
        counted.append(len(pages))
        return plain(self, pages, read_at)

    monkeypatch.setattr(parquet_pages.ColumnPages, "file_of", file_of)
    monkeypatch.setattr(read_parquet, "_MIN_ROWS_FOR_PAGES", 10)
    return counted


def make_table(folder: Path, layout: dict[str, str], rows: list[dict[str, Any]]) -> frazil.Table:
    lake = frazil.connect(folder / "lake")
    modes = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
    table = lake.create_table("db.t", DDL, format_version=3, properties={**layout, **modes})
    table.append(rows)
    return table


def shown(found: pa.Table) -> list[str]:
    return sorted(map(str, found.to_pylist()))


@pytest.mark.extended
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_page_reads_equal_row_group_reads(
    tmp_path: Path, layout: dict[str, str], decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(str(layout))
    rows = make_rows(chance)
    table = make_table(tmp_path, layout, rows)
    used = 0
    for _ in range(40):
        text, given = make_condition(chance, rows)
        columns = chance.choice([None, ["id", "d"], ["text", "few"], FLAT, FLAT])
        del decoded[:]
        found = table.scan(text, columns=columns, **given).to_arrow()
        used += bool(decoded)
        with monkeypatch.context() as whole:
            whole.setattr(read_parquet, "_MIN_ROWS_FOR_PAGES", 1 << 40)
            wanted = table.scan(text, columns=columns, **given).to_arrow()
        assert shown(found) == shown(wanted), (text, given)
    assert used >= 3


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_small_changes_read_single_pages(tmp_path: Path, layout: dict[str, str], decoded: list[int]) -> None:
    chance = random.Random(str(layout))
    rows = make_rows(chance)
    table = make_table(tmp_path, layout, [{**row, "s": None, "xs": None} for row in rows])
    model = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    for step in range(6):
        chosen = sorted(chance.sample(sorted(model), 3))
        where = " or ".join(f"id = {one}" for one in chosen)
        if step % 3 == 2:
            table.delete(where, engine="local")
            for one in chosen:
                del model[one]
        else:
            table.update({"text": "concat('new ', cast(id as string))", "i": "i + 1"}, where=where, engine="local")
            for one in chosen:
                row = model[one]
                model[one] = {**row, "text": f"new {one}", "i": None if row["i"] is None else row["i"] + 1}
    assert decoded
    assert shown(table.scan().to_arrow()) == sorted(map(str, model.values()))
    ids = table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    assert {row["id"]: row["_row_id"] for row in ids} == {one: one for one in model}


def test_row_lookup_reads_one_page_per_column(tmp_path: Path, decoded: list[int]) -> None:
    rows = make_rows(random.Random(1))
    table = make_table(tmp_path, {"write.parquet.page-row-limit": "100"}, rows)
    assert table.scan("id = 1234", columns=["id", "i"]).to_arrow()["id"].to_pylist() == [1234]
    assert [count for count in decoded if count] == [1, 1]


def test_batch_from_pages_has_the_usual_size(
    tmp_path: Path, decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(tmp_path, {"write.parquet.page-row-limit": "100"}, make_rows(random.Random(3)))
    monkeypatch.setattr(read_parquet, "BATCH_BYTES", 5000)
    found = list(table.scan("id < 50 or id between 500 and 1200", columns=["id", "text"]).to_batches())
    assert [one for batch in found for one in batch["id"].to_pylist()] == [*range(50), *range(500, 1201)]
    assert max(len(batch) for batch in found) < 100
    assert decoded


def test_contradictory_page_index_is_ignored(
    tmp_path: Path, decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(tmp_path, {"write.parquet.page-row-limit": "100"}, make_rows(random.Random(2)))
    plain = parquet_pages.find_pages

    def no_rows(footer: bytes, group: int, leaves: Any, rows: int, read_at: Any) -> Any:
        # As if the index were one of fewer rows than there are.
        return plain(footer, group, leaves, 50, read_at)

    monkeypatch.setattr(read_parquet, "find_pages", no_rows)
    assert table.scan("id = 1999").to_arrow().num_rows == 1
    assert not decoded
