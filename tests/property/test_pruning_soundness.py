"""The law of pruning: what is dropped holds no match, what is called a full match holds nothing else.

Checked on random columns of every type through every transform (`tests/support/pruning_cases.py`), for the evaluators
of single files and for those over columns, which must also agree with each other.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from frazil.codec.arrow_schema import to_arrow_type
from frazil.codec.single_value import encode_bound
from frazil.errors import SchemaMismatchError
from frazil.expr.bind_leaf import bind_leaf
from frazil.expr.column_stats import may_match, must_match
from frazil.expr.columns.bounds import decode_bounds
from frazil.expr.columns.masks import row_mask
from frazil.expr.columns.stats_masks import StatsColumns, may_match_mask, must_match_mask
from frazil.expr.evaluate_manifest import may_hold_match
from frazil.expr.evaluate_row import evaluate_partition, evaluate_row
from frazil.expr.predicates import Bound, BoundReference, Op, leaves_of
from frazil.expr.project_partition import project_inclusive, project_strict
from frazil.expr.residual import Residuals
from frazil.spec.manifest import FieldSummary, ManifestFile
from frazil.spec.partitioning import PartitionField, PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.transforms import Truncate
from frazil.spec.types import INT, LONG, DoubleType, FloatType, NestedField, StructType
from tests.support.metrics_oracle import contains_only_matches, may_contain_match, stats_of
from tests.support.pruning_cases import TRANSFORMS, TYPES, Case, min_max, random_case

QUICK_CASES = 4_000
SHARES = 8
"""The million cases run in so many tests, for as many processes to take."""


def check_metrics(case: Case) -> None:
    """Metrics never drop a file that holds a match, nor claim a full match that is none."""
    matches = [evaluate_row(case.predicate, {"c": one}) for one in case.values]
    if any(matches):
        assert may_contain_match(case.predicate, case.file), case
    if contains_only_matches(case.predicate, case.file):
        assert all(matches), case


def check_partitions(case: Case) -> None:
    """Projections, residuals and manifest summaries keep the meaning through every transform."""
    schema = Schema((case.field,))
    for transform in TRANSFORMS:
        if not transform.can_transform(case.kind):
            continue
        spec = PartitionSpec(0, (PartitionField((1,), 1000, "p", transform),))
        kind = spec.partition_type(schema)
        inclusive = project_inclusive(case.predicate, spec, kind)
        strict = project_strict(case.predicate, spec, kind)
        residuals = Residuals(case.predicate, spec, kind)
        try:
            tuples = [None if one is None else transform.apply(one, case.kind) for one in case.values]
        except SchemaMismatchError:
            continue  # A value at the type's end has no truncation that fits; no writer can store its partition.
        manifest = summarize(tuples, kind)
        for value, partition in zip(case.values, tuples, strict=True):
            matches = evaluate_row(case.predicate, {"c": value})
            if matches:
                assert evaluate_partition(inclusive, (partition,), kind), (case, transform)
                assert may_hold_match(inclusive, manifest, kind), (case, transform)
            if evaluate_partition(strict, (partition,), kind):
                assert matches, (case, transform)
            assert evaluate_row(residuals.of((partition,)), {"c": value}) == matches, (case, transform)


@pytest.mark.parametrize("width", [3, 7, 300, 2**31 - 1])
def test_rows_with_wrapped_truncation_are_found_after_promotion_to_long(width: int) -> None:
    transform, rng = Truncate(width), random.Random(width)
    part = NestedField(1, "c", LONG)
    spec = PartitionSpec(0, (PartitionField((1,), 1000, "p", transform),))
    kind = spec.partition_type(Schema((part,)))
    edge = [-(2**31) + at for at in (0, 1, 2, 3, 4, 7, 299, 300)]
    for _ in range(1000):
        value = rng.choice(edge)
        case = random_case(rng, LONG)
        literals = tuple(sorted({rng.choice(edge) + rng.choice([0, 1, -1]) for _ in range(2)}))
        op = rng.choice([Op.EQ, Op.NOT_EQ, Op.LT, Op.LT_EQ, Op.GT, Op.GT_EQ, Op.IN, Op.NOT_IN])
        term = BoundReference(part, ("c",), may_be_null=True)
        predicate = rng.choice([case.predicate, bind_leaf(op, term, literals if op.is_set else literals[:1])])
        partition = (transform.apply(value, INT),)
        matches = evaluate_row(predicate, {"c": value})
        if matches:
            assert evaluate_partition(project_inclusive(predicate, spec, kind), partition, kind), (predicate, value)
        if evaluate_partition(project_strict(predicate, spec, kind), partition, kind):
            assert matches, (predicate, value)
        residual = Residuals(predicate, spec, kind).of(partition)
        assert evaluate_row(residual, {"c": value}) == matches, (predicate, value)


def summarize(tuples: list[Any], kind: StructType) -> ManifestFile:
    """Return a manifest whose one partition field has these values."""
    field_type = kind.fields[0].field_type
    lower, upper = min_max([one for one in tuples if one is not None and one == one])
    is_float = isinstance(field_type, FloatType | DoubleType)
    summary = FieldSummary(
        contains_null=None in tuples,
        contains_nan=any(one is not None and one != one for one in tuples) if is_float else None,
        lower_bound=None if lower is None else encode_bound(lower, field_type),
        upper_bound=None if upper is None else encode_bound(upper, field_type),
    )
    return ManifestFile("m", 1, 0, 1, partitions=(summary,))


def check_rows_as_columns(case: Case) -> None:
    """The mask over Arrow columns says of each row what the evaluation of single rows says."""
    array = pa.array([arrow_value(one) for one in case.values], type=storage_type(case))
    mask = row_mask(case.predicate, pa.record_batch([array], names=["c"])).to_pylist()
    assert mask == [evaluate_row(case.predicate, {"c": one}) for one in case.values], case


def arrow_value(value: Any) -> Any:
    return value.bytes if hasattr(value, "bytes") else value


def storage_type(case: Case) -> Any:
    kind = to_arrow_type(case.kind)
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def stats_columns(leaf: Bound, case: Case) -> StatsColumns:
    """Return a file's metrics as columns of length one."""
    stats = stats_of(leaf.term, case.file)

    def proven(value: bool | None, wanted: bool) -> Any:
        return np.array([value is wanted])

    bounds = [
        decode_bounds(pa.array([None if one is None else one.get(1)], pa.binary()), case.kind)
        for one in (case.file.lower_bounds, case.file.upper_bounds)
    ]
    return StatsColumns(
        bounds[0],
        bounds[1],
        has_no_null=proven(stats.has_null, False),
        has_no_nan=proven(stats.has_nan, False),
        is_all_null=proven(stats.all_null, True),
        is_all_null_or_nan=proven(stats.all_null_or_nan, True),
    )


