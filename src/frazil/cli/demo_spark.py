"""The second half of the tour: the same lake from Spark SQL, with no jar."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from frazil.cli.render import OutputFormat, render_rows
from frazil.lake.attach import attach, detach
from frazil.lake.connect import connect
from frazil.lake.on_spark import choose_session

Show = Callable[[str], object]
STATEMENTS = (
    (
        "A table, with a column default and hidden partitions:",
        """create table lake.shop.orders (
  id bigint not null, ts timestamp, kind string, price decimal(9,2) default 9.99
) using iceberg partitioned by (days(ts))
tblproperties ('format-version' = '3', 'write.merge.mode' = 'merge-on-read')""",
    ),
    (
        "Rows:",
        """insert into lake.shop.orders (id, ts, kind) values
  (1, timestamp'2024-01-01 10:00:00', 'web'), (2, timestamp'2024-01-01 11:00:00', 'shop'),
  (3, timestamp'2024-01-02 10:00:00', 'web')""",
    ),
    (
        "A merge; what it changes are deletion vectors and new rows:",
        """merge into lake.shop.orders t
using (select 2L as id, 'web' as kind union all select 4L, 'phone') s on t.id = s.id
when matched then update set kind = s.kind
when not matched then insert (id, ts, kind) values (s.id, timestamp'2024-01-02 12:00:00', s.kind)""",
    ),
    ("Now:", "select id, kind, price from lake.shop.orders order by id"),
    ("Before the merge:", "select id, kind from lake.shop.orders version as of {first} order by id"),
    (
        "How it came to be:",
        """select operation, summary['added-records'] as added, summary['added-dvs'] as vectors
from lake.shop.orders.snapshots""",
    ),
)


def has_spark() -> bool:
    """Return whether pyspark and a Java are here."""
    return find_spec("pyspark") is not None and (shutil.which("java") is not None or "JAVA_HOME" in os.environ)


def run_spark_demo(print_line: Show) -> None:
    """Run statements on a local session, telling each and its result."""
    with tempfile.TemporaryDirectory() as folder, connect(folder) as lake:
        spark = choose_session(None, lake)
        attach(spark, lake)
        try:
            spark.sql("create namespace lake.shop")
            for title, text in STATEMENTS:
                first = _first_snapshot(lake) if "{first}" in text else 0
                _run(spark, print_line, title, text.replace("{first}", str(first)))
        finally:
            detach(spark)


def _run(spark: Any, print_line: Show, title: str, text: str) -> None:
    print_line(f"\n{title}")
    for line in text.splitlines():
        print_line(f"  spark.sql> {line}" if line == text.splitlines()[0] else f"             {line}")
    frame = spark.sql(text)
    if frame.columns:
        for line in render_rows(frame.toArrow(), frame.columns, OutputFormat.TABLE).splitlines():
            print_line(f"  {line}")


def _first_snapshot(lake: Any) -> int:
    return int(lake.table("shop.orders").snapshots[0].snapshot_id)
