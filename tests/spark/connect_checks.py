"""What `test_source_on_connect.py` runs in a process of its own: a session of Spark Connect that reads a lake.

Run as `python -m tests.spark.connect_checks <lake's folder>`; prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import frazil
from frazil.errors import FrazilError
from frazil.sessions.source_tables import LakeAddress, register_source

SETTING = "spark.sql.python.filterPushdown.enabled"


def refusal(call: Callable[[], object]) -> str:
    """Return the text of what a call raises."""
    try:
        call()
    except FrazilError as error:
        return str(error)
    return ""


def main(folder: Path) -> None:
    """Read through a local Connect server, and try what cannot be there."""
    spark = SparkSession.builder.remote("local[1]").getOrCreate()
    try:
        spark.conf.set(SETTING, "true")
        register_source(spark, {"lake": LakeAddress(str(folder))})
        frame = spark.read.format("iceberg").load("lake.db.t")
        with frazil.connect(folder) as lake:
            location = lake.table("db.t").location
            refused = [
                refusal(lambda: lake.table("db.t").scan().to_spark(spark)),
                refusal(lambda: frazil.attach(spark, lake)),
            ]
        by_path = spark.read.format("iceberg").option("columns", "id").option("filter", "id > 1").load(location)
        found = {
            "session": type(spark).__module__,
            "schema": frame.schema.simpleString(),
            "rows": sorted([one.id, one.kind] for one in frame.filter("kind = 'b'").collect()),
            "by_path": sorted([one.id] for one in by_path.collect()),
            "refused": refused,
        }
    finally:
        spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
