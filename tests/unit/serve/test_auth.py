"""Who may ask: tokens, clients, what each may do, and what pages in browsers may not."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from frazil.errors import InvalidRequestError
from frazil.serve.auth import TOKEN_SECONDS, Auth, Denied, Right, Secret, parse_auth_file
from tests.support.served_lake import Reply, Served, served

TOKEN = "canary-token-0000000001"
READER = "canary-token-0000000002"
CLIENT = "canary-client-secret-01"
SECRETS = f"""
# who may use the lake
token ops {TOKEN} write
token board {READER} read
client spark {CLIENT} write
client viewer {CLIENT}x read
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("guarded") / "w", auth=Auth(*parse_auth_file(SECRETS))) as found:
        yield found


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def ask_token(server: Served, **fields: str) -> Reply:
    return server.post("/v1/oauth/tokens", urlencode(fields).encode())


def test_unauthenticated_requests_learn_nothing(guarded: Served) -> None:
    for headers in ({}, {"Authorization": "Basic eDp5"}, bearer("wrong-token-00000000001"), bearer("")):
        refused = guarded.ask("GET", "/v1/namespaces", headers=headers)
        assert (refused.code, refused.error) == (401, "NotAuthorizedException")
        assert refused.headers["www-authenticate"] == "Bearer"
    assert guarded.get("/v1/config").code == 401
    assert guarded.get("/metrics").code == 401
    assert guarded.get("/healthz").code == 200


def test_read_only_token_cannot_write(guarded: Served) -> None:
    assert guarded.ask("GET", "/v1/namespaces", headers=bearer(READER)).code == 200
    refused = guarded.ask("POST", "/v1/namespaces", {"namespace": ["a"]}, headers=bearer(READER))
    assert (refused.code, refused.error) == (403, "ForbiddenException")
    assert guarded.ask("POST", "/v1/namespaces", {"namespace": ["a"]}, headers=bearer(TOKEN)).code == 200
    assert guarded.ask("GET", "/metrics", headers=bearer(READER)).code == 200


def test_client_credentials_grant_returns_a_token(guarded: Served) -> None:
    given = ask_token(guarded, grant_type="client_credentials", client_id="spark", client_secret=CLIENT)
    assert (given.code, given.json["token_type"], given.json["expires_in"]) == (200, "bearer", TOKEN_SECONDS)
    assert given.headers["cache-control"] == "no-store"
    token = given.json["access_token"]
    assert guarded.ask("POST", "/v1/namespaces", {"namespace": ["b"]}, headers=bearer(token)).code == 200
    pair = base64.b64encode(f"viewer:{CLIENT}x".encode()).decode()
    basic = guarded.ask(
        "POST", "/v1/oauth/tokens", b"grant_type=client_credentials", headers={"Authorization": f"Basic {pair}"}
    )
    assert basic.json["scope"] == "read"
    assert guarded.ask("DELETE", "/v1/namespaces/b", headers=bearer(basic.json["access_token"])).code == 403


def test_token_exchange_returns_a_new_token(guarded: Served) -> None:
    kind = "urn:ietf:params:oauth:grant-type:token-exchange"
    first = ask_token(guarded, grant_type="client_credentials", client_id="spark", client_secret=CLIENT)
    given = ask_token(guarded, grant_type=kind, subject_token=first.json["access_token"], scope="read")
    assert (given.code, given.json["scope"]) == (200, "read")
    # A token that was configured does not end, and comes back as it is.
    assert ask_token(guarded, grant_type=kind, subject_token=TOKEN).json["access_token"] == TOKEN
    assert ask_token(guarded, grant_type=kind, subject_token="x").json["error"] == "invalid_grant"


def test_oauth_errors_follow_the_standard(guarded: Served) -> None:
    wrong = ask_token(guarded, grant_type="client_credentials", client_id="spark", client_secret="wrong")
    assert (wrong.code, wrong.json["error"]) == (401, "invalid_client")
    assert ask_token(guarded, grant_type="password").json["error"] == "unsupported_grant_type"
    more = ask_token(
        guarded, grant_type="client_credentials", client_id="viewer", client_secret=f"{CLIENT}x", scope="write"
    )
    assert (more.code, more.json["error"]) == (400, "invalid_scope")
    assert guarded.post("/v1/oauth/tokens", b"\xff").json["error"] == "invalid_request"


def test_token_expires_and_works_on_servers_sharing_secrets_and_key() -> None:
    first, second = (Auth((), [Secret("spark", CLIENT)], key=b"k" * 32) for _ in range(2))
    issued = first.issue("spark", CLIENT, "catalog", 1_000)
    assert second.caller_of(f"Bearer {issued.token}", 1_001).right is Right.WRITE
    with pytest.raises(Denied) as late:
        second.caller_of(f"Bearer {issued.token}", 1_000 + TOKEN_SECONDS)
    assert late.value.is_expired
    other = Auth((), [Secret("spark", "another-secret-000001")], key=b"k" * 32)
    with pytest.raises(Denied) as unknown:
        other.caller_of(f"Bearer {issued.token}", 1_001)
    assert not unknown.value.is_expired
    head, text, signature = issued.token.split(".")
    for forged in (f"{head}.{text}.{signature[:-2]}aa", f"{head}.{text}x.{signature}", f"{head}..", head):
        with pytest.raises(Denied):
            first.caller_of(f"Bearer {forged}", 1_001)


def test_expired_token_is_status_419(tmp_path: Path) -> None:
    auth = Auth((), [Secret("spark", CLIENT)])
    with served(tmp_path / "w", auth=auth) as server:
        old = auth.issue("spark", CLIENT, None, 1_000).token
        late = server.ask("GET", "/v1/namespaces", headers=bearer(old))
        assert (late.code, late.error) == (419, "AuthenticationTimeoutException")


def test_browser_pages_are_refused_on_the_loopback_without_secrets(server: Served) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"}):
        refused = server.ask("POST", "/v1/namespaces", {"namespace": ["evil"]}, headers=headers)
        assert (refused.code, refused.error) == (403, "ForbiddenException"), headers
    own = {"Origin": server.uri}
    assert server.ask("GET", "/v1/namespaces", headers=own).code == 200
    assert server.ask("GET", "/v1/namespaces", headers={"Host": f"localhost:{server.port}"}).code == 200


def test_secrets_are_in_no_log_or_repr(guarded: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        ask_token(guarded, grant_type="client_credentials", client_id="spark", client_secret=CLIENT)
        guarded.ask("GET", f"/v1/namespaces?pageToken={TOKEN}", headers=bearer(TOKEN))
        guarded.ask("GET", "/v1/namespaces", headers=bearer("wrong-token-00000000001"))
    text = caplog.text + repr(guarded.service.auth) + repr(Secret("a", TOKEN))
    assert '"operation": "getToken"' in text
    for secret in (TOKEN, READER, CLIENT, "wrong-token"):
        assert secret not in text


def test_short_or_malformed_secrets_are_refused_and_hidden() -> None:
    with pytest.raises(InvalidRequestError, match="16 or more") as short:
        Auth([Secret("ops", "short-secret")])
    assert "short-secret" not in str(short.value)
    for line in ("token ops", f"token ops {TOKEN} all", f"user ops {TOKEN} read", f"client {TOKEN}"):
        with pytest.raises(InvalidRequestError, match="line 1") as bad:
            parse_auth_file(line)
        assert TOKEN not in str(bad.value)
    with pytest.raises(InvalidRequestError, match="the same name"):
        Auth((), [Secret("a", CLIENT), Secret("a", TOKEN)])
