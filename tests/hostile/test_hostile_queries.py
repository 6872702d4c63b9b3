# ruff: noqa: E501 - queries are read best in one line
"""Queries of strangers: the process lives, memory stays bounded, the deadline holds, and nothing outside is reached."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import frazil
from frazil.console.app import console_routes
from frazil.errors import FrazilError
from frazil.query.limits import Limits
from frazil.table.lake import Lake
from frazil.table.local_sql.run_sql import query as run_query
from tests.support.served_lake import served

SECONDS = 4.0
LIMITS = Limits(timeout_seconds=SECONDS, memory_bytes=256 << 20)
ENDLESS = "select sum(a.range * b.range) from range(10000000) a, range(10000000) b"
HOSTILE = {
    "a sum of 20,000 terms": "select 1" + " + 1" * 20_000,
    "5,000 brackets": "select " + "(" * 5_000 + "1" + ")" * 5_000,
    "50,000 conditions": "select 1 where " + " and ".join(["1 = 1"] * 50_000),
    "2,500 alternatives": "select 1 where " + " or ".join(f"{at} = 1" for at in range(2_500)),
    "a long text joined": "select " + " || ".join(["'x'"] * 5_000),
    "nested functions": "select " + "abs(" * 3_000 + "1" + ")" * 3_000,
    "nested queries": "select * from (" * 300 + "select 1" + ")" * 300,
    "nested lists": "select " + "[" * 2_000 + "1" + "]" * 2_000,
    "a number of a million digits": "select 1e1000000",
    "a long text as a decimal": "select cast(repeat('1', 5000000) as decimal(38, 2))",
    "a column of long texts as decimals": "select 1 from db.t where try_cast(s as decimal(38, 2)) > 1.5",
    "a text of two gigabytes": "select length(repeat('a', 2000000000))",
    "a text of four gigabytes": "select length(repeat('a', 2147483647) || repeat('b', 2147483647))",
    "a list of a billion": "select len(range(1000000000))",
    "all of it in one list": "select list(range) from range(1000000000)",
    "texts in one text": "select string_agg(repeat('x', 1000)) from range(10000000)",
    "doubling tables": "with t0 as (select 1 x), "
    + ", ".join(f"t{at + 1} as (select x from t{at} union all select x from t{at})" for at in range(25))
    + " select count(*) from t25",
    "recursion without end": "with recursive r as (select 1 x union all select x + 1 from r) select max(x) from r",
    "recursion that grows": "with recursive r as (select 1 x union all select a.x + 1 from r a, r b) select max(x) from r",
    "a product of tables": ENDLESS,
    "rows without end": "from range(1000000000000)",
    "a sort of everything": "select * from range(100000000000) order by hash(range) limit 1",
    "a wide table": "select " + ", ".join(f"{at} c{at}" for at in range(20_000)),
    "patterns that go back": "select regexp_matches(repeat('a', 100000) || 'b', '(a+)+$')",
    "a pivot of many": "from (select range r from range(100000)) pivot (count(*) for r in (select distinct r))",
    "a file": "from read_text('/etc/passwd')",
    "a file by its name": "from '/etc/passwd'",
    "files by a pattern": "from glob('/etc/*')",
    "a file of data": "from read_csv('/etc/passwd')",
    "the network": "from read_parquet('https://127.0.0.1:9/x.parquet')",
    "an address of memory": "from arrow_scan(1::pointer, 2::pointer, 3::pointer)",
    "a table of Python": "from python_map_function(1)",
    "a setting": "select set_config('memory_limit', '100GB')",
    "settings by a function": "from query('select * from duckdb_secrets()')",
    "variables of the environment": "select getenv('HOME')",
    "a log": "from enable_logging(storage => 'file', storage_path => '/tmp')",
    "profiles": "from enable_profiling(format => 'json', save_location => '/tmp/frazil-profile.json')",
    "invalid text": "select '\udc80'",
    "a NUL": "select '\0'",
}
ANSWERED = {
    "50,000 conditions", "2,500 alternatives", "a number of a million digits", "doubling tables", "a wide table", "nested queries",
    "patterns that go back", "a column of long texts as decimals", "a list of a billion", "a long text joined", "settings by a function",
    "a log", "profiles", "nested functions", "nested lists", "a text of two gigabytes", "recursion that grows",
}  # fmt: skip
"""Queries that may be answered in time; all others are errors."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with frazil.connect(tmp_path_factory.mktemp("lake")) as opened:
        opened.create_table("db.t", "s string").append(pa.table({"s": ["1" * 5_000_000, "2"]}))
        yield opened


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_query_ends_within_its_limits(lake: Lake, text: str) -> None:
    """Rows 4 to 6 of the security review, and their kin."""
    name = next(known for known, query in HOSTILE.items() if query == text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    count = 0
    try:
        result = run_query(lake, text, parameters={}, frames={}, values={}, limits=LIMITS, is_isolated=True)
        for batch in result.to_batches():
            count += batch.num_rows
        assert name in ANSWERED
    except FrazilError as error:
        assert error.message  # noqa: PT017 - an answer is as good
    assert time.monotonic() - began < SECONDS + 15
    # This process holds no more than what it was sent, in kilobytes.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000
    assert not os.path.exists("/tmp/frazil-profile.json")  # noqa: PTH110
    small = run_query(lake, "select 40 + 2 x", parameters={}, frames={}, values={}, limits=LIMITS, is_isolated=True)
    assert small.to_pylist() == [{"x": 42}]


def test_query_of_an_untrusted_lake_runs_in_its_own_process(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as own:
        own.create_table("db.t", "id int").append([{"id": 1}, {"id": 2}])
        own.create_view("db.v", {"duckdb": "select max(id) m from db.t where id > 0"}, schema="m int")
        own.create_view("db.endless", {"duckdb": ENDLESS})
    with frazil.connect(tmp_path, trust="none") as lake:
        assert lake.sql("select * from db.v").to_pylist() == [{"m": 2}]
        assert lake.sql("select id from db.t where id = $x", x=2).to_pylist() == [{"id": 2}]
        with pytest.raises(FrazilError, match="limit of 1 seconds"):
            lake.sql("select * from db.endless", timeout=1).to_arrow()


def test_four_endless_queries_leave_other_pages_responsive(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        lake.create_table("db.t", "id int").append([{"id": 1}])
    with served(tmp_path / "lake", beside=partial(console_routes, may_write=False)) as console:
        threads = [
            threading.Thread(target=console.get, args=(f"/sql?run={number}&q={quote(ENDLESS)}",)) for number in range(4)
        ]
        for thread in threads:
            thread.start()
        time.sleep(1)
        for path in ("/", "/tables/db.t", "/tables/db.t/rows", "/tables/db.t/schema"):
            began = time.monotonic()
            assert console.get(path).code == 200
            assert time.monotonic() - began < 10
        for thread in threads:
            thread.join()
        began = time.monotonic()
    assert time.monotonic() - began < 30
