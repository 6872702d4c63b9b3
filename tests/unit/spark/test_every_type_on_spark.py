"""Every type of `spec/types.py` has a form on Spark; no JVM is needed to know it."""

from __future__ import annotations

import pytest
from pyspark.sql.types import DataType

from frazil.spark.types import shown_type, stored_type
from frazil.spec.types import Type
from tests.support.type_samples import SAMPLES

pytestmark = pytest.mark.every_case


@pytest.mark.parametrize("data_type", SAMPLES, ids=str)
def test_every_type_is_read_and_shown(data_type: Type) -> None:
    assert isinstance(stored_type(data_type), DataType)
    assert isinstance(shown_type(data_type, None), DataType)
