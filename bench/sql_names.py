"""What an attached lake costs `spark.sql`: from text to an analysed DataFrame, beside Spark's own tables.

    python bench/sql_names.py [--runs 30]

Nothing runs: what is timed is parsing, finding names, and analysis. The peer is the same query over a Parquet table of
Spark's own catalog, in the same session, before a lake is attached and after it is detached: the better median.
Spark's own table is resolved from a catalog in memory; the lake's is loaded from its catalog each time, as it must be.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

import frazil
from frazil.sql.parse import parse_statement

QUERIES = {
    "one table": "select id, kind from {t} where id > 5",
    "join, subquery, CTE": (
        "with a as (select id from {t} where kind = 'a') select x.id, (select max(id) from {t}) m from {t} x "
        "join a on x.id = a.id where exists (select 1 from {t} y where y.id = x.id + 1)"
    ),
}
STATEMENTS = (
    "alter table lake.db.t add partition field bucket(16, id)",
    "create table lake.db.x (id bigint not null, s struct<a: int, b: string>) using iceberg partitioned by (days(ts))",
    "merge into lake.db.t t using (select * from s) s on t.id = s.id when matched then update set *",
)


def median_ms(runs: int, call: Callable[[], object]) -> float:
    """Return the median time of a call in milliseconds, after two calls that do not count."""
    times = []
    for at in range(runs + 2):
        started = time.perf_counter()
        call()
        if at >= 2:
            times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    runs = parser.parse_args().runs
    folder = tempfile.mkdtemp()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", f"{folder}/spark")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.sql("create table plain using parquet as select id, 'a' kind from range(100)")
    build = functools.partial(functools.partial, spark.sql)
    before = {name: median_ms(runs, build(query.format(t="plain"))) for name, query in QUERIES.items()}
    with frazil.connect(f"{folder}/lake") as lake:
        frazil.attach(spark, lake)
        build = functools.partial(functools.partial, spark.sql)
        spark.sql("create table lake.db.t as select id, 'a' kind from range(100)")
        passed = {name: median_ms(runs, build(query.format(t="plain"))) for name, query in QUERIES.items()}
        ours = {name: median_ms(runs, build(query.format(t="lake.db.t"))) for name, query in QUERIES.items()}
        frazil.detach(spark)
    build = functools.partial(functools.partial, spark.sql)
    after = {name: median_ms(runs, build(query.format(t="plain"))) for name, query in QUERIES.items()}
    print(f"{'query':24}{'Spark ms':>10}{'passed ms':>11}{'lake ms':>9}{'lake/Spark':>12}")
    for name in QUERIES:
        own = min(before[name], after[name])
        print(f"{name:24}{own:10.1f}{passed[name]:11.1f}{ours[name]:9.1f}{ours[name] / own:12.2f}")
    print()
    for text in STATEMENTS:
        took = median_ms(runs * 10, functools.partial(parse_statement, text, lambda kind, name: True))
        print(f"parse {took * 1000:6.0f} µs   {text[:70]}")
    spark.stop()


if __name__ == "__main__":
    main()
