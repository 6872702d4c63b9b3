"""Which TLS is asked of PostgreSQL. No server: what would be asked for is looked at."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.catalog.postgres import PostgresDatabase
from frazil.errors import StorageError

psycopg = pytest.importorskip("psycopg")


def asked(uri: str) -> dict[str, Any]:
    """Return what the driver is asked for beside the URI."""
    seen: dict[str, Any] = {}

    def connect(_: str, **options: Any) -> Any:
        seen.update(options)
        raise psycopg.OperationalError("server does not support SSL, but SSL was required")

    with pytest.raises(StorageError, match="does not support SSL") as caught:
        PostgresDatabase(uri, connect=connect)
    assert caught.value.hint is not None
    assert "sslmode=prefer" in caught.value.hint
    return seen


@pytest.mark.parametrize(
    "host", ["db.example.com", "10.0.0.7", "[2001:db8::1]", "localhost.example.com", "127.0.0.1,db.example.com"]
)
def test_tls_is_required_for_remote_hosts(host: str) -> None:
    assert asked(f"postgresql://u:secret@{host}/lake")["sslmode"] == "require"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.3.2.1", "[::1]", "", "%2Fvar%2Frun%2Fpostgresql"])
def test_tls_is_not_required_for_local_hosts(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    assert "sslmode" not in asked(f"postgresql://u:secret@{host}/lake")


@pytest.mark.parametrize("mode", ["verify-full", "prefer", "disable"])
def test_explicit_tls_settings_are_kept(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sslmode" not in asked(f"postgresql://u:secret@db.example.com/lake?sslmode={mode}")
    if mode != "prefer":
        monkeypatch.setenv("PGSSLMODE", mode)
        assert "sslmode" not in asked("postgresql://u:secret@db.example.com/lake")


def test_host_from_the_environment_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example.com")
    assert asked("postgresql:///lake")["sslmode"] == "require"


def test_ip_address_counts_as_host() -> None:
    assert asked("postgresql://localhost/lake?hostaddr=10.0.0.7")["sslmode"] == "require"
