"""Random histories of a table, and what each snapshot must read as on Spark. Import as `tests.spark.history_model`.

`tests/support/scan_model.py` has the rows and the rules; here are the operations that make a history hard to read on
Spark: names that come back with another meaning, partitions that change, files that are replaced, versions that rise.
After every commit the rows are kept, so that all snapshots can be read again from the last state of the metadata.
"""

from __future__ import annotations

import datetime
import math
import random
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from frazil.datafile.value_arrays import values_of
from frazil.errors import SchemaChangeError
from frazil.spark.arrow_types import to_arrow_type
from frazil.spark.types import shown_schema, shown_type
from frazil.spec.data_file import DataFile
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.types import (
    STRING,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNsType,
    TimestamptzNsType,
    TimeType,
    Type,
    UuidType,
)
from frazil.storage.local import LocalStorage
from tests.support.file_writers import rows_to_table
from tests.support.scan_model import SCHEMA, Model, ModelFile, _by_id, random_field
from tests.support.tables import TableBuilder

SPECS: tuple[tuple[str, ...], ...] = ((), ("part",), ("bucket(3, id)",), ("truncate(1, text)",), ("part", "text"))
TERMS = ("part", "bucket(3, id)", "bucket(2, text)", "truncate(2, text)", "text", "truncate(4, id)")
NEW_TYPES = ("string", "double", "date", "long", "decimal(7, 3)", "timestamptz", "timestamp", "uuid", "boolean", "time")
V3_TYPES = ("timestamp_ns", "timestamptz_ns")
DEFAULTS: tuple[tuple[str, Any], ...] = (
    ("int", 7),
    ("string", 'it\'s "a" \\ default'),
    ("double", -0.5),
    ("boolean", False),
    ("date", "2020-02-29"),
    ("timestamptz", "2020-02-29T01:02:03.000004+00:00"),
    ("timestamp", "2020-02-29T01:02:03.000004"),
    ("decimal(7, 3)", "-1.250"),
    ("uuid", "00000000-0000-0000-0000-0000000000ff"),
    ("long", 0),
    ("string", ""),
)
Row = dict[str, Any]
_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass
class Checkpoint:
    """A snapshot, the schema it is read with, and its rows."""

    snapshot_id: int
    schema: Schema
    rows: list[Row]


