"""Partition specs: how partition values are derived from rows. Specification: "Partitioning".

A spec is a list of fields, each a transform of a source column with a name and a field id. The ids are those of the
partition struct in manifests, so they never change meaning. A spec holds column ids only; functions that need names or
types take the schema. The type of a dropped source column is looked up in `other_schemas` (the table's older schemas),
and is `unknown` otherwise.

`spec/partition_evolution.py` changes specs; `codec/partition_spec_json.py` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.spec.frozen_map import NO_EXTRA, FrozenMap, freeze_tuples
from frazil.spec.schema import Schema
from frazil.spec.transform_terms import TermReader, read_term
from frazil.spec.transforms import Bucket, Transform, Truncate
from frazil.spec.types import UNKNOWN, NestedField, PrimitiveType, StructType, Type

FIRST_PARTITION_FIELD_ID = 1000
INITIAL_SPEC_ID = 0


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec.

    A field of several source columns always has an unknown transform: the format allows such fields, but
    defines no transform for them yet.
    """

    source_ids: tuple[int, ...]
    field_id: int
    name: str
    transform: Transform
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, "source_ids")
        check_sources(f"partition field {self.name!r}", self.source_ids, self.transform)
        if not self.name:
            raise InvalidRequestError(f"Cannot make partition field {self.field_id}: its name is empty")

    @property
    def source_id(self) -> int:
        """The id of the single source column."""
        if len(self.source_ids) != 1:
            raise UnsupportedError(
                f"Cannot use partition field {self.name!r}: {self.transform} takes {len(self.source_ids)} columns"
            )
        return self.source_ids[0]

    def same_field(self, other: PartitionField) -> bool:
        """Return whether both have the same sources, transform and name, ignoring ids."""
        return (
            self.source_ids == other.source_ids
            and str(self.transform) == str(other.transform)
            and self.name == other.name
        )

    def source_type(self, schema: Schema, other_schemas: Iterable[Schema] = ()) -> Type:
        """Return the source column's type, or `unknown` if no schema has the column."""
        for candidate in (schema, *other_schemas):
            source = candidate.find_field(self.source_ids[0])
            if source is not None:
                return source.field_type
        return UNKNOWN

    def result_type(self, schema: Schema, other_schemas: Iterable[Schema] = ()) -> Type:
        """Return the type of this field's partition values."""
        return self.transform.result_type(self.source_type(schema, other_schemas))

    def __str__(self) -> str:
        sources = ", ".join(map(str, self.source_ids))
        return f"{self.field_id}: {self.name}: {self.transform}({sources})"


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """A numbered list of partition fields."""

    spec_id: int = INITIAL_SPEC_ID
    fields: tuple[PartitionField, ...] = ()
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, "fields")
        names: set[str] = set()
        ids: set[int] = set()
        for partition_field in self.fields:
            if partition_field.name in names:
                raise InvalidRequestError(
                    f"Cannot make the partition spec: two fields are named {partition_field.name!r}"
                )
            if partition_field.field_id in ids:
                raise InvalidRequestError(
                    f"Cannot make the partition spec: two fields have the id {partition_field.field_id}"
                )
            names.add(partition_field.name)
            ids.add(partition_field.field_id)

    @property
    def is_unpartitioned(self) -> bool:
        """Whether there is only one partition: no fields, or only void ones."""
        return all(partition_field.transform.is_void for partition_field in self.fields)

    @property
    def is_partitioned(self) -> bool:
        """Whether some field may distinguish rows."""
        return not self.is_unpartitioned

    @property
    def last_assigned_field_id(self) -> int:
        """The highest field id, or one less than the first if there are no fields."""
        return max((partition_field.field_id for partition_field in self.fields), default=FIRST_PARTITION_FIELD_ID - 1)

    @property
    def has_sequential_ids(self) -> bool:
        """Whether the ids are those that a v1 reader would assign by position."""
        return all(
            partition_field.field_id == index
            for index, partition_field in enumerate(self.fields, FIRST_PARTITION_FIELD_ID)
        )

    @property
    def unknown_fields(self) -> tuple[PartitionField, ...]:
        """The fields with unrecognised transforms."""
        return tuple(partition_field for partition_field in self.fields if partition_field.transform.is_unknown)

    @property
    def identity_source_ids(self) -> frozenset[int]:
        """The ids of the source columns of identity transforms."""
        return frozenset(
            partition_field.source_id for partition_field in self.fields if partition_field.transform.is_identity
        )

    def find_field(self, name_or_id: str | int) -> PartitionField | None:
        """Return a field by name or field id, or None."""
        if isinstance(name_or_id, int):
            return next(
                (partition_field for partition_field in self.fields if partition_field.field_id == name_or_id), None
            )
        return next((partition_field for partition_field in self.fields if partition_field.name == name_or_id), None)

    def fields_of_source(self, source_id: int) -> tuple[PartitionField, ...]:
        """Return the fields derived from a column."""
        return tuple(partition_field for partition_field in self.fields if source_id in partition_field.source_ids)

    def partition_type(self, schema: Schema, *, other_schemas: Iterable[Schema] = ()) -> StructType:
        """Return the struct type of this spec's partition values, all optional, with the partition field ids."""
        others = tuple(other_schemas)
        return StructType(
            tuple(
                NestedField(partition_field.field_id, partition_field.name, partition_field.result_type(schema, others))
                for partition_field in self.fields
            )
        )

    def partition_path(
        self, values: Mapping[str, Any] | Sequence[Any], schema: Schema, *, other_schemas: Iterable[Schema] = ()
    ) -> str:
        """Return the directory of a partition: `name=value/name=value`, each part URL-encoded.

        An empty string becomes an empty value, null becomes `null`; readers never parse paths.
        """
        in_order = (
            [values[partition_field.name] for partition_field in self.fields]
            if isinstance(values, Mapping)
            else list(values)
        )
        if len(in_order) != len(self.fields):
            raise InvalidRequestError(
                f"Cannot make a partition path: {len(in_order)} values for {len(self.fields)} partition fields"
            )
        return self.partition_paths(schema, other_schemas=other_schemas)(in_order)

    def partition_paths(
        self, schema: Schema, *, other_schemas: Iterable[Schema] = ()
    ) -> Callable[[Sequence[Any]], str]:
        """Return a function from the values of a partition, in field order, to its directory."""
        others = tuple(other_schemas)
        parts = [
            (f"{_escape(field.name)}=", field.transform.human_text, field.result_type(schema, others))
            for field in self.fields
        ]
        return lambda values: "/".join(
            [f"{name}{_escape(text(value, to))}" for (name, text, to), value in zip(parts, values, strict=True)]
        )

    def same_fields(self, other: PartitionSpec) -> bool:
        """Return whether two specs are equivalent: same sources, transforms and names in the same order."""
        return len(self.fields) == len(other.fields) and all(
            partition_field.same_field(another)
            for partition_field, another in zip(self.fields, other.fields, strict=True)
        )

    def with_spec_id(self, spec_id: int) -> PartitionSpec:
        """Return this spec with another id."""
        return PartitionSpec(spec_id, self.fields, self.extra)

    def __str__(self) -> str:
        return (
            "[" + "".join(f"\n  {partition_field}" for partition_field in self.fields) + ("\n]" if self.fields else "]")
        )


