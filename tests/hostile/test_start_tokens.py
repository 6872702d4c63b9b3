"""Servers on the loopback, where every user of the machine can reach them: tokens, and secrets in no process list."""

from __future__ import annotations

import logging
import os
import re
import signal
import stat
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
from frazil.cli.serve_command import log_requests
from frazil.cli.start_token import new_token
from frazil.errors import InvalidRequestError, StorageError
from frazil.serve.auth import Auth, Secret
from frazil.spark.jvm.start_jvm import is_secret_setting
from tests.support.served_lake import served

ROOT = Path(__file__).parents[2]
SECRETS = ("PLANTED-TOKEN-000001", "planted-s3-secret-01")


@contextmanager
def running(
    folder: Path, *arguments: str, until: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Start a command; yield it once a text is in its log, and end it by SIGTERM."""
    log, out = folder / "log", folder / "out"
    given = {key: value for key, value in os.environ.items() if not key.startswith(("FRAZIL_", "PYSPARK_G", "SPARK_"))}
    given |= {"PYTHONPATH": os.pathsep.join(one for one in sys.path if one), **environment}
    with log.open("wb") as errors, out.open("wb") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", "frazil.cli", *arguments], stderr=errors, stdout=printed, env=given, cwd=folder
        )
    try:
        deadline = time.monotonic() + 120
        while until not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield process, out
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()


def status(uri: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(uri, headers=headers), timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


@pytest.mark.parametrize("command", [["serve"], ["ui", "--no-browser"]])
def test_server_without_a_token_creates_one_and_prints_it_once(tmp_path: Path, command: list[str]) -> None:
    frazil.connect(tmp_path / "lake").close()
    file = tmp_path / "token"
    arguments = [*command, "-w", str(tmp_path / "lake"), "--port", "0", "--token-file", str(file)]
    with running(tmp_path, *arguments, until=" on http") as (_, out):
        time.sleep(0.2)
        (line,) = out.read_text().splitlines()
        uri, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/\?token=([\w-]{32})", line).groups()  # type: ignore[union-attr]
        assert file.read_text() == f"{token}\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert status(f"{uri}/v1/namespaces") == 401
        assert status(f"{uri}/v1/namespaces", Authorization=f"Bearer {token}") == 200
    assert token not in (tmp_path / "log").read_text()


def test_open_option_requires_no_token(tmp_path: Path) -> None:
    arguments = ["serve", "-w", str(tmp_path / "lake"), "--port", "0", "--open"]
    with running(tmp_path, *arguments, until="Serving on") as (_, out):
        uri = re.search(r"Serving on (\S+)", (tmp_path / "log").read_text())[1]  # type: ignore[index]
        assert status(f"{uri}/v1/namespaces") == 200
        assert out.read_text() == ""


def test_token_file_never_overwrites_another_file(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("keep")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(StorageError):
        new_token(is_needed=True, is_open=False, token_file=str(tmp_path / "link"))
    assert target.read_text() == "keep"
    loose = tmp_path / "loose"
    loose.write_text("an older and longer token than the one that is made here")
    loose.chmod(0o644)
    made = new_token(is_needed=True, is_open=False, token_file=str(loose))
    assert loose.read_text() == f"{made}\n"
    assert stat.S_IMODE(loose.stat().st_mode) == 0o600
    for is_open, file in ((True, None), (False, str(loose))):
        with pytest.raises(InvalidRequestError):
            new_token(is_needed=False, is_open=is_open, token_file=file)


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "--host", "0.0.0.0", "--open"],
        ["ui", "--no-browser", "--host", "0.0.0.0", "--open"],
        ["spark-server", "--connect", "0", "--host", "0.0.0.0", "--open"],
        ["spark-server", "--thrift", "0", "--host", "0.0.0.0"],
        ["spark-server", "--thrift", "0", "--connect", "0", "--host", "0.0.0.0", "--token", SECRETS[0]],
    ],
)
def test_other_machines_are_refused_by_default(tmp_path: Path, arguments: list[str]) -> None:
    frazil.connect(tmp_path / "lake").close()
    command = [sys.executable, "-m", "frazil.cli", "-w", str(tmp_path / "lake"), *arguments]
    given = {key: value for key, value in os.environ.items() if not key.startswith("FRAZIL_")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=given, check=False)
    assert done.returncode == 1, done.stderr
    assert ("Cannot " in done.stderr and "0.0.0.0" in done.stderr) or "is not a loopback" in done.stderr


# The console


def test_address_with_the_token_opens_the_console(tmp_path: Path) -> None:
    from frazil.console.app import console_routes

    auth = Auth([Secret("me", SECRETS[0])])
    with served(
        tmp_path / "lake", auth=auth, beside=lambda service: console_routes(service, may_write=False)
    ) as server:
        assert server.get("/").code == 401
        assert server.get("/?token=wrong").code == 401
        opened = server.get(f"/?token={SECRETS[0]}")
        assert opened.code == 200 and SECRETS[0].encode() not in opened.body
        cookie = opened.headers["set-cookie"].partition(";")[0]
        assert "SameSite=Strict" in opened.headers["set-cookie"]
        assert server.get("/", Cookie=cookie).code == 200


def test_sign_in_redirects_to_this_console_only(tmp_path: Path) -> None:
    from frazil.console.app import console_routes

    auth = Auth([Secret("me", SECRETS[0])])
    with served(
        tmp_path / "lake", auth=auth, beside=lambda service: console_routes(service, may_write=False)
    ) as server:
        page = server.get("/sign-in").body.decode()
        form_token = re.search(r'name="form_token" value="([^"]+)"', page)[1]  # type: ignore[index]
        for back in (
            "/%09/evil.example",
            "//evil.example",
            "/%5Cevil.example",
            "/a%5Cb",
            "/%0A/evil.example",
            "https:x",
        ):
            body = f"token={SECRETS[0]}&form_token={form_token}&back={back}".encode()
            reply = server.post("/sign-in", body, Origin=server.uri, **{"Sec-Fetch-Site": "same-origin"})
            assert (reply.code, reply.headers["location"]) == (303, "/"), back
        body = f"token={SECRETS[0]}&form_token={form_token}&back=/tables/db.t".encode()
        assert server.post("/sign-in", body, Origin=server.uri).headers["location"] == "/tables/db.t"


def test_line_break_in_a_name_cannot_forge_log_records(capsys: pytest.CaptureFixture[str]) -> None:
    log_requests(is_quiet=False)
    logger = logging.getLogger("frazil.serve")
    try:
        try:
            raise StorageError("Cannot read /w/a\n2026-01-01 00:00:00,000 INFO forged\r\x1b[2J")
        except StorageError as error:
            logger.error("request x\n2026-01-01 forged", exc_info=error)
    finally:
        for name in ("frazil.serve", "uvicorn"):
            found = logging.getLogger(name)
            found.removeHandler(found.handlers[-1])
            found.propagate = True
    first, *further = capsys.readouterr().err.splitlines()
    assert " ERROR request x" in first
    assert further and all(line.startswith("    ") for line in further)
    assert not any("\x1b" in line or "\r" in line for line in further)


# Spark


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.connect.authenticate.token", "x"),
        ("spark.hadoop.fs.s3a.bucket.b.secret.key", "x"),
        ("spark.hadoop.fs.s3a.bucket.b.access.key", "x"),
        ("spark.hadoop.fs.s3a.bucket.b.session.token", "x"),
        ("spark.hadoop.fs.s3a.bucket.b.encryption.key", "x"),
        ("spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net", "x"),
        ("spark.hadoop.fs.azure.sas.fixed.token.acct.dfs.core.windows.net", "x"),
        ("spark.frazil.lake.l.property.credential", "x"),
        ("spark.frazil.lake.l.property.rest.auth.basic.password", "x"),
        ("spark.frazil.lake.l.property.header.x", "x"),
        ("spark.frazil.lake.l.catalog", "postgresql://me:pw@host/db"),
        ("spark.frazil.lake.l.warehouse", "abfss://c@a.dfs.core.windows.net?sv=1&sig=x"),
    ],
)
def test_settings_that_hold_secrets_are_recognised(name: str, value: str) -> None:
    assert is_secret_setting(name, value)


def test_jvm_start_settings_are_not_treated_as_secrets() -> None:
    for name in ("spark.master", "spark.app.name", "spark.jars.packages", "spark.driver.memory", "spark.jars",
                 "spark.driver.extraJavaOptions", "spark.driver.extraClassPath", "spark.driver.host",
                 "spark.sql.warehouse.dir", "spark.hadoop.fs.s3a.bucket.b.endpoint"):  # fmt: skip
        assert not is_secret_setting(name, "http://127.0.0.1:9000")


def command_lines(process: int) -> dict[int, str]:
    """Return the command lines of a process and of all that it started."""
    parents: dict[int, int] = {}
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            try:
                parents[int(one.name)] = int((one / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {process}
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            break
        found |= more
    return {one: Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode() for one in found}


@pytest.mark.extended
@pytest.mark.timeout(300)
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
def test_spark_server_shows_no_secret_on_a_command_line(tmp_path: Path) -> None:
    secrets = tmp_path / "properties"
    secrets.write_text(
        f"s3.access-key-id=AKIAPLANTED\ns3.secret-access-key={SECRETS[1]}\ns3.endpoint=http://127.0.0.1:9\n"
    )
    arguments = ["-w", "s3://bucket/lake", "-c", f"sqlite:///{tmp_path}/catalog.db", "--properties-file", str(secrets),
                 "spark-server", "--connect", "0", "--master", "local[1]",
                 "--conf", "spark.jars.packages=", "--conf", "spark.jars=/none/hadoop-aws-0.jar"]  # fmt: skip
    with running(tmp_path, *arguments, until="The lake is", FRAZIL_SPARK_TOKEN=SECRETS[0]) as (process, _):
        lines = command_lines(process.pid)
        assert any("java" in line for line in lines.values())
        for line in lines.values():
            assert not any(secret in line for secret in (*SECRETS, "AKIAPLANTED")), line
    assert not any(secret in (tmp_path / "log").read_text() for secret in SECRETS)
