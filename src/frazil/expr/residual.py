"""What is left of a filter once a file's partition is known. Specification: "Scan Planning", note 1.

A leaf becomes true where the partition proves it for every row (strict projection), false where the
partition proves that no row passes (inclusive projection), and stays otherwise. Projections are made once,
residuals once for each distinct partition tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frazil.expr.evaluate_row import evaluate_partition
from frazil.expr.predicates import FALSE, TRUE, And, Bound, Or, Predicate, all_of, any_of
from frazil.expr.project_partition import project_inclusive, project_strict
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.types import StructType


class Residuals:
    """The residuals of one bound filter under one partition spec."""

    def __init__(self, predicate: Predicate, spec: PartitionSpec, partition_type: StructType) -> None:
        self._predicate = predicate
        self._spec = spec
        self._type = partition_type
        self._projections: dict[Bound, tuple[Predicate, Predicate]] = {}
        self._known: dict[tuple[Any, ...], Predicate] = {}

    def of(self, partition: Sequence[Any]) -> Predicate:
        """Return what rows of a partition must still be tested for."""
        if not self._spec.fields:
            return self._predicate
        key = tuple(partition)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._reduce(self._predicate, key)
        return known

    def _reduce(self, predicate: Predicate, partition: tuple[Any, ...]) -> Predicate:
        if isinstance(predicate, And | Or):
            combine = all_of if isinstance(predicate, And) else any_of
            return combine(*(self._reduce(child, partition) for child in predicate.children))
        if not isinstance(predicate, Bound):
            return predicate
        projections = self._projections.get(predicate)
        if projections is None:
            projections = (
                project_strict(predicate, self._spec, self._type),
                project_inclusive(predicate, self._spec, self._type),
            )
            self._projections[predicate] = projections
        strict, inclusive = projections
        if evaluate_partition(strict, partition, self._type):
            return TRUE
        return predicate if evaluate_partition(inclusive, partition, self._type) else FALSE