UNPARTITIONED = PartitionSpec()
"""The spec of unpartitioned tables."""


@dataclass(frozen=True, slots=True)
class PartitionTerm:
    """A user's request for a partition field: a column, a transform and optionally a field name."""

    column: str
    transform: Transform
    name: str | None = None


def parse_partition_term(text: str) -> PartitionTerm:
    """Parse a partition term such as `day(ts)`, `bucket(16, id) as shard` or `region`."""
    reader = TermReader(text, "partition term")
    column, transform = read_term(reader)
    name = reader.name() if reader.take_words("as") else None
    reader.end()
    return PartitionTerm(column, transform, name)


def default_field_name(column: str, transform: Transform) -> str:
    """Return the default name of a field in a new spec."""
    if transform.is_identity:
        return column
    if transform.is_void:
        return f"{column}_null"
    if isinstance(transform, Truncate):
        return f"{column}_trunc"
    return f"{column}_{transform.name}"


def evolved_field_name(column: str, transform: Transform) -> str:
    """Return the default name of a field that is added to an existing spec."""
    if isinstance(transform, Bucket):
        return f"{column}_bucket_{transform.num_buckets}"
    if isinstance(transform, Truncate):
        return f"{column}_trunc_{transform.width}"
    return default_field_name(column, transform)


