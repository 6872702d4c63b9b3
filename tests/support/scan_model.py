"""A table as a dict of rows, beside the real one: what a scan must return.

Rows are kept by field id, as they were when they were written; deletes strike them out by the specification's own
words; reading looks a row up by the ids of today's schema. Every operation is done to the model and to a real
table, in a random order that a seed decides.
"""

from __future__ import annotations

import math
import random
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from frazil.spec.data_file import DataFile
from frazil.spec.schema import Schema
from frazil.spec.type_promotion import promote_value
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    Type,
    UuidType,
)
from tests.support.tables import TableBuilder

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "part", INT),
        NestedField(3, "text", STRING),
        NestedField(4, "num", INT),
        NestedField(5, "ratio", FLOAT),
        NestedField(6, "price", DecimalType(9, 2)),
        NestedField(7, "day", DATE),
        NestedField(8, "at", TIMESTAMPTZ),
        NestedField(9, "key", UUID),
        NestedField(10, "raw", BINARY),
        NestedField(11, "code", FixedType(4)),
        NestedField(12, "flag", BOOLEAN),
        NestedField(
            13,
            "info",
            StructType((NestedField(14, "a", INT), NestedField(15, "b", STRING), NestedField(16, "at", TIMESTAMP))),
        ),
        NestedField(17, "tags", ListType(18, STRING)),
        NestedField(
            19, "marks", MapType(20, STRING, 21, StructType((NestedField(22, "x", DOUBLE), NestedField(23, "y", INT))))
        ),
    )
)
FORMATS = ("parquet", "orc", "avro")
_WRITE_OPTIONS: dict[str, dict[str, list[Any]]] = {
    "parquet": {"row_group_size": [None, 2, 5], "store_schema": [False, True]},
    "orc": {},
    "avro": {"sync_interval": [16_000, 1], "codec": ["deflate", "null"]},
}


def random_value(kind: Type, rng: random.Random, *, is_small: bool = False) -> Any:
    """Return a value of a type; `is_small` picks from few, so that rows share values."""
    if isinstance(kind, StructType):
        return {part.name: random_field(part, rng, is_small=is_small) for part in kind.fields}
    if isinstance(kind, ListType):
        return [random_optional(kind.element_type, rng) for _ in range(rng.randrange(3))]
    if isinstance(kind, MapType):
        keys = {random_value(kind.key_type, rng) for _ in range(rng.randrange(3))}
        return {key: random_optional(kind.value_type, rng) for key in sorted(keys)}
    small = rng.randrange(-2, 3)
    if is_small or rng.random() < 0.6:
        return _value_of(kind, small)
    return _large_value_of(kind, rng)


def _value_of(kind: Type, number: int) -> Any:
    if isinstance(kind, StringType):
        return ["", "a", "b", "prefix-long-enough-to-be-cut", "\U0001f600"][number]
    if isinstance(kind, BinaryType):
        return bytes([number & 0xFF]) * (number + 2)
    if isinstance(kind, FixedType):
        return bytes([number & 0xFF]) * kind.length
    if isinstance(kind, UuidType):
        return uuid.UUID(int=number & 0xFF)
    if isinstance(kind, DecimalType):
        return Decimal(number).scaleb(-kind.scale)
    if isinstance(kind, FloatType | DoubleType):
        return [0.0, 0.5, math.nan, -0.0, -1.5][number]
    return number > 0 if isinstance(kind, BooleanType) else number


def _large_value_of(kind: Type, rng: random.Random) -> Any:
    if isinstance(kind, IntType):
        return rng.choice([IntType.MIN, IntType.MAX, rng.randrange(-1000, 1000)])
    if isinstance(kind, LongType):
        return rng.choice([LongType.MIN, LongType.MAX, rng.randrange(-(10**12), 10**12)])
    if isinstance(kind, FloatType | DoubleType):
        return rng.choice([math.inf, -math.inf, 2.0**-10, 12345.5])
    if isinstance(kind, DecimalType):
        return Decimal(rng.choice([-1, 1]) * (10**kind.precision - 1)).scaleb(-kind.scale)
    if isinstance(kind, StringType):
        return "".join(rng.choice("abé\U0001f600") for _ in range(rng.randrange(20)))
    if isinstance(kind, BinaryType):
        return rng.randbytes(rng.randrange(20))
    if isinstance(kind, FixedType):
        return rng.randbytes(kind.length)
    if isinstance(kind, UuidType):
        return uuid.UUID(bytes=rng.randbytes(16))
    if isinstance(kind, DateType):
        return rng.randrange(-30000, 60000)
    if isinstance(kind, BooleanType):
        return rng.random() < 0.5
    # Micro- and nanoseconds that ORC's decoder can hold: from 1900 to 2200.
    return rng.randrange(-2_208_988_800, 7_258_118_400) * 1_000_000 + rng.randrange(1_000_000)


