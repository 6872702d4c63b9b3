"""Requests made by chance from the protocol's own description (schemathesis): the server fails at none of them.

`FRAZIL_OPEN_API` is the description, `open-api/rest-catalog-open-api.yaml` of Iceberg's sources; `st` is schemathesis,
on the path. Where either is missing, this is skipped. The server has no prefix, so paths are taken without; names are
those of a table and a namespace that are there, so that requests reach what they are about.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interop.interop_page import record
from tests.support.served_lake import served

pytestmark = [pytest.mark.interop, pytest.mark.slow]
EXAMPLES = 25
"""How many requests are made for each operation."""
NAMES = '[parameters]\n"path.namespace" = "db"\n"path.table" = "t"\n"path.view" = "v"\n'


@pytest.mark.timeout(3000)
def test_described_requests_cause_no_server_errors(tmp_path: Path) -> None:
    description, program = os.environ.get("FRAZIL_OPEN_API"), shutil.which("st")
    if description is None or program is None:
        pytest.skip("needs FRAZIL_OPEN_API, Iceberg's description of the protocol, and st of schemathesis")
    text = Path(description).read_text("utf-8").replace("/v1/{prefix}/", "/v1/")
    (tmp_path / "open-api.yaml").write_text(text, "utf-8")
    (tmp_path / "names.toml").write_text(NAMES, "utf-8")
    with served(tmp_path / "warehouse", state=tmp_path / "serve.db") as server:
        server.make_table("t", "db")
        command = [
            program, "--config-file", "names.toml", "run", "open-api.yaml", "--url", server.uri, "--phases", "fuzzing",
            "--checks", "not_a_server_error", "--max-examples", str(EXAMPLES), "--continue-on-failure",
            "--suppress-health-check", "all",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=2900, check=False)
        assert server.get("/healthz").code == 200
    found = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    tested = re.search(r"Tested: (\d+)", done.stdout)
    assert done.returncode == 0, done.stdout[-6000:]
    assert found is not None and tested is not None
    assert found[1] == found[2]
    assert int(tested[1]) >= 30 and int(found[1]) >= 30 * EXAMPLES // 2
    record(
        "Requests made by chance from the protocol's description, against `frazil serve`",
        {"operations": tested[1], "requests": found[1]},
        {"the server fails at none": "✓"},
    )