@dataclass
class History(Model):
    """A model that can do everything to a table, and remembers every snapshot."""

    checkpoints: list[Checkpoint] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def run(self, steps: int) -> None:
        """Do some random operations, appends first."""
        self._do(self.append)
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        """Do something."""
        operations = [self.append, self.append, self.evolve, self.evolve, self.evolve_spec, self.overwrite]
        version = self.table.metadata.format_version
        if version >= 2:
            operations += [self.delete_positions, self.delete_positions, self.delete_equal, self.delete_equal]
        if version < 3 and self.rng.random() < 0.4:
            operations = [self.upgrade]
        self._do(self.rng.choice(operations))

    def _do(self, operation: Any) -> None:
        before = self.table.snapshot
        operation()
        self.done.append(operation.__name__)
        snapshot = self.table.snapshot
        if snapshot is not None and snapshot is not before:
            row_ids = {one.data_file.file_path: one.data_file.first_row_id for one in self.table.live_files()}
            for one in self.files:
                one.first_row_id = row_ids[one.file.file_path]
            self.checkpoints.append(Checkpoint(snapshot.snapshot_id, self.table.schema, self.rows()))

    def rows(self, schema: Schema | None = None) -> list[Row]:
        """Return the live rows with metadata columns."""
        spec_ids = {one.file.file_path: one.file.spec_id for one in self.files}
        return [row | {"_spec_id": spec_ids[row["_file"]]} for row in super().rows(schema)]

    def with_partitions(self, rows: list[Row], kind: StructType) -> list[Row]:
        """Return rows with `_partition`, a struct of the fields of all specs."""
        tuples = {}
        for one in self.files:
            spec = self.table.metadata.spec(one.file.spec_id)
            values = {part.field_id: value for part, value in zip(spec.fields, one.file.partition, strict=True)}
            tuples[one.file.file_path] = {part.name: values.get(part.field_id) for part in kind.fields} or None
        return [row | {"_partition": tuples[row["_file"]]} for row in rows]

    # --- operations

    def append(self) -> None:
        """Append rows, a file for each partition."""
        self._commit(self._new_files())

    def overwrite(self) -> None:
        """Replace some files by new ones."""
        gone = self.rng.sample(self.files, min(len(self.files), self.rng.choice([1, 2])))
        paths = {one.file.file_path for one in gone}
        live = [entry.data_file for entry in self.table.live_files()]
        # A data file goes with its deletion vector; position delete files may stay behind.
        vectors = [one for one in live if one.is_deletion_vector and one.referenced_data_file in paths]
        self.files = [one for one in self.files if one.file.file_path not in paths]
        self._commit(self._new_files(), [*(one.file for one in gone), *vectors])

    def _new_files(self) -> list[ModelFile]:
        schema = self.table.schema
        rows = [self._new_row(schema, self.rng.choice([None, 0, 1])) for _ in range(self.rng.randrange(1, 14))]
        groups: dict[Any, list[Row]] = {}
        for row in rows:
            groups.setdefault(self._partition_of(row), []).append(row)
        options: dict[str, Any] = {"row_group_size": self.rng.choice([None, 2, 5])}
        made = []
        for partition, group in groups.items():
            file_format = self.rng.choice(self.formats)
            file = self.table.write_data(
                group, partition=partition, file_format=file_format, **(options if file_format == "parquet" else {})
            )
            made.append(ModelFile(file, 0, schema, [_by_id(schema.struct, row) for row in group]))
        return made

    def _new_row(self, schema: Schema, part: int | None) -> Row:
        row = super()._new_row(schema, part)
        for one in schema.fields:
            if isinstance(one.field_type, TimeType):
                row[one.name] = None if self.rng.random() < 0.2 else self.rng.randrange(86_400_000_000)
        return row

    def _partition_of(self, row: Row) -> tuple[Any, ...]:
        return self.table.partition_of(rows_to_table([row], self.table.schema), self.table.schema, self.table.spec)

    def _commit(self, made: list[ModelFile], gone: list[DataFile] | None = None) -> None:
        snapshot = self.table.commit(
            *[one.file for one in made], deleted=gone or (), manifests=self.rng.choice([1, 1, 2])
        )
        for one in made:
            one.sequence_number = snapshot.sequence_number
        self.files += made

    def delete_equal(self) -> None:
        """Delete rows that equal some keys: everywhere, or in the partition of some file."""
        schema = self.table.schema
        usable = [one for one in _comparable(schema) if self.rng.random() < 0.6] or ["id"]
        columns = self.rng.sample(usable, min(len(usable), self.rng.choice([1, 1, 2, 3])))
        ids = [schema.field(name).field_id for name in columns]
        stored = schema.project(ids)
        keys = [{part.name: self._key_value(part) for part in stored.fields} for _ in range(self.rng.randrange(1, 8))]
        spec, partition = self._place_of_delete()
        delete = self.table.write_equality_deletes(
            keys, columns, spec=spec, partition=partition, file_format=self.rng.choice(self.formats)
        )
        snapshot = self.table.commit(delete)
        wanted = [_by_id(stored.struct, key) for key in keys]
        for one in self.files:
            in_scope = spec.is_unpartitioned or (one.file.spec_id, one.file.partition) == (spec.spec_id, partition)
            if one.sequence_number >= snapshot.sequence_number or not in_scope:
                continue
            for at, row in enumerate(one.rows):
                if row is not None and any(self._equals(row, one.schema, key, ids) for key in wanted):
                    one.rows[at] = None

    def _place_of_delete(self) -> tuple[PartitionSpec, tuple[Any, ...]]:
        everywhere = [one for one in self.table.metadata.partition_specs if one.is_unpartitioned]
        if everywhere and (self.rng.random() < 0.4 or not self.files):
            spec = self.rng.choice(everywhere)
            return spec, (None,) * len(spec.fields)
        if not self.files:
            return self.table.spec, (None,) * len(self.table.spec.fields)
        chosen = self.rng.choice(self.files).file
        return self.table.metadata.spec(chosen.spec_id), chosen.partition

    def upgrade(self) -> None:
        """Raise the format version by one."""
        self.table.upgrade(self.table.metadata.format_version + 1)

    def evolve_spec(self) -> None:
        """Add or remove a partition field."""
        names = [one.name for one in self.table.spec.fields if not one.transform.is_void]
        try:
            if names and self.rng.random() < 0.5:
                self.table.update_spec(lambda u: u.remove_field(self.rng.choice(names)))
            elif len(names) < 3:
                self.table.update_spec(lambda u: u.add_field(self.rng.choice(TERMS)))
        except SchemaChangeError:
            # The field is there already.
            return

    def evolve(self) -> None:
        """Change the schema: what the model does, and names that return with another meaning."""
        kind = self.rng.choice(["model", "typed", "again", "taken over", "nested again", "nested rename", "move"])
        if kind == "model":
            super().evolve()
        else:
            try:
                self._evolve(kind)
            except SchemaChangeError:
                # A column that a partition field needs, or one that is the only one in its struct.
                return

    def _evolve(self, kind: str) -> None:
        schema, version = self.table.schema, self.table.metadata.format_version
        free = [one for one in schema.fields if one.field_id > 3]
        part = self.rng.choice(free) if free else None
        new_type = self.rng.choice(NEW_TYPES + (V3_TYPES if version >= 3 else ()))
        fresh = f"n{len(self.table.metadata.schemas)}"
        structs = [one for one in schema.fields if isinstance(one.field_type, StructType)]
        inner = self.rng.choice(structs) if structs else None
        if kind == "typed":
            if version >= 3 and self.rng.random() < 0.6:
                text, default = self.rng.choice(DEFAULTS)
                required = self.rng.random() < 0.3
                self.table.update_schema(lambda u: u.add_column(fresh, text, default=default, required=required))
            else:
                self.table.update_schema(lambda u: u.add_column(fresh, new_type))
        elif kind == "move" and part is not None:
            self.table.update_schema(lambda u: u.move_first(part.name))
        elif kind == "again" and part is not None:
            self.table.update_schema(lambda u: u.drop_column(part.name))
            self.table.update_schema(lambda u: u.add_column(part.name, new_type))
        elif kind == "taken over" and part is not None:
            self.table.update_schema(lambda u: u.rename_column(part.name, fresh))
            self.table.update_schema(lambda u: u.add_column(part.name, str(part.field_type)))
        elif inner is not None:
            assert isinstance(inner.field_type, StructType)
            child = self.rng.choice(inner.field_type.fields)
            path = f"{inner.name}.{child.name}"
            self.table.update_schema(lambda u: u.rename_column(path, fresh))
            if kind == "nested again":
                same = str(child.field_type)
                self.table.update_schema(lambda u: u.add_column(path, self.rng.choice([same, "string"])))


