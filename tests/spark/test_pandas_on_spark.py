"""The pandas API on Spark over tables of lakes: frames of `pyspark.pandas` are read from them and written to them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import frazil


def _pandas_on_spark() -> Any:
    """Return `pyspark.pandas`, which not every pandas can import."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pyspark.pandas as ps
    except (ImportError, AttributeError) as error:
        pytest.skip(f"pyspark.pandas cannot be imported: {error}", allow_module_level=True)
    return ps


ps = _pandas_on_spark()
pytestmark = pytest.mark.filterwarnings(
    "ignore::pyspark.pandas.utils.PandasAPIOnSparkAdviceWarning", "ignore:The config 'spark.sql.ansi.enabled' is set"
)
ALL = [(1, "a"), (2, "b"), (3, "a")]


@pytest.fixture
def filled(spark: SparkSession, lake: frazil.Lake) -> Iterator[SparkSession]:
    frazil.attach(spark, lake)
    spark.sql("create table lake.db.t (id bigint, kind string) partitioned by (kind)")
    spark.sql("insert into lake.db.t values (1, 'a'), (2, 'b'), (3, 'a')")
    # Spark 4.0 refuses its default mode of SQL unless it is told not to.
    with ps.option_context("compute.fail_on_ansi_mode", False):
        yield spark
    frazil.detach(spark)


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(one) for one in frame.to_pandas().reset_index().itertuples(index=False))


def test_pandas_api_reads_tables(filled: SparkSession) -> None:
    assert rows(ps.read_table("lake.db.t", index_col="id")) == ALL
    assert rows(filled.table("lake.db.t").pandas_api(index_col="id")) == ALL
    assert rows(ps.sql("select * from lake.db.t where id > {least}", index_col="id", least=1)) == ALL[1:]
    frame = ps.read_table("lake.db.t")
    assert frame[frame.kind == "a"].id.sum() == 4
    assert frame.groupby("kind").id.count().to_dict() == {"a": 2, "b": 1}
    # A frame of this API is a table of a query.
    assert ps.sql("select count(*) n from lake.db.t join {frame} using (id)", frame=frame).n.to_list() == [3]


def test_pandas_api_writes_tables(filled: SparkSession, lake: frazil.Lake) -> None:
    frame = ps.DataFrame({"id": [7, 8], "kind": ["x", "y"]})
    frame.to_table("lake.db.made", format="iceberg", partition_cols="kind")
    made = lake.table("db.made")
    assert [str(part.transform) for part in made.spec.fields] == ["identity"]
    assert sorted(made.scan().to_arrow().column("id").to_pylist()) == [7, 8]
    frame.to_table("lake.db.t", mode="append")
    assert rows(ps.read_table("lake.db.t", index_col="id")) == [*ALL, (7, "x"), (8, "y")]
    changed = ps.read_table("lake.db.t", index_col="id")
    changed["kind"] = changed.kind.str.upper()
    changed.to_table("lake.db.t", mode="overwrite", index_col="id")
    assert rows(ps.read_table("lake.db.t", index_col="id"))[0] == (1, "A")
    frame.spark.to_spark_io("lake.db.t", format="iceberg", mode="append")
    assert len(ps.read_spark_io("lake.db.t", format="iceberg")) == 7