def random_optional(kind: Type, rng: random.Random) -> Any:
    """Return null, sometimes, or a value."""
    return None if rng.random() < 0.25 else random_value(kind, rng)


def random_field(part: NestedField, rng: random.Random, *, is_small: bool = False) -> Any:
    """Return a value of a field, null sometimes where it may be."""
    if part.optional and rng.random() < 0.2:
        return None
    return random_value(part.field_type, rng, is_small=is_small)


@dataclass
class ModelFile:
    """A data file: its description, its sequence number, and its rows by field id; None where a row is deleted."""

    file: DataFile
    sequence_number: int
    schema: Schema
    rows: list[dict[int, Any] | None]
    first_row_id: int | None = None


@dataclass
class Model:
    """The rows of a table, and the table."""

    table: TableBuilder
    rng: random.Random
    formats: tuple[str, ...] = FORMATS
    files: list[ModelFile] = field(default_factory=list)
    next_id: int = 0

    # --- operations

    def append(self) -> None:
        """Append one or two files, each of one partition."""
        schema = self.table.schema
        made = []
        for _ in range(self.rng.choice([1, 1, 2])):
            part = self.rng.choice([None, 0, 1])
            rows = [self._new_row(schema, part) for _ in range(self.rng.randrange(1, 12))]
            file_format = self.rng.choice(self.formats)
            options = {name: self.rng.choice(values) for name, values in _WRITE_OPTIONS[file_format].items()}
            file = self.table.write_data(rows, file_format=file_format, **options)
            made.append((file, rows))
        snapshot = self.table.commit(*[file for file, _ in made], manifests=self.rng.choice([1, 2]))
        row_ids = {entry.data_file.file_path: entry.data_file.first_row_id for entry in self.table.live_files()}
        for file, rows in made:
            by_id = [_by_id(schema.struct, row) for row in rows]
            self.files.append(ModelFile(file, snapshot.sequence_number, schema, list(by_id), row_ids[file.file_path]))

    def _new_row(self, schema: Schema, part: int | None) -> dict[str, Any]:
        row = {one.name: random_field(one, self.rng, is_small=one.name == "text") for one in schema.fields}
        self.next_id += 1
        return row | {
            schema.name_of(1): self.next_id % 7 if self.rng.random() < 0.3 else self.next_id,
            schema.name_of(2): part,
        }

    def delete_positions(self) -> None:
        """Delete rows by position, of one or several files of a partition, with a file or with vectors."""
        by_partition: dict[Any, list[ModelFile]] = {}
        for one in self.files:
            by_partition.setdefault((one.file.spec_id, one.file.partition), []).append(one)
        if not by_partition:
            return
        group = self.rng.choice(list(by_partition.values()))
        chosen = self.rng.sample(group, min(len(group), self.rng.choice([1, 2])))
        picks = {
            one.file.file_path: sorted(self.rng.sample(range(len(one.rows)), self.rng.randrange(1, len(one.rows) + 1)))
            for one in chosen
        }
        if self.table.metadata.format_version >= 3:
            self._write_vectors(chosen, picks)
        else:
            rows = None
            if self.rng.random() < 0.3 and not any(None in one.rows for one in chosen):
                rows = self._rows_for(chosen, picks)
            files = {one.file: picks[one.file.file_path] for one in chosen}
            self.table.commit(
                self.table.write_position_deletes(
                    files,
                    rows=rows,
                    names_file=len(files) == 1 and self.rng.random() < 0.5,
                    file_format=self.rng.choice(self.formats),
                )
            )
        for one in chosen:
            for at in picks[one.file.file_path]:
                one.rows[at] = None

    def _rows_for(self, chosen: list[ModelFile], picks: dict[str, list[int]]) -> dict[tuple[str, int], dict[str, Any]]:
        return {
            (one.file.file_path, at): _today(one.rows[at] or {}, self.table.schema.struct, one.schema)
            for one in chosen
            for at in picks[one.file.file_path]
        }

    def _write_vectors(self, chosen: list[ModelFile], picks: dict[str, list[int]]) -> None:
        """Write vectors that hold all positions deleted so far, and drop those they replace."""
        live = [entry.data_file for entry in self.table.live_files()]
        replaced = []
        for one in chosen:
            path = one.file.file_path
            known = [at for at, row in enumerate(self._positions_of(one)) if row]
            picks[path] = sorted({*picks[path], *known})
            replaced += [file for file in live if file.is_deletion_vector and file.referenced_data_file == path]
        vectors = self.table.write_vectors({one.file: picks[one.file.file_path] for one in chosen})
        self.table.commit_vectors(vectors, replaced)

    def _positions_of(self, one: ModelFile) -> list[bool]:
        return [row is None for row in one.rows]

    def delete_equal(self) -> None:
        """Delete rows that equal some keys, of a partition or of the whole table."""
        schema = self.table.schema
        names = ["id", "text", "num", "price", "day", "at", "key", "raw", "code", "flag", "info.a", "info.b"]
        usable = [name for name in names if schema.find_field(name) is not None]
        columns = self.rng.sample(usable, self.rng.choice([1, 1, 2, 3]))
        ids = [schema.field(name).field_id for name in columns]
        stored = schema.project(ids)
        keys = [{part.name: self._key_value(part) for part in stored.fields} for _ in range(self.rng.randrange(1, 8))]
        spec, partition = self.table.spec, self.rng.choice([None, 0, 1])
        is_global = self.rng.random() < 0.3
        specs = [one for one in self.table.metadata.partition_specs if one.is_unpartitioned]
        if is_global and specs:
            spec = specs[0]
        delete = self.table.write_equality_deletes(
            keys,
            columns,
            spec=spec,
            partition=(partition,) if spec.fields else (),
            file_format=self.rng.choice(self.formats),
        )
        snapshot = self.table.commit(delete)
        wanted = [_by_id(stored.struct, key) for key in keys]
        for one in self.files:
            in_scope = not spec.fields or (one.file.spec_id == spec.spec_id and one.file.partition == (partition,))
            if one.sequence_number >= snapshot.sequence_number or not in_scope:
                continue
            for at, row in enumerate(one.rows):
                if row is not None and any(self._equals(row, one.schema, key, ids) for key in wanted):
                    one.rows[at] = None

    def _key_value(self, part: NestedField) -> Any:
        """Return a value that rows are likely to have."""
        rows = [(row, one.schema) for one in self.files for row in one.rows if row is not None]
        if rows and self.rng.random() < 0.7:
            row, written = self.rng.choice(rows)
            value = _read(row, part, written)
        else:
            value = random_field(part, self.rng, is_small=True)
        if isinstance(part.field_type, StructType) and value is not None:
            return {one.name: value[one.name] for one in part.field_type.fields}
        return self.next_id if value is None and part.required else value

    def _equals(self, row: dict[int, Any], written: Schema, key: dict[int, Any], ids: list[int]) -> bool:
        schema = self.table.schema
        for field_id in ids:
            ours = _lookup(row, schema, field_id, written)
            theirs = _lookup(key, schema, field_id, schema)
            if ours != theirs or (ours is None) != (theirs is None):
                return False
        return True

    def evolve(self) -> None:
        """Change the schema in one random way that is always allowed."""
        schema, version = self.table.schema, self.table.metadata.format_version
        choices = ["add", "rename", "long", "double", "decimal", "drop", "nested"]
        if version >= 3:
            choices += ["date", "default"]
        kind = self.rng.choice(choices)
        name = f"c{schema.highest_field_id}_{len(self.table.metadata.schemas)}"

        def promote(field_id: int, wanted: Type, became: Type) -> None:
            part = schema.find_field(field_id)
            if part is not None and part.field_type == wanted:
                self.table.update_schema(lambda u: u.set_type(schema.name_of(field_id), became))

        if kind == "add":
            self.table.update_schema(lambda u: u.add_column(name, self.rng.choice(["string", "double", "date"])))
        elif kind == "default":
            self.table.update_schema(lambda u: u.add_column(name, "int", default=7, required=self.rng.random() < 0.5))
        elif kind == "rename":
            part = self.rng.choice([one for one in schema.fields if one.field_id > 3])
            self.table.update_schema(lambda u: u.rename_column(part.name, name))
        elif kind == "drop":
            part = self.rng.choice([one for one in schema.fields if one.field_id > 3])
            self.table.update_schema(lambda u: u.drop_column(part.name))
        elif kind == "nested":
            structs = [one for one in schema.fields if isinstance(one.field_type, StructType)]
            if structs:
                self.table.update_schema(lambda u: u.add_column(f"{structs[0].name}.{name}", "long"))
        elif kind == "long":
            promote(4, INT, LONG)
        elif kind == "double":
            promote(5, FLOAT, DOUBLE)
        elif kind == "decimal":
            promote(6, DecimalType(9, 2), DecimalType(20, 2))
        else:
            promote(7, DATE, TIMESTAMP)

    def step(self) -> None:
        """Do something."""
        operations = [self.append, self.append, self.evolve]
        if self.table.metadata.format_version >= 2:
            operations += [self.delete_positions, self.delete_equal, self.delete_equal]
        self.rng.choice(operations)()

    # --- reading

    def rows(self, schema: Schema | None = None) -> list[dict[str, Any]]:
        """Return the live rows under today's schema, with `_file`, `_pos` and the lineage columns."""
        schema = self.table.schema if schema is None else schema
        found = []
        for one in self.files:
            for at, row in enumerate(one.rows):
                if row is None:
                    continue
                lineage = {
                    "_file": one.file.file_path,
                    "_pos": at,
                    "_row_id": None if one.first_row_id is None else one.first_row_id + at,
                    "_last_updated_sequence_number": None if one.first_row_id is None else one.sequence_number,
                }
                found.append(_today(row, schema.struct, one.schema) | lineage)
        return found


