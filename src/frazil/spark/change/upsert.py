"""UPSERT: rows of a source replace those of the same key, and the others are inserted. Null equals null."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.change_rows.assigned_names import same_names
from frazil.change_rows.merge_clauses import MergeClause, keys_twice
from frazil.commit.action import PlannedChange
from frazil.commit.new_snapshot import Target
from frazil.errors import FieldNotFoundError, InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spark.change.merge import SOURCE, TARGET, merge_rows
from frazil.spark.change.source_keys import JoinKey, read_keys
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.own_columns import F
from frazil.spark.read.kept_rows import checkpoint_rows, start_over_if_lost
from frazil.spark.types import shown_type
from frazil.spark.write.progress import showing_progress
from frazil.spec.schema import Schema
from frazil.spec.types import UnknownType
from frazil.sql.quote_names import quote


def plan_upsert(
    spark: SparkSession,
    loaded: LoadedTable,
    source: DataFrame,
    keys: Sequence[str],
    target: Target,
    *,
    cache: ManifestCache | None = None,
) -> PlannedChange | None:
    """Merge a source by key: update matching rows and insert the others; raise if the source has duplicate keys."""
    schema = loaded.metadata.current_schema
    names = _key_names(schema, source, keys, loaded.name)
    on = reduce(Column.__and__, [_equal(ours, theirs) for ours, theirs in names])
    clauses = [
        MergeClause("matched", "update", _changed(schema, source, names, spark)),
        MergeClause("not_matched", "insert"),
    ]

    def plan() -> PlannedChange | None:
        with engine_errors(f"read the source of an upsert into {loaded.name}"):
            checkpointed = checkpoint_rows(source)
            keys = [
                JoinKey(schema.field(ours), F.col(quote(theirs)), is_null_safe=True)
                for ours, theirs in names
                if _is_comparable(source.schema[theirs].dataType, shown_type(schema.field(ours).field_type, spark))
            ]
            source_keys = read_keys(checkpointed, keys, loaded.metadata.default_spec, [theirs for _, theirs in names])
        if source_keys.twice:
            key_names = [name for _, name in names]
            raise keys_twice(loaded.name, [dict(zip(key_names, key, strict=True)) for key in source_keys.twice])
        return merge_rows(
            spark, loaded, checkpointed, on, clauses, target, source_keys=source_keys, cache=cache, is_upsert=True
        )

    with showing_progress(spark, f"upsert into {loaded.name}"):
        return start_over_if_lost(plan)


def _changed(schema: Schema, source: DataFrame, keys: list[tuple[str, str]], spark: SparkSession) -> Column | None:
    """Return a test for rows with a changed value; None if the types do not allow an exact comparison."""
    theirs = same_names((field.name for field in schema.fields), source.columns)
    tests = []
    for field in schema.fields:
        name = theirs[field.name]
        if isinstance(field.field_type, UnknownType) or name is None or (field.name, name) in keys:
            continue
        column_type = shown_type(field.field_type, spark)
        if not _is_comparable(source.schema[name].dataType, column_type) or _has_map(column_type):
            return None
        ours, source_column = F.col(f"{TARGET}.{quote(field.name)}"), F.col(f"{SOURCE}.{quote(name)}")
        same = ours.eqNullSafe(source_column)
        if _has_floats(column_type):
            # A comparison takes both zeros for equal; their texts differ.
            same = same & F.to_json(F.struct(ours.alias("x"))).eqNullSafe(F.to_json(F.struct(source_column.alias("x"))))
        tests.append(~same)
    return reduce(Column.__or__, tests) if tests else F.lit(False)


def _has_map(spark_type: st.DataType) -> bool:
    return any(isinstance(inner, st.MapType | st.VariantType) for inner in _walk(spark_type))


def _has_floats(spark_type: st.DataType) -> bool:
    return any(isinstance(inner, st.FloatType | st.DoubleType) for inner in _walk(spark_type))


def _walk(spark_type: st.DataType) -> Iterator[st.DataType]:
    yield spark_type
    if isinstance(spark_type, st.StructType):
        for field in spark_type.fields:
            yield from _walk(field.dataType)
    elif isinstance(spark_type, st.ArrayType):
        yield from _walk(spark_type.elementType)


def _is_comparable(have: st.DataType, want: st.DataType) -> bool:
    """Return whether values of the two types compare without loss of information."""
    is_whole = isinstance(have, st.IntegralType) and isinstance(want, st.IntegralType)
    return have == want or is_whole or (isinstance(have, st.DecimalType) and isinstance(want, st.DecimalType))


def _equal(ours: str, theirs: str) -> Column:
    return F.col(f"{TARGET}.{quote(ours)}").eqNullSafe(F.col(f"{SOURCE}.{quote(theirs)}"))


def _key_names(schema: Schema, source: DataFrame, keys: Sequence[str], table: str) -> list[tuple[str, str]]:
    """Return each key's name in the table and in the source."""
    if isinstance(keys, str) or not keys:
        raise InvalidRequestError(f"Cannot upsert into {table}: give the key columns as a list of names")
    names = []
    for key in keys:
        ours = next((field.name for field in schema.fields if field.name == key), None)
        ours = ours or next((field.name for field in schema.fields if field.name.lower() == key.lower()), None)
        theirs = key if key in source.columns else next((n for n in source.columns if n.lower() == key.lower()), None)
        if ours is None or theirs is None:
            where = "the table" if ours is None else "the source"
            raise FieldNotFoundError(f"Cannot upsert into {table}: {where} has no column {key!r}")
        names.append((ours, theirs))
    return names
