"""The SQL cases and the code of the public pages, through Iceberg's Java runtime.

Every difference is known, with its reason, in `tests/sql_cases/java_differences.toml`; one that is new, and one that is
gone, fails. `make test-interop` writes docs/evidence/sql-differences.md from what was seen.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop import sql_on_java
from tests.interop.interop_page import record_sql
from tests.interop.java_runtime import JavaLake
from tests.spark.pages_found import FOUND

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

PAGES = Path(__file__).parent.parent / "spark" / "pages_script.py"
REFUSED = {
    "ALTER TABLE lake.depot.sample RENAME TO lake.depot.moved": (
        "The JDBC catalog takes the catalog's name for a namespace."
    ),
    "ALTER TABLE lake.depot.moved RENAME TO lake.depot.sample": "Follows: it was not renamed.",
    "ALTER TABLE lake.depot.sample ALTER COLUMN weight TYPE double COMMENT 'grams'": (
        "Spark takes one change at a time; the page shows both."
    ),
    "loaded by snapshot-id": "The jar for Spark 4.1 gave the option up for Spark's own; the page still has it.",
    "loaded by as-of-timestamp": "As above: an option of the page that the jar gave up.",
    "loaded by tag": "As above: an option of the page that the jar gave up.",
    "files of the past by a frame": "As above: an option of the page that the jar gave up.",
}
"""Steps of the public pages that the jar refuses, and why."""


def test_all_sql_differences_are_listed(java: None, tmp_path: Path) -> None:
    seen = [one for name in sql_on_java.compared_files() for one in sql_on_java.run_file(name, tmp_path / name)]
    differences = [one for one in seen if one is not None]
    lake = JavaLake(tmp_path / "pages", settings={"spark.sql.session.timeZone": "Asia/Kolkata"})
    found, refused = lake.script(PAGES, True)
    told = [{"step": step, "jar": refused.get(step, "done"), "why": why} for step, why in REFUSED.items()]
    record_sql(len(seen), [sql_on_java.as_seen(one) for one in differences if one.known is not None], told)
    new = [f"{one.file}.txt:{one.found.case.line}: {one.found.problem}" for one in differences if one.known is None]
    assert not new
    met = {(one.file, one.found.case.statement, one.nth) for one in differences}
    gone = set(sql_on_java.known_differences()) - met
    assert not gone
    assert set(refused) == set(REFUSED)
    assert found == {name: rows for name, rows in FOUND.items() if name not in REFUSED}


def test_every_listed_difference_has_a_kind_and_a_case() -> None:
    assert {one.kind for one in sql_on_java.known_differences().values()} == set(sql_on_java.KINDS)
