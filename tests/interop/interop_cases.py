"""What the matrix of implementations is about: tables with known rows, each made by several producers.

A case is a script: it tells a producer, step by step, what to make, and returns the rows that every consumer must find.
A producer that cannot do a step says so with `CannotDo`; the page then shows why.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pandas  # type: ignore[import-untyped]

Row = dict[str, Any]
UTC = datetime.UTC


class CannotDo(Exception):
    """A step that an implementation does not have."""


class Producer(Protocol):
    """An implementation that makes tables. Types and transforms are the specification's names."""

    name: str

    def create(
        self,
        columns: str,
        *,
        version: int,
        partition_by: tuple[str, ...] = (),
        sort_by: tuple[str, ...] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None: ...

    def append(self, rows: list[Row]) -> None: ...

    def overwrite(self, rows: list[Row], where: str) -> None: ...

    def delete(self, where: str) -> None: ...

    def change_schema(self, *steps: tuple[str, ...]) -> None: ...

    def change_spec(self, *steps: tuple[str, ...]) -> None: ...

    def tag(self, name: str) -> None: ...

    def branch(self, name: str, rows: list[Row]) -> None: ...

    def delete_equal(self, column: str, values: list[str | None]) -> None: ...

    def metadata_location(self) -> str: ...


@dataclass(frozen=True)
class Case:
    """One line of the matrix."""

    name: str
    make: Callable[[Producer, int], list[Row]]
    versions: tuple[int, ...] = (1, 2, 3)
    ref: str | None = None


def numbers(first: int, last: int, **more: Callable[[int], Any]) -> list[Row]:
    return [{"id": at, **{name: make(at) for name, make in more.items()}} for at in range(first, last)]


def kind(at: int) -> str | None:
    return ["a", "b", "", None, "grüße 😀"][at % 5]


def appends(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null, kind string", version=version)
    first, second = numbers(0, 50, kind=kind), numbers(50, 80, kind=kind)
    producer.append(first)
    producer.append(second)
    return first + second


def an_empty_table(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null, kind string", version=version)
    return []


def _typed_rows() -> list[Row]:
    rows = [
        {
            "id": at,
            "b": at % 2 == 0,
            "i": at - 5,
            "f": at / 4,
            "d": float("nan") if at == 3 else at / 7,
            "dec": decimal.Decimal(at).scaleb(-2),
            "wide": decimal.Decimal(f"-12345678901234567890123456{at}.0123456789"),
            "day": datetime.date(1969, 12, 25) + datetime.timedelta(days=at),
            "ts": datetime.datetime(1969, 12, 31, 23, 59, 59, at) + datetime.timedelta(hours=at),
            "tz": datetime.datetime(2024, 2, 29, 12, tzinfo=UTC) + datetime.timedelta(microseconds=at),
            "s": kind(at),
            "u": uuid.UUID(int=at * 10**20),
            "x": bytes([at, 0, 255, 7]),
            "raw": bytes(range(at)),
        }
        for at in range(10)
    ]
    rows.append({"id": 10, **dict.fromkeys(list(rows[0])[1:])})
    return rows


def primitive_types(producer: Producer, version: int) -> list[Row]:
    producer.create(
        "id bigint not null, b boolean, i int, f float, d double, dec decimal(9,2), wide decimal(38,10), day date, "
        "ts timestamp, tz timestamptz, s string, u uuid, x fixed(4), raw binary",
        version=version,
    )
    rows = _typed_rows()
    producer.append(rows)
    return rows


def common_types(producer: Producer, version: int) -> list[Row]:
    producer.create(
        "id bigint not null, b boolean, i int, f float, d double, dec decimal(9,2), wide decimal(38,10), day date, "
        "ts timestamp, tz timestamptz, s string, raw binary",
        version=version,
    )
    rows = [{name: value for name, value in row.items() if name not in ("u", "x")} for row in _typed_rows()]
    producer.append(rows)
    return rows


def times(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null, t time", version=version)
    rows = numbers(0, 5, t=lambda at: datetime.time(at, 59, 58, at * 1001))
    producer.append(rows)
    return rows


def nested_types(producer: Producer, version: int) -> list[Row]:
    producer.create(
        "id bigint not null, st struct<a: int, deep: struct<b: string>>, l list<int>, m map<string, bigint>, "
        "ls list<struct<k: string, v: double>>",
        version=version,
    )
    rows = [
        {
            "id": at,
            "st": None if at == 4 else {"a": at, "deep": {"b": kind(at)}},
            "l": [] if at == 3 else list(range(at)),
            "m": {"x": at, "y": -at},
            "ls": [{"k": "p", "v": at / 2}],
        }
        for at in range(8)
    ]
    producer.append(rows)
    return rows


def _transformed(*terms: str) -> Callable[[Producer, int], list[Row]]:
    def make(producer: Producer, version: int) -> list[Row]:
        producer.create(
            "id bigint not null, kind string, day date, tz timestamptz", version=version, partition_by=terms
        )
        rows = numbers(
            0,
            40,
            kind=kind,
            day=lambda at: None if at == 7 else datetime.date(1969, 12, 20) + datetime.timedelta(days=at * 9),
            tz=lambda at: datetime.datetime(1969, 12, 31, 20, tzinfo=UTC) + datetime.timedelta(hours=at * 5),
        )
        producer.append(rows)
        return rows

    return make


def _of_every_type(*terms: str) -> Callable[[Producer, int], list[Row]]:
    def make(producer: Producer, version: int) -> list[Row]:
        producer.create(
            "id bigint not null, i int, dec decimal(9,2), wide decimal(38,10), day date, ts timestamp, tz timestamptz, "
            "s string, raw binary",
            version=version,
            partition_by=terms,
        )
        names = ("id", "i", "dec", "wide", "day", "ts", "tz", "s", "raw")
        rows = [{name: row[name] for name in names} for row in _typed_rows()]
        producer.append(rows)
        return rows

    return make


def nanoseconds(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null, t timestamp_ns, tz timestamptz_ns", version=version)
    first = pandas.Timestamp("1969-12-31 23:59:59.999999999")
    rows = numbers(
        0,
        5,
        t=lambda at: first + pandas.Timedelta(at * 7, "ns"),
        tz=lambda at: (first + pandas.Timedelta(at * 11, "ns")).tz_localize("UTC"),
    )
    producer.append(rows)
    return rows


def a_default(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null", version=version)
    producer.append(numbers(0, 5))
    producer.change_schema(("add", "n", "int", "7"))
    producer.append(numbers(5, 8, n=lambda at: at))
    return numbers(0, 5, n=lambda at: 7) + numbers(5, 8, n=lambda at: at)


def schema_changes(producer: Producer, version: int) -> list[Row]:
    producer.create("id int not null, a string, gone double, st struct<x: int, y: string>", version=version)
    producer.append(numbers(0, 10, a=kind, gone=float, st=lambda at: {"x": at, "y": str(at)}))
    producer.change_schema(
        ("rename", "a", "b"), ("drop", "gone"), ("promote", "id", "bigint"), ("add", "n", "int"),
        ("rename", "st.x", "z"), ("add", "st.w", "date"),
    )  # fmt: skip
    producer.change_schema(("add", "a", "string"))
    late = [
        {
            "id": 2**40 + at,
            "b": "new",
            "n": at,
            "a": "again",
            "st": {"z": at, "y": None, "w": datetime.date(2024, 1, 1)},
        }
        for at in range(5)
    ]
    producer.append(late)
    early = [
        {"id": at, "b": kind(at), "n": None, "a": None, "st": {"z": at, "y": str(at), "w": None}} for at in range(10)
    ]
    return early + late


def spec_changes(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null, kind string", version=version, partition_by=("kind",))
    first, second = numbers(0, 20, kind=kind), numbers(20, 40, kind=kind)
    producer.append(first)
    producer.change_spec(("remove", "kind"), ("add", "bucket(4, id)"))
    producer.append(second)
    return first + second


def sorted_rows(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null, kind string", version=version, sort_by=("kind desc nulls last", "id asc"))
    rows = numbers(0, 40, kind=kind)
    producer.append(rows)
    return rows


def overwritten(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null, kind string", version=version, partition_by=("kind",))
    producer.append([{"id": at, "kind": "a" if at < 10 else "b"} for at in range(20)])
    fresh = [{"id": at + 100, "kind": "a"} for at in range(5)]
    producer.overwrite(fresh, "kind = 'a'")
    return [{"id": at, "kind": "b"} for at in range(10, 20)] + fresh


def whole_files_deleted(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null, kind string", version=version, partition_by=("kind",))
    producer.append([{"id": at, "kind": "a" if at < 10 else "b"} for at in range(20)])
    producer.delete("kind = 'a'")
    return [{"id": at, "kind": "b"} for at in range(10, 20)]


def _rows_deleted(mode: str) -> Callable[[Producer, int], list[Row]]:
    def make(producer: Producer, version: int) -> list[Row]:
        producer.create("id bigint not null, kind string", version=version, properties={"write.delete.mode": mode})
        rows = numbers(0, 60, kind=kind)
        producer.append(rows)
        producer.delete("id >= 10 and id < 15")
        producer.delete("id = 3")
        return [row for row in rows if not (10 <= row["id"] < 15 or row["id"] == 3)]

    return make


def equality_deletes(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null, kind string", version=version)
    early, late = numbers(0, 30, kind=kind), numbers(30, 40, kind=kind)
    producer.append(early)
    producer.delete_equal("kind", ["a", None])
    producer.append(late)
    return [row for row in early if row["kind"] not in ("a", None)] + late


def branched(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null, kind string", version=version)
    rows, more = numbers(0, 10, kind=kind), numbers(10, 15, kind=kind)
    producer.append(rows)
    producer.branch("side", more)
    producer.append(numbers(20, 30, kind=kind))
    return rows + more


def tagged(producer: Producer, version: int) -> list[Row]:
    producer.create("id bigint not null, kind string", version=version)
    rows = numbers(0, 10, kind=kind)
    producer.append(rows)
    producer.tag("then")
    producer.append(numbers(10, 20, kind=kind))
    return rows


def compressed_metadata(producer: Producer, version: int) -> list[Row]:
    producer.create(
        "id bigint not null, kind string", version=version, properties={"write.metadata.compression-codec": "gzip"}
    )
    rows = numbers(0, 10, kind=kind)
    producer.append(rows)
    return rows


CASES = (
    Case("appends", appends),
    Case("an empty table", an_empty_table),
    Case("primitive types", primitive_types),
    Case("primitive types that Spark has", common_types),
    Case("time", times),
    Case("nested types", nested_types),
    Case("partitioned by identity", _transformed("kind")),
    Case("partitioned by bucket", _transformed("bucket(4, id)", "bucket(3, kind)")),
    Case("partitioned by truncate", _transformed("truncate(2, kind)", "truncate(10, id)")),
    Case("partitioned by year", _transformed("year(day)")),
    Case("partitioned by month", _transformed("month(tz)")),
    Case("partitioned by day", _transformed("day(tz)")),
    Case("partitioned by hour", _transformed("hour(tz)")),
    Case(
        "partitioned by buckets of every type",
        _of_every_type(
            "bucket(4, id)",
            "bucket(5, i)",
            "bucket(3, dec)",
            "bucket(3, wide)",
            "bucket(3, day)",
            "bucket(3, ts)",
            "bucket(3, tz)",
            "bucket(3, s)",
            "bucket(3, raw)",
        ),
    ),
    Case(
        "partitioned by truncations of every type",
        _of_every_type("truncate(3, i)", "truncate(7, id)", "truncate(5, dec)", "truncate(2, s)", "truncate(2, raw)"),
    ),
    Case("nanoseconds", nanoseconds, versions=(3,)),
    Case("a column with a default", a_default, versions=(3,)),
    Case("schema changes", schema_changes),
    Case("partition changes", spec_changes),
    Case("a sort order", sorted_rows),
    Case("overwritten rows", overwritten),
    Case("whole files deleted", whole_files_deleted),
    Case("rows deleted, copy-on-write", _rows_deleted("copy-on-write")),
    Case("rows deleted, merge-on-read", _rows_deleted("merge-on-read"), versions=(2, 3)),
    Case("equality deletes", equality_deletes, versions=(2, 3)),
    Case("a branch", branched, ref="side"),
    Case("a tag", tagged, ref="then"),
    Case("compressed metadata", compressed_metadata),
)
