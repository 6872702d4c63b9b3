"""frazil as a client of other catalog services: the contract of catalogs, through its REST client."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.interop.interop_page import record
from tests.interop.rest_servers import SERVERS, CannotStart
from tests.support.catalog_cases import SERVICE_VARIABLE, service_differences
from tests.support.sql_case_files import case_files, read_cases

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parent.parent.parent
LEAST = {"java": 80, "nessie": 68}
"""How many tests pass at least, so that a server that is not reached fails this one."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", LEAST)
def test_third_party_service_passes_the_contract_except_for_listed_differences(kind: str) -> None:
    said = run_tests(kind, 800, "tests/contract/test_catalog_contract.py")
    passed, known = count(said, "passed"), count(said, "xfailed")
    assert passed >= LEAST[kind], said[-2000:]
    record(
        "Services of others, held to the contract of catalogs through frazil's client",
        {"service": kind, "tests that pass": str(passed), "known differences": str(known)},
        {"nothing else differs": "✓"},
    )


@pytest.mark.timeout(3700)
@pytest.mark.parametrize("kind", LEAST)
def test_sql_cases_hold_on_a_third_party_service_except_for_listed_differences(kind: str) -> None:
    # Spark has no file system for Nessie's store here, and files go through the driver, which says so.
    quietly = ("-W", "ignore::UserWarning")
    said = run_tests(kind, 3600, "tests/spark/test_sql_cases.py", "-k", "behind_a_service", *quietly)
    assert count(said, "passed") == len(case_files()), said[-2000:]
    cases = sum(1 for name in case_files() for _ in read_cases(name))
    record(
        "Services of others, under the SQL cases on Spark",
        {"service": kind, "cases": str(cases), "known differences": str(len(service_differences(kind, "sql")))},
        {"nothing else differs": "✓"},
    )


DROPS = ("-W", "ignore:The catalog service created:RuntimeWarning")
"""Nessie drops defaults of columns, of which the client warns."""


def run_tests(kind: str, seconds: int, *arguments: str) -> str:
    """Run tests against a service of others, in a process of their own; return what it printed."""
    try:
        started = SERVERS[kind]()
        server = started.__enter__()
    except CannotStart as reason:
        pytest.skip(str(reason))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "--tb=line", *arguments, *DROPS],
            # The server has another user, who is to write into folders that are made here.
            cwd=ROOT, env={**os.environ, SERVICE_VARIABLE: json.dumps({"kind": kind, **asdict(server)})}, umask=0,
            capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip
    finally:
        started.__exit__(None, None, None)
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def count(said: str, word: str) -> int:
    """Return how many tests did what a word says."""
    found = re.search(rf"(\d+) {word}", said)
    return 0 if found is None else int(found[1])