def _comparable(schema: Schema) -> list[str]:
    """Return the columns that equality deletes may compare: no floats, nothing in lists and maps."""
    found = []
    for field_id, part in schema.fields_by_id.items():
        above = schema.ancestors_of(field_id)
        is_reachable = all(isinstance(one.field_type, StructType) for one in above)
        is_plain = not part.field_type.is_nested and str(part.field_type) not in ("float", "double")
        # The time type's small values include negative ones, which are no times.
        if is_reachable and is_plain and not isinstance(part.field_type, TimeType):
            found.append(schema.name_of(field_id))
    return found


def make_history(folder: Path, seed: int, version: int, *, steps: int = 8, formats: tuple[str, ...] = ()) -> History:
    """Make a table with a random history in a folder."""
    rng = random.Random(f"{seed}-{version}-{formats}")
    table = TableBuilder(
        SCHEMA,
        partition_by=rng.choice(SPECS),
        format_version=version,
        storage=LocalStorage(),
        location=f"file://{folder}/t",
    )
    history = History(table, rng, formats or ("parquet",))
    history.run(steps)
    return history


# --- rows as Spark shows them


def shown_rows(rows: list[Row], schema: Schema) -> list[Row]:
    """Return rows of values in the form that Spark shows."""
    kinds = {part.name: part.field_type for part in schema.fields}
    return [
        {name: shown_value(value, kinds[name]) if name in kinds else value for name, value in row.items()}
        for row in rows
    ]