def build_partition_spec(
    schema: Schema,
    terms: Iterable[PartitionTerm | str],
    *,
    spec_id: int = INITIAL_SPEC_ID,
    last_assigned_field_id: int = FIRST_PARTITION_FIELD_ID - 1,
    case_sensitive: bool = True,
) -> PartitionSpec:
    """Return the spec that partitions a schema by these terms, with new field ids."""
    fields: list[PartitionField] = []
    by_source: dict[tuple[int, str], PartitionField] = {}
    for term in terms:
        if isinstance(term, str):
            term = parse_partition_term(term)
        source = schema.field(term.column, case_sensitive=case_sensitive)
        column = schema.name_of(source.field_id)
        name = term.name if term.name is not None else default_field_name(column, term.transform)
        may_share_name = term.transform.is_identity or term.transform.is_void
        named_alike = schema.find_field(name, case_sensitive=case_sensitive)
        if named_alike is not None and not (may_share_name and named_alike.field_id == source.field_id):
            raise InvalidRequestError(
                f"Cannot name a partition field {name!r}: the schema has a column of that name",
                hint="Only an identity field may have a column's name, and only that of its own source.",
            )
        last_assigned_field_id += 1
        new = PartitionField((source.field_id,), last_assigned_field_id, name, term.transform)
        if term.transform.is_time or term.transform.is_identity:
            other = by_source.setdefault((source.field_id, term.transform.dedup_name), new)
            if other is not new:
                raise InvalidRequestError(
                    f"Cannot partition {column!r} by {term.transform}: {other.name!r} already partitions it by "
                    f"{other.transform}"
                )
        fields.append(new)
    spec = PartitionSpec(spec_id, tuple(fields))
    check_partition_spec(schema, spec)
    return spec


def find_taken_names(schema: Schema, specs: Iterable[PartitionSpec]) -> Iterator[tuple[PartitionField, str]]:
    """Yield fields named like a column other than their source, with the name of their source.

    Iceberg Java fails to open a table with such a field in any of its specs. Fields of dropped sources are not
    affected.
    """
    for spec in specs:
        for partition_field in spec.fields:
            named_alike = schema.find_field(partition_field.name)
            source_id = partition_field.source_ids[0]
            if named_alike is None or named_alike.field_id == source_id or schema.find_field(source_id) is None:
                continue
            yield partition_field, schema.name_of(source_id)


def check_partition_spec(schema: Schema, spec: PartitionSpec, *, may_miss_sources: bool = False) -> None:
    """Refuse a spec whose sources are missing from a schema or have types that the transforms do not accept.

    Void fields are always valid. With `may_miss_sources`, dropped source columns are allowed too, as in the specs of
    older data.
    """
    for partition_field in spec.fields:
        if partition_field.transform.is_void:
            continue
        for source_id in partition_field.source_ids:
            check_source(
                f"partition by {partition_field.name!r}",
                schema,
                source_id,
                partition_field.transform,
                may_miss=may_miss_sources,
            )


def check_writable(spec: PartitionSpec) -> None:
    """Refuse to write data with a spec that has an unknown transform ("Writing data files")."""
    for unknown_field in spec.unknown_fields:
        raise UnsupportedError(
            f"Cannot write with partition spec {spec.spec_id}: field {unknown_field.name!r} uses the unknown transform "
            f"{unknown_field.transform}",
            hint="Such tables can be read. Write them with the software that created the spec.",
        )


