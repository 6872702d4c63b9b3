"""Who asks, as frazil's own server sees it: tokens, and OAuth2 by client credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

import frazil
from frazil.errors import AccessDeniedError
from frazil.serve.auth import Auth, Right, Secret
from tests.support.served_lake import served

SECRET = "a-secret-of-some-length"


def test_credential_is_exchanged_for_a_valid_token(tmp_path: Path) -> None:
    auth = Auth([], [Secret("me", SECRET, Right.WRITE)])
    with served(tmp_path / "wh", auth=auth) as server:
        address = f"http://127.0.0.1:{server.port}"
        with frazil.connect(address, credential=f"me:{SECRET}") as lake:
            lake.create_table("db.t", "id bigint")
            assert lake.list_tables("db") == [("db", "t")]
        for wrong in ("me:another-secret-of-length", f"you:{SECRET}"):
            with pytest.raises(AccessDeniedError, match="Cannot get a token") as caught:
                frazil.connect(address, credential=wrong)
            assert wrong.partition(":")[2] not in str(caught.value)
        with pytest.raises(AccessDeniedError):
            frazil.connect(address)


def test_read_only_token_can_read(tmp_path: Path) -> None:
    auth = Auth([Secret("w", SECRET, Right.WRITE), Secret("r", f"{SECRET}-2", Right.READ)], [])
    with served(tmp_path / "wh", auth=auth) as server:
        address = f"http://127.0.0.1:{server.port}"
        with frazil.connect(address, token=SECRET) as lake:
            lake.create_table("db.t", "id bigint")
        with frazil.connect(address, auth=lambda: f"{SECRET}-2") as lake:
            table = lake.table("db.t")
            with pytest.raises(AccessDeniedError):
                table.set_properties({"a": "b"})
            assert "a" not in table.refresh().properties
