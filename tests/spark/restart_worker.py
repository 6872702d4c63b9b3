"""A process of its own: reads and writes a lake in several Spark contexts, one after the other, and prints the rows."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import frazil


def main() -> None:
    """Start, use and stop Spark a few times; every second time without detaching."""
    found = []
    with frazil.connect(sys.argv[1]) as lake:
        lake.create_table("db.t", "id bigint, name string", format_version=3)
        for turn in range(int(sys.argv[2])):
            spark = (
                SparkSession.builder.master("local[1]")
                .config("spark.ui.enabled", "false")
                .config("spark.driver.host", "127.0.0.1")
                .config("spark.sql.shuffle.partitions", "1")
                .getOrCreate()
            )
            spark.sparkContext.setLogLevel("OFF")
            frazil.attach(spark, lake)
            spark.sql(f"insert into lake.db.t values ({turn}, 'a'), ({turn + 100}, 'b')")
            spark.sql(f"delete from lake.db.t where id = {turn + 100}")
            found.append([row.id for row in spark.sql("select id from lake.db.t where id >= 0 order by id").collect()])
            assert spark.table("lake.db.t").filter("name = 'a'").count() == turn + 1
            if turn % 2:
                frazil.detach(spark)
            spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
