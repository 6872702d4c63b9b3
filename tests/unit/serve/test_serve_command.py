"""`frazil serve` as a person starts it: what it refuses, TLS, and other catalogs than SQL."""

from __future__ import annotations

import datetime
import http.client
import ipaddress
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.served_lake import SCHEMA, served, table_path

TOKEN = "canary-token-0000000001"


def command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "frazil.cli", "serve", "-w", str(folder / "w"), *arguments]


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[str]:
    """Start the command; yield the URI it prints, and end it by SIGTERM."""
    log = folder / "log"
    environment = {**os.environ, "FRAZIL_SERVE_TOKEN": TOKEN}
    with log.open("wb") as out:
        process = subprocess.Popen(command(folder, "--port", "0", *arguments), stderr=out, stdout=out, env=environment)
    try:
        deadline = time.monotonic() + 60
        while (found := re.search(r"Serving on (\S+)", log.read_text())) is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert TOKEN not in log.read_text()


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 that signs itself; return its file and its key's."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    kept, key_file = folder / "cert.pem", folder / "key.pem"
    kept.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return kept, key_file


@pytest.mark.extended
def test_tls_from_files_and_token_from_the_environment(tmp_path: Path) -> None:
    kept, key = certificate(tmp_path)
    with running(tmp_path, "--tls-cert", str(kept), "--tls-key", str(key)) as uri:
        assert uri.startswith("https://127.0.0.1:")
        port = int(uri.rpartition(":")[2])
        context = ssl.create_default_context(cafile=str(kept))
        for headers, code in (({}, 401), ({"Authorization": f"Bearer {TOKEN}"}, 200)):
            connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
            connection.request("GET", "/v1/config", headers=headers)
            answer = connection.getresponse()
            assert (answer.status, "error" in json.loads(answer.read())) == (code, code == 401)
            connection.close()


def test_lake_options_may_precede_or_follow_the_command(tmp_path: Path) -> None:
    with running(tmp_path, "--property", f"read.roots={tmp_path}", "--state", str(tmp_path / "state.db"), "-q"):
        assert (tmp_path / "w" / "catalog.db").exists()
        assert (tmp_path / "state.db").exists()
    before = [sys.executable, "-m", "frazil.cli", "-w", str(tmp_path / "w"), "serve", "--host", "0.0.0.0"]
    done = subprocess.run(before, capture_output=True, text=True, timeout=60, check=False)
    assert "no token is required" in done.stderr


@pytest.mark.extended
@pytest.mark.parametrize(
    "arguments, told",
    [
        (["--host", "0.0.0.0"], "no token is required"),
        (["--token", "short"], "16 or more"),
        (["--tls-cert", "cert.pem"], "requires both"),
        (["--secrets", "none.txt"], "Cannot read the secrets"),
        (["--vend", "everything"], "none, keys or session"),
    ],
)
def test_unusable_target_is_reported_and_fails(tmp_path: Path, arguments: list[str], told: str) -> None:
    done = subprocess.run(command(tmp_path, *arguments), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, told in done.stderr) == (1, True), done.stderr
    assert "Traceback" not in done.stderr


def test_filesystem_catalog_is_served_with_its_limits(tmp_path: Path) -> None:
    with served(tmp_path / "w", catalog="filesystem", state=tmp_path / "serve.db") as server:
        server.make_table("a", "db")
        server.make_table("b", "db")
        update = {"action": "set-properties", "updates": {"p": "1"}}
        done = server.post(table_path("a"), {"requirements": [], "updates": [update]})
        assert done.code == 200
        assert server.get(table_path("a")).json["metadata"]["properties"]["p"] == "1"
        changes = [
            {"identifier": {"namespace": ["db"], "name": one}, "requirements": [], "updates": [update]}
            for one in ("a", "b")
        ]
        both = server.post("/v1/transactions/commit", {"table-changes": changes})
        assert (both.code, both.error) == (406, "UnsupportedOperationException")
        names = {"source": {"namespace": ["db"], "name": "a"}, "destination": {"namespace": ["db"], "name": "c"}}
        assert server.post("/v1/tables/rename", names).code == 406
        view = {"name": "v", "schema": SCHEMA, "view-version": {}, "properties": {}}
        assert server.post("/v1/namespaces/db/views", view).code == 400
        assert server.get("/v1/namespaces/db/views").json["identifiers"] == []


def test_in_memory_lake_is_served() -> None:
    with served("memory:", catalog="memory") as server:
        server.make_table("a", "db")
        assert server.get(table_path("a")).code == 200