def shown_value(value: Any, kind: Type) -> Any:
    """Return a value in the form that Spark shows."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        return {part.name: shown_value(value[part.name], part.field_type) for part in kind.fields}
    if isinstance(kind, ListType):
        return [shown_value(one, kind.element_type) for one in value]
    if isinstance(kind, MapType):
        return {shown_value(key, kind.key_type): shown_value(one, kind.value_type) for key, one in value.items()}
    if isinstance(kind, UuidType):
        return str(value)
    if isinstance(kind, TimestampNsType | TimestamptzNsType):
        return value // 1000
    if isinstance(kind, TimeType):
        seconds, micros = divmod(value, 1_000_000)
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micros:06d}"
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def spark_rows(frame: DataFrame) -> list[Row]:
    """Return the rows of a DataFrame as plain values: instants and dates are numbers."""
    table = frame.toArrow()
    columns = [_plain(column.combine_chunks()) for column in table.columns]
    rows = zip(*columns, strict=True) if columns else [()] * table.num_rows
    return [dict(zip(table.column_names, row, strict=True)) for row in rows]


def _plain(array: Any) -> list[Any]:
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in _plain(chunk)]
    kind = array.type
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        columns = [_plain(array.field(at)) for at in range(kind.num_fields)]
        names = [kind.field(at).name for at in range(kind.num_fields)]
        found: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        found = found or [{} for _ in valid]
    elif pa.types.is_map(kind):
        keys, items = _plain(array.keys), _plain(array.items)
        ends = array.offsets.to_pylist()
        pairs = list(zip(keys, items, strict=True))
        found = [dict(pairs[start:end]) for start, end in pairwise(ends)]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values, ends = _plain(array.values), array.offsets.to_pylist()
        found = [values[start:end] for start, end in pairwise(ends)]
    elif pa.types.is_timestamp(kind):
        assert kind.unit == "us"
        found = array.cast(pa.int64()).to_pylist()
    elif pa.types.is_date(kind):
        found = array.cast(pa.int32()).to_pylist()
    else:
        found = array.to_pylist()
    return [value if is_valid else None for value, is_valid in zip(found, valid, strict=True)]


def arrow_rows(table: pa.Table, schema: Schema) -> list[Row]:
    """Return rows that were read in this process, in the form that Spark shows."""
    columns = [values_of(table.column(part.name), part.field_type) for part in schema.fields]
    names = [part.name for part in schema.fields]
    return shown_rows([dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)], schema)


def plain_frame(spark: SparkSession, rows: list[Row], schema: Schema) -> DataFrame:
    """Return rows of the shown form as a DataFrame that knows nothing of tables."""
    arrow = []
    for part in schema.fields:
        kind = to_arrow_type(shown_type(part.field_type, spark))
        arrow.append(pa.array([_arrow_value(row[part.name], part.field_type) for row in rows], kind))
    nullable = shown_schema(schema, spark)
    return spark.createDataFrame(pa.table(arrow, names=[part.name for part in schema.fields]), nullable)


def _arrow_value(value: Any, kind: Type) -> Any:
    if value is None:
        return None
    if isinstance(kind, StructType):
        return {part.name: _arrow_value(value[part.name], part.field_type) for part in kind.fields}
    if isinstance(kind, ListType):
        return [_arrow_value(one, kind.element_type) for one in value]
    if isinstance(kind, MapType):
        return [(_arrow_value(key, kind.key_type), _arrow_value(one, kind.value_type)) for key, one in value.items()]
    return value


# --- filters


def sql_literal(value: Any, kind: Type) -> str | None:
    """Return a shown value as a literal of Spark SQL, None where there is none."""
    name = str(kind)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if name == "date":
        return f"date_from_unix_date({value})"
    if name in ("timestamptz", "timestamptz_ns"):
        return f"timestamp_micros({value}L)"
    if name in ("timestamp", "timestamp_ns"):
        return f"timestampadd(MICROSECOND, {value}L, timestamp_ntz'1970-01-01')"
    if isinstance(value, float):
        text = {"inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), "NaN" if math.isnan(value) else repr(value))
        return f"cast('{text}' as {name})"
    if name.startswith("decimal"):
        return f"cast('{value}' as {name})"
    if isinstance(value, int):
        return f"cast('{value}' as bigint)" if abs(value) >= 2**31 or name == "long" else str(value)
    return None


def random_filter(rng: random.Random, rows: list[Row], schema: Schema, depth: int = 2) -> str:
    """Return a filter in Spark SQL over columns and parts of structs, often with values that rows have."""
    if depth > 0 and rng.random() < 0.4:
        left, right = (random_filter(rng, rows, schema, depth - 1) for _ in range(2))
        return rng.choice([f"({left}) and ({right})", f"({left}) or ({right})", f"not ({left})"])
    for _ in range(20):
        found = _random_test(rng, rows, schema)
        if found is not None:
            return found
    return "id > 0"


def _random_test(rng: random.Random, rows: list[Row], schema: Schema) -> str | None:
    part = rng.choice(schema.fields)
    path = [part]
    while isinstance(part.field_type, StructType):
        part = rng.choice(part.field_type.fields)
        path.append(part)
    column = ".".join(f"`{one.name}`" for one in path)
    if rng.random() < 0.15 or part.field_type.is_nested:
        return f"{column} is {rng.choice(['', 'not '])}null"
    values = [one for one in (_follow(row, path) for row in rows) if one is not None]
    if not values:
        values = [shown_value(random_field(part, rng), part.field_type)] if _has_values(part) else []
        values = [one for one in values if one is not None]
    literals = [sql_literal(one, part.field_type) for one in rng.choices(values, k=15)] if values else []
    if not literals or None in literals:
        return None
    texts = [one for one in literals if one is not None]
    shape = rng.randrange(8)
    if shape < 3:
        return f"{column} {rng.choice(['=', '<', '<=', '>', '>=', '!=', '<=>'])} {texts[0]}"
    if shape == 3:
        return f"{column} {rng.choice(['', 'not '])}in ({', '.join(texts[: rng.choice([1, 3, 15])])})"
    if shape == 4:
        return f"{column} between {texts[0]} and {texts[1]}"
    if shape == 5:
        return f"{texts[0]} {rng.choice(['<', '>=', '='])} {column}"
    return _special_test(rng, column, str(part.field_type), values[0], texts[0])


def _special_test(rng: random.Random, column: str, kind: str, value: Any, text: str) -> str | None:
    if kind == "string":
        prefix = sql_literal(value[: rng.choice([1, 20])], STRING)
        return rng.choice([f"startswith({column}, {prefix})", f"length({column}) = 1", f"{column} like 'a%'"])
    if kind in ("float", "double"):
        return rng.choice([f"isnan({column})", f"not isnan({column})", f"{column} = 0", f"{column} > 0.1"])
    if kind in ("timestamp", "timestamptz", "date"):
        return rng.choice(
            [
                f"cast({column} as date) {rng.choice(['=', '<', '>='])} cast({text} as date)",
                f"year({column}) {rng.choice(['=', '<=', '>'])} year({text})",
            ]
        )
    if kind == "boolean":
        return rng.choice([column, f"not {column}"])
    if kind in ("int", "long"):
        return rng.choice([f"{column} % 2 = 0", f"cast({column} as double) > 0", f"{column} = 1.5", f"{column} > -1"])
    return f"coalesce({column}, {text}) = {text}"


def _has_values(part: NestedField) -> bool:
    return not isinstance(part.field_type, TimeType)


def _follow(row: Row, path: list[NestedField]) -> Any:
    value: Any = row
    for part in path:
        value = None if value is None else value[part.name]
    return value


def random_scan_filter(rng: random.Random, rows: list[Row], schema: Schema, depth: int = 2) -> str:
    """Return a filter in the grammar of `scan()`; rows are of values as the table holds them."""
    if depth > 0 and rng.random() < 0.4:
        left, right = (random_scan_filter(rng, rows, schema, depth - 1) for _ in range(2))
        return rng.choice([f"({left}) and ({right})", f"({left}) or ({right})", f"not ({left})"])
    for _ in range(30):
        found = _random_scan_test(rng, rows, schema)
        if found is not None:
            return found
    return "id > 0"


def _random_scan_test(rng: random.Random, rows: list[Row], schema: Schema) -> str | None:
    part = rng.choice(schema.fields)
    path = [part]
    while isinstance(part.field_type, StructType):
        part = rng.choice(part.field_type.fields)
        path.append(part)
    column = ".".join(one.name for one in path)
    if part.field_type.is_nested:
        return None
    kind = str(part.field_type)
    if rng.random() < 0.2:
        return f"{column} is {rng.choice(['', 'not '])}null"
    if kind in ("float", "double") and rng.random() < 0.3:
        return f"{rng.choice(['', 'not '])}isnan({column})"
    values = [one for one in (_follow(row, path) for row in rows) if one is not None]
    literals = [_scan_literal(one, part.field_type) for one in rng.choices(values, k=15)] if values else []
    texts = [one for one in literals if one is not None]
    if not texts or len(texts) < len(literals):
        return None
    if kind == "string" and rng.random() < 0.3:
        return f"{rng.choice(['', 'not '])}startswith({column}, {texts[0]})"
    if rng.random() < 0.25:
        return f"{column} {rng.choice(['', 'not '])}in ({', '.join(texts[: rng.choice([1, 3, 15])])})"
    signs = ["=", "!="] if kind == "uuid" else ["=", "<", "<=", ">", ">=", "!="]
    return f"{column} {rng.choice(signs)} {texts[0]}"


def _scan_literal(value: Any, kind: Type) -> str | None:
    """Return a value as the grammar of `scan()` writes it, None for types that are left to other tests."""
    name = str(kind)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    if isinstance(value, UUID):
        return f"'{value}'"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if name in ("int", "long"):
        return str(value)
    if name == "date":
        return f"'{_EPOCH.date() + datetime.timedelta(days=value)}'"
    if name in ("timestamp", "timestamptz"):
        zone = "+00:00" if name == "timestamptz" else ""
        return f"'{(_EPOCH + datetime.timedelta(microseconds=value)).isoformat()}{zone}'"
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    return None
