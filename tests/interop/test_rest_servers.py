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

from tests.catalog_cases import SERVICE_VARIABLE
from tests.interop.interop_page import record
from tests.interop.rest_servers import SERVERS, CannotStart

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parent.parent.parent
LEAST = {"java": 80}
"""How many tests pass at least, so that a server that is not reached fails this one."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", LEAST)
def test_a_service_of_others_keeps_the_contract_but_for_what_is_known(kind: str) -> None:
    try:
        started = SERVERS[kind]()
        server = started.__enter__()
    except CannotStart as reason:
        pytest.skip(str(reason))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "--timeout", "120", "--tb=line",
             "tests/contract/test_catalog_contract.py"],
            # The server has another user, who is to write into folders that are made here.
            cwd=ROOT, env={**os.environ, SERVICE_VARIABLE: json.dumps({"kind": kind, **asdict(server)})}, umask=0,
            capture_output=True, text=True, timeout=800, check=False,
        )  # fmt: skip
    finally:
        started.__exit__(None, None, None)
    assert done.returncode == 0, done.stdout[-6000:]
    passed, known = (
        int(found[1]) if (found := re.search(rf"(\d+) {word}", done.stdout)) else 0 for word in ("passed", "xfailed")
    )
    assert passed >= LEAST[kind], done.stdout[-2000:]
    record(
        "Services of others, held to the contract of catalogs through frazil's client",
        {"service": kind, "tests that pass": str(passed), "known differences": str(known)},
        {"nothing else differs": "✓"},
    )