def unified_partition_type(
    specs: Iterable[PartitionSpec], schema: Schema, *, other_schemas: Iterable[Schema] = ()
) -> StructType:
    """Return the union of all specs' fields, sorted by field id ("Partition Statistics File").

    Each field has its name in the newest spec that has it, and its original type even if a newer spec replaced it
    by void. An older field with the name of a newer one becomes `name_<field id>`. Fields of unknown transforms
    are omitted, since the type of their values is unknown.
    """
    names: dict[int, str] = {}
    used_names: set[str] = set()
    chosen: dict[int, PartitionField] = {}
    others = tuple(other_schemas)
    for spec in sorted(specs, key=lambda spec: spec.spec_id, reverse=True):
        for partition_field in spec.fields:
            if partition_field.transform.is_unknown:
                continue
            newer = chosen.get(partition_field.field_id)
            if newer is None:
                name = partition_field.name
                while name in used_names:
                    name = f"{name}_{partition_field.field_id}"
                used_names.add(name)
                names[partition_field.field_id] = name
                chosen[partition_field.field_id] = partition_field
                continue
            is_same = (
                newer.transform == partition_field.transform
                or newer.transform.is_void
                or partition_field.transform.is_void
            )
            if newer.source_ids != partition_field.source_ids or not is_same:
                # Only v1 tables can get here: each of their specs assigned ids by position.
                raise UnsupportedError(
                    f"Cannot unite the partition specs: field id {partition_field.field_id} is both [{newer}] "
                    f"and [{partition_field}]"
                )
            if newer.transform.is_void:
                chosen[partition_field.field_id] = partition_field
    return StructType(
        tuple(
            NestedField(field_id, names[field_id], chosen[field_id].result_type(schema, others))
            for field_id in sorted(chosen)
        )
    )


def active_partition_type(specs: Iterable[PartitionSpec], schema: Schema) -> StructType:
    """Return the unified partition type without fields whose source column the schema has dropped.

    It is the type of the `partition` column in the metadata tables of Iceberg Java.
    """
    in_use = [
        PartitionSpec(
            spec.spec_id,
            tuple(
                partition_field
                for partition_field in spec.fields
                if all(schema.find_field(source_id) is not None for source_id in partition_field.source_ids)
            ),
        )
        for spec in specs
    ]
    return unified_partition_type(in_use, schema)


def check_sources(what: str, source_ids: tuple[int, ...], transform: Transform) -> None:
    """Refuse a partition or sort field without sources, or with several for a transform that takes one."""
    if not source_ids:
        raise InvalidRequestError(f"Cannot make {what}: it has no source column")
    if len(source_ids) > 1 and not transform.is_unknown:
        raise InvalidRequestError(f"Cannot make {what}: {transform} takes one source column, not {len(source_ids)}")


def check_source(what: str, schema: Schema, source_id: int, transform: Transform, *, may_miss: bool = False) -> None:
    """Refuse a source column that is missing, not primitive, inside a list or map, or of a wrong type."""
    source = schema.find_field(source_id)
    if source is None:
        if may_miss:
            return
        raise InvalidRequestError(f"Cannot {what}: the schema has no column with the id {source_id}")
    column = schema.name_of(source_id)
    if not isinstance(source.field_type, PrimitiveType):
        raise InvalidRequestError(f"Cannot {what}: {column!r} is a {source.field_type}, not a primitive type")
    for ancestor in schema.ancestors_of(source_id):
        if not isinstance(ancestor.field_type, StructType):
            raise InvalidRequestError(f"Cannot {what}: {column!r} is inside a list or map ({ancestor.name!r})")
    if not transform.can_transform(source.field_type):
        raise InvalidRequestError(f"Cannot {what}: {transform} does not accept {column!r} of type {source.field_type}")


def _escape(text: str) -> str:
    # As in Java's URLEncoder, which keeps the asterisk and encodes the tilde, unlike quote_plus.
    return quote_plus(text, safe="*", errors="replace").replace("~", "%7E")
