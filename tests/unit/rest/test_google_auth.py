"""A Google account asks: by google-auth, against a token server on the loopback."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

import frazil
from frazil.errors import AccessDeniedError, FrazilError
from tests.support.rest_lab import ScriptedService, error_json, opened, scripted_service, table_json

pytest.importorskip("google.auth", reason="google-auth is not installed")
GOOGLE = {"rest.auth.type": "google", "header.x-goog-user-project": "my-project"}


def account(folder: Path, token_uri: str) -> Path:
    """Write the file of a service account whose tokens come from a server of ours."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    path = folder / "account.json"
    path.write_text(
        json.dumps(
            {
                "type": "service_account",
                "project_id": "p",
                "private_key_id": "1",
                "private_key": text,
                "client_email": "job@p.iam.gserviceaccount.com",
                "token_uri": token_uri,
            }
        )
    )
    return path


def tokens(service: ScriptedService, *given: str, expires_in: int = 3600) -> None:
    answers = [(200, {"access_token": one, "token_type": "Bearer", "expires_in": expires_in}) for one in given]
    service.on("POST /token", *answers)


def test_account_of_this_machine_gets_tokens_and_hides_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_service() as service:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account(tmp_path, f"{service.address}/token")))
        tokens(service, "canary-google-1")
        service.on("GET /v1/namespaces/db/tables/t", (200, table_json()))
        catalog = opened(service, GOOGLE)
        assert catalog.load_table(("db", "t")).name == "db.t"
        sent = service.of("GET /v1/namespaces/db/tables/t")[0]
        assert sent.headers["authorization"] == "Bearer canary-google-1"
        assert sent.headers["x-goog-user-project"] == "my-project"
        asked = service.of("POST /token")
        assert len(asked) == 1, "a token that is good is used again"
        claims: dict[str, Any] = json.loads(
            base64.urlsafe_b64decode(parse_qs(asked[0].body)["assertion"][0].split(".")[1] + "==")
        )
        assert claims["iss"] == "job@p.iam.gserviceaccount.com"
        assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
        assert "canary" not in repr(catalog)


def test_expired_token_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_service() as service:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account(tmp_path, f"{service.address}/token")))
        tokens(service, "canary-google-1", "canary-google-2")
        expired = error_json(401, "NotAuthorizedException", "canary-google-1 has ended")
        service.on("GET /v1/namespaces/db/tables/t", expired, (200, table_json()))
        opened(service, GOOGLE).load_table(("db", "t"))
        shown = [one.headers["authorization"] for one in service.of("GET /v1/namespaces/db/tables/t")]
        assert shown == ["Bearer canary-google-1", "Bearer canary-google-2"]


def test_refusal_hides_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_service() as service:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account(tmp_path, f"{service.address}/token")))
        tokens(service, "canary-google-1")
        service.on("GET /v1/namespaces/db/tables/t", error_json(403, "ForbiddenException", "not canary-google-1"))
        with pytest.raises(AccessDeniedError) as caught:
            opened(service, GOOGLE).load_table(("db", "t"))
        assert "canary" not in str(caught.value)


def test_token_server_refusal_is_a_frazil_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_service() as service:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account(tmp_path, f"{service.address}/token")))
        service.on("POST /token", (400, {"error": "invalid_grant"}))
        with pytest.raises(FrazilError, match="Google"):
            frazil.connect(service.address, properties=GOOGLE)


def test_machine_without_an_account_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with scripted_service() as service, pytest.raises(FrazilError, match="Google"):
        frazil.connect(service.address, properties=GOOGLE)
