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
def test_tls_is_asked_for_where_the_host_is_another_machine(host: str) -> None:
    assert asked(f"postgresql://u:secret@{host}/lake")["sslmode"] == "require"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.3.2.1", "[::1]", "", "%2Fvar%2Frun%2Fpostgresql"])
def test_no_tls_is_needed_on_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    assert "sslmode" not in asked(f"postgresql://u:secret@{host}/lake")


@pytest.mark.parametrize("mode", ["verify-full", "prefer", "disable"])
def test_what_the_uri_or_libpq_says_of_tls_is_kept(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sslmode" not in asked(f"postgresql://u:secret@db.example.com/lake?sslmode={mode}")
    if mode != "prefer":
        monkeypatch.setenv("PGSSLMODE", mode)
        assert "sslmode" not in asked("postgresql://u:secret@db.example.com/lake")


def test_a_host_of_the_environment_is_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example.com")
    assert asked("postgresql:///lake")["sslmode"] == "require"


def test_an_address_counts_as_a_host() -> None:
    assert asked("postgresql://localhost/lake?hostaddr=10.0.0.7")["sslmode"] == "require"
