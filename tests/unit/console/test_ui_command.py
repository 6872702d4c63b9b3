"""`frazil ui` and `frazil serve --ui` as a person starts them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import frazil
from tests.support.console_lake import make_lake

COMMAND = [sys.executable, "-m", "frazil.cli"]


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[str]:
    """Start a command; yield the address it prints, and end it by SIGTERM."""
    log = folder / "log"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FRAZIL_")}
    with log.open("wb") as out:
        process = subprocess.Popen([*COMMAND, *arguments, "--port", "0"], stderr=out, stdout=out, env=environment)
    try:
        deadline = time.monotonic() + 60
        while (found := re.search(r" on (http\S+)", log.read_text())) is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()


def ask(uri: str, body: object = None) -> tuple[int, str]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(uri, data), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_console_is_read_only_by_default(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake")
    files = {one for one in (tmp_path / "lake").rglob("*") if one.is_file()}
    with running(tmp_path, "ui", "-w", str(tmp_path / "lake"), "--no-browser", "--open") as uri:
        code, page = ask(uri)
        assert code == 200
        assert "shop.orders" in page
        assert "read-only" in page
        assert ask(f"{uri}/tables/shop.orders")[0] == 200
        code, told = ask(f"{uri}/v1/namespaces", {"namespace": ["new"]})
        assert code == 400
        assert "without --write" in told
    assert {one for one in (tmp_path / "lake").rglob("*") if one.is_file()} - files == set()


@pytest.mark.extended
def test_serve_with_ui_has_catalog_and_console_at_one_address(tmp_path: Path) -> None:
    with running(tmp_path, "-w", str(tmp_path / "lake"), "serve", "--ui", "--open") as uri:
        assert ask(f"{uri}/v1/namespaces", {"namespace": ["new"]})[0] == 200
        assert "There is nothing here yet" in ask(uri)[1]
        assert "read-only" in ask(uri)[1]


@pytest.mark.extended
@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (["ui", "--host", "0.0.0.0", "--no-browser"], 1, "no token is required"),
        (["ui", "-w", "/does/not/exist", "--no-browser"], 1, "it does not exist"),
        (["serve", "--write"], 2, "needs --ui"),
    ],
)
def test_unusable_target_is_reported_and_fails(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    frazil.connect(tmp_path / "lake").close()
    command = [*COMMAND, "-w", str(tmp_path / "lake"), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert found.returncode == code
    assert said in " ".join(found.stderr.replace("│", " ").split())
