"""What tests of reading on Spark share: tables on local files, and rows compared with what Arrow reads.

Import as `tests.spark.read_cases`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

from frazil.spec.schema import Schema
from frazil.storage.local import LocalStorage
from frazil.table.scan import Scan, scan_table
from tests.spark.history_model import Row, arrow_rows, spark_rows
from tests.support.scan_model import same_rows
from tests.support.tables import TableBuilder

READS_STRUCTS_BY_PYTHON = pyspark.__version__.startswith("4.0.")
"""Whether tables whose structs have changed are read by Python: Spark's reader loses structs there."""


def local_table(folder: Path, schema: Schema, **options: Any) -> TableBuilder:
    """Return an empty table on local files."""
    return TableBuilder(schema, storage=LocalStorage(), location=f"file://{folder}/t", keeps_ids=True, **options)


def check_same(spark: SparkSession, scan: Scan) -> list[Row]:
    """Check that a scan reads the same on Spark as in this process; return the rows."""
    expected = arrow_rows(scan.to_arrow(), scan.schema)
    found = spark_rows(scan.to_spark(spark))
    assert same_rows(found, expected), f"{scan.columns} {scan.predicate}\nSpark: {found}\nArrow: {expected}"
    return expected


def check_table(
    spark: SparkSession, table: TableBuilder, *filters: str, columns: Sequence[str] | None = None
) -> list[Row]:
    """Check a table's rows, whole and under filters, given to the scan and added to the frame; return all rows."""
    loaded = table.load()
    rows = check_same(spark, scan_table(loaded, columns=columns))
    for text in filters:
        check_same(spark, scan_table(loaded, text, columns=columns))
    return rows


def file_scans(frame: DataFrame) -> Iterator[Any]:
    """Yield the nodes of a query's physical plan that read files."""
    plan: Any = frame._jdf.queryExecution().executedPlan()
    stack = [plan]
    while stack:
        node = stack.pop()
        name = node.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            stack.append(node.executedPlan())
        elif name.endswith("QueryStageExec"):
            stack.append(node.plan())
        elif name == "ScanToEnd":
            yield node
        else:
            children = node.children()
            stack += [children.apply(at) for at in range(children.size())]


def read_files(frame: DataFrame) -> list[str]:
    """Return the names of the files that a query reads, as its physical plan has them."""
    partitions = [one for node in file_scans(frame) for one in node.inputRDD().partitions()]
    return sorted(
        file.urlEncodedPath().partition("#")[0].rsplit("/", 1)[-1] for one in partitions for file in one.files()
    )


def count_read_files(frame: DataFrame) -> int:
    """Return how many files a query has read, once it has run."""
    return sum(int(node.metrics().apply("numFiles").value()) for node in file_scans(frame))