def _by_id(struct: StructType, row: dict[str, Any]) -> dict[int, Any]:
    """Return a row's values by field id, those of structs too."""
    return {part.field_id: _value_by_id(part.field_type, row[part.name]) for part in struct.fields}


def _value_by_id(kind: Type, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, StructType):
        return _by_id(kind, value)
    if isinstance(kind, ListType):
        return [_value_by_id(kind.element_type, one) for one in value]
    if isinstance(kind, MapType):
        return {key: _value_by_id(kind.value_type, one) for key, one in value.items()}
    return value


def _today(row: dict[int, Any], struct: StructType, written: Schema) -> dict[str, Any]:
    return {part.name: _read(row, part, written) for part in struct.fields}


def _read(row: dict[int, Any], part: NestedField, written: Schema) -> Any:
    """Return what a field reads as: by id, else its default."""
    if part.field_id not in row:
        return part.initial_default
    return _convert(row[part.field_id], part.field_type, part.field_id, written)


def _convert(value: Any, kind: Type, field_id: int, written: Schema) -> Any:
    if value is None:
        return None
    if isinstance(kind, StructType):
        return _today(value, kind, written)
    if isinstance(kind, ListType):
        return [_convert(one, kind.element_type, kind.element_id, written) for one in value]
    if isinstance(kind, MapType):
        return {key: _convert(one, kind.value_type, kind.value_id, written) for key, one in value.items()}
    before = written.find_field(field_id)
    return value if before is None else promote_value(value, before.field_type, kind)


def _lookup(row: dict[int, Any], schema: Schema, field_id: int, written: Schema) -> Any:
    """Return a possibly nested value; below a null struct it is null."""
    chain = [*reversed(schema.ancestors_of(field_id)), schema.field(field_id)]
    value: Any = row
    for part in chain[:-1]:
        value = value.get(part.field_id) if value is not None else None
    return None if value is None else _read(value, chain[-1], written)


def same_rows(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> bool:
    """Return whether two lists hold the same rows in any order; NaN equals NaN, the zeros differ."""
    return sorted(map(_canonical, found)) == sorted(map(_canonical, expected))


def _canonical(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_canonical(one)}" for key, one in sorted(value.items(), key=repr)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return repr(value)