def check_columns_agree(case: Case) -> None:
    """Pruning over columns decides as pruning of single files does."""
    for leaf in leaves_of(case.predicate):
        assert isinstance(leaf, Bound)
        one, many = stats_of(leaf.term, case.file), stats_columns(leaf, case)
        arguments = (leaf.op, leaf.literals)
        assert may_match_mask(*arguments, many, case.kind).tolist() == [may_match(*arguments, one)], case
        assert must_match_mask(*arguments, many, case.kind).tolist() == [must_match(*arguments, one)], case


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_pruning_is_sound_for_every_type(kind: Any) -> None:
    random_ = random.Random(f"sound {kind}")
    for _ in range(QUICK_CASES // len(TYPES)):
        case = random_case(random_, kind)
        check_metrics(case)
        check_partitions(case)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_column_evaluation_equals_scalar_evaluation(kind: Any) -> None:
    random_ = random.Random(f"columns {kind}")
    for _ in range(QUICK_CASES // len(TYPES) // 2):
        case = random_case(random_, kind)
        check_rows_as_columns(case)
        check_columns_agree(case)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(SHARES))
def test_a_million_random_cases_are_pruned_soundly(share: int) -> None:
    cases = int(os.environ.get("FRAZIL_PRUNING_CASES", "1000000"))
    random_ = random.Random(20240101 + share)
    for _ in range(cases // SHARES):
        case = random_case(random_)
        check_metrics(case)
        if random_.random() < 0.1:
            check_partitions(case)
