"""What is sent again and what is not, who asks, and what is never shown."""

from __future__ import annotations

import base64
import json
import pickle
import re
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from frazil.errors import AccessDeniedError, InvalidPropertyError, InvalidRequestError, ServiceError
from frazil.rest.auth import BearerAuth, CallerAuth, NoAuth, SigV4Auth
from frazil.rest.oauth2 import OAuth2Auth, find_expiry
from frazil.rest.session import OutcomeLost, RestSession, new_uuid7
from frazil.rest.settings import Settings
from frazil.storage.http import HttpClient
from frazil.storage.sign_v4 import S3Credentials
from tests.support.rest_lab import LOST, ScriptedService, error_json, opened, scripted_service

PLACE = "/v1/thing"


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    with scripted_service() as made:
        yield made


class Session:
    """A session that waits for nothing, and the waits it would have made."""

    def __init__(self, service: ScriptedService, **options: Any) -> None:
        self.waits: list[float] = []
        self.service = service
        self.inner = RestSession(
            HttpClient(connect_timeout=5, timeout=5),
            options.pop("auth", NoAuth()),
            sleep=self.waits.append,
            chance=lambda: 0.0,
            **options,
        )

    def send(self, method: str = "GET", **options: Any) -> Any:
        return self.inner.send(method, f"{self.service.address}{PLACE}", **options)


def test_reads_are_retried_with_doubling_waits(service: ScriptedService) -> None:
    service.on(f"GET {PLACE}", (502, None), LOST, (504, None), (200, {"a": 1}))
    session = Session(service)
    answer = session.send()
    assert answer.status == 200 and json.loads(answer.reply.body) == {"a": 1}
    assert answer.is_after_doubt
    assert session.waits == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("answer", [LOST, (500, None), (502, None), (503, None), (504, None)])
def test_unsafe_change_with_a_lost_response_is_sent_once(service: ScriptedService, answer: Any) -> None:
    service.on(f"POST {PLACE}", answer)
    with pytest.raises(OutcomeLost):
        Session(service).send("POST", body={"x": 1})
    assert service.lines() == [f"POST {PLACE}"]


@pytest.mark.parametrize("refusal", [(429, None), (503, None, {"retry-after": "3"})])
def test_change_the_service_did_not_receive_is_retried(service: ScriptedService, refusal: Any) -> None:
    service.on(f"POST {PLACE}", refusal, refusal, (200, {}))
    session = Session(service)
    answer = session.send("POST", body={"x": 1})
    assert answer.status == 200 and not answer.is_after_doubt
    assert [one.body for one in service.asked] == [{"x": 1}] * 3
    assert session.waits == ([3.0, 3.0] if len(refusal) == 3 else [1.0, 2.0])


def test_idempotent_change_is_retried_with_the_same_key(service: ScriptedService) -> None:
    service.on(f"POST {PLACE}", LOST, (504, None), (200, {}))
    session = Session(service, honours_keys=True)
    session.send("POST", body={}, key=session.inner.new_key())
    keys = {one.headers["idempotency-key"] for one in service.asked}
    assert len(service.asked) == 3 and len(keys) == 1


def test_exhausted_retries_without_a_request_report_that_nothing_happened(service: ScriptedService) -> None:
    session = Session(service, max_retries=2)
    with pytest.raises(ServiceError, match="Cannot reach the catalog service"):
        session.inner.send("POST", "http://127.0.0.1:9/v1/thing", body={})
    assert len(session.waits) == 2


def test_retry_after_date_is_respected_unless_too_far(service: ScriptedService) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    service.on(f"GET {PLACE}", (503, None, {"retry-after": "Thu, 01 Jan 2026 00:00:07 GMT"}), (200, {}))
    session = Session(service, now_ms=lambda: int(now.timestamp() * 1000))
    session.send()
    assert session.waits == [7.0]
    service.on(f"GET {PLACE}", (503, None, {"retry-after": "4000"}))
    with pytest.raises(ServiceError):
        session.send()
    assert session.waits == [7.0]


def test_redirect_is_not_followed(service: ScriptedService) -> None:
    service.on("GET /v1/config", (302, None, {"location": "http://127.0.0.1:9/"}))
    with pytest.raises(ServiceError, match="the service redirects"):
        opened(service, {"token": "secret-token"})


def test_oversized_response_is_refused_while_streaming(service: ScriptedService) -> None:
    service.on(f"GET {PLACE}", (200, b"x" * 5000))
    with pytest.raises(InvalidRequestError, match="larger than 1000 bytes"):
        Session(service).send(max_bytes=1000)


@pytest.mark.parametrize("options", [{}, {"key": "00000000-0000-7000-8000-000000000000"}])
def test_oversized_response_to_a_change_leaves_the_outcome_unknown(service: ScriptedService, options: Any) -> None:
    service.on(f"POST {PLACE}", (200, b"x" * 5000))
    with pytest.raises(OutcomeLost, match="larger than 1000 bytes"):
        Session(service).send("POST", body={}, max_bytes=1000, **options)
    assert len(service.asked) == 1


def test_idempotency_keys_are_increasing_uuid_v7() -> None:
    keys = [new_uuid7(at) for at in (1_700_000_000_000, 1_700_000_000_001, 1_800_000_000_000)]
    assert keys == sorted(keys)
    assert all(
        re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one) for one in keys
    )
    assert len({new_uuid7(5) for _ in range(100)}) == 100


# Who asks


def bearer_of(service: ScriptedService, line: str = f"GET {PLACE}") -> list[str]:
    return [one.headers.get("authorization", "") for one in service.of(line)]


def oauth2(service: ScriptedService, now: list[float], **given: str) -> OAuth2Auth:
    return OAuth2Auth(
        Settings(given), f"{service.address}/token", HttpClient(), now=lambda: now[0], sleep=lambda seconds: None
    )


def form_of(service: ScriptedService, at: int) -> dict[str, str]:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(service.of("POST /token")[at].body))


def test_token_is_obtained_by_credential_and_renewed_before_expiry(service: ScriptedService) -> None:
    now = [1000.0]
    service.on(f"GET {PLACE}", (200, {}))
    service.on(
        "POST /token",
        (200, {"access_token": "first", "token_type": "bearer", "expires_in": 1000}),
        (200, {"access_token": "second", "token_type": "bearer", "expires_in": 10000}),
    )
    session = Session(service, auth=oauth2(service, now, credential="me:hidden", scope="all", audience="them"))
    for moment in (1000.0, 1899.0, 1901.0, 2000.0):
        now[0] = moment
        session.send()
    assert bearer_of(service) == ["Bearer first", "Bearer first", "Bearer second", "Bearer second"]
    assert form_of(service, 0) == {
        "grant_type": "client_credentials",
        "scope": "all",
        "audience": "them",
        "client_id": "me",
        "client_secret": "hidden",
    }


def test_token_is_exchanged_without_a_credential(service: ScriptedService) -> None:
    now = [1000.0]
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 2000}).encode()).decode().rstrip("=")
    old = f"h.{claims}.s"
    assert find_expiry(old) == 2000
    service.on(f"GET {PLACE}", (200, {}))
    service.on("POST /token", (200, {"access_token": "second", "expires_in": 500}))
    session = Session(service, auth=oauth2(service, now, token=old))
    session.send()
    now[0] = 1950.0
    session.send()
    assert bearer_of(service) == [f"Bearer {old}", "Bearer second"]
    assert form_of(service, 0)["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
    assert form_of(service, 0)["subject_token"] == old


def test_refused_token_is_renewed_once(service: ScriptedService) -> None:
    service.on(f"GET {PLACE}", (401, None), (200, {}))
    service.on("POST /token", (200, {"access_token": "first"}), (200, {"access_token": "second"}))
    Session(service, auth=oauth2(service, [0.0], credential="me:hidden")).send()
    assert bearer_of(service) == ["Bearer first", "Bearer second"]
    service.on(f"GET {PLACE}", (401, None))
    assert Session(service, auth=oauth2(service, [0.0], credential="me:hidden")).send().status == 401
    assert len(service.of(f"GET {PLACE}")) == 4


def test_concurrent_refusals_renew_the_token_once(service: ScriptedService) -> None:
    count = 8
    together = threading.Barrier(count)

    def refuse_the_first(asked: Any) -> Any:
        if asked.headers["authorization"] == "Bearer first":
            together.wait(60)
            return 401, None
        return 200, {}

    service.on(f"GET {PLACE}", refuse_the_first)
    tokens = (200, {"access_token": "first"}), (200, {"access_token": "second"}), (500, None)
    service.on("POST /token", *tokens)
    session = Session(service, auth=oauth2(service, [0.0], credential="me:hidden"))
    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(lambda _: session.send().status, range(count)))
    assert found == [200] * count
    assert len(service.of("POST /token")) == 2


def test_valid_token_is_used_while_another_is_fetched(service: ScriptedService) -> None:
    now = [0.0]
    asked, may_answer = threading.Event(), threading.Event()

    def slow(_: Any) -> Any:
        asked.set()
        assert may_answer.wait(60)
        return 200, {"access_token": "second", "expires_in": 1000}

    service.on(f"GET {PLACE}", (200, {}))
    service.on("POST /token", (200, {"access_token": "first", "expires_in": 1000}), slow)
    session = Session(service, auth=oauth2(service, now, credential="me:hidden"))
    session.send()
    now[0] = 950.0
    thread = threading.Thread(target=session.send)
    thread.start()
    assert asked.wait(60)
    session.send()
    assert bearer_of(service) == ["Bearer first", "Bearer first"]
    may_answer.set()
    thread.join(30)
    assert bearer_of(service)[-1] == "Bearer second"


def test_refused_credential_is_reported_without_the_secret(service: ScriptedService) -> None:
    service.on("POST /token", (401, {"error": "invalid_client", "error_description": "bad secret hidden-one"}))
    with pytest.raises(AccessDeniedError, match="invalid_client") as caught:
        Session(service, auth=oauth2(service, [0.0], credential="me:hidden-one")).send()
    assert "hidden-one" not in str(caught.value) + repr(caught.value)


def test_caller_may_supply_authentication(service: ScriptedService) -> None:
    service.on(f"GET {PLACE}", (200, {}))
    tokens = iter(["one", "two"])
    session = Session(service, auth=CallerAuth(lambda: next(tokens)))
    session.send()
    session.send()
    assert bearer_of(service) == ["Bearer one", "Bearer two"]
    Session(service, auth=CallerAuth(lambda: {"X-Api-Key": "k"})).send()
    assert service.asked[-1].headers["x-api-key"] == "k"


def test_sigv4_signature_matches_aws() -> None:
    auth = SigV4Auth(
        lambda: S3Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        region="us-east-1",
        service="glue",
        now=lambda: datetime(2015, 8, 30, 12, 36, tzinfo=UTC),
    )
    botocore = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    url = "https://glue.us-east-1.amazonaws.com/iceberg/v1/catalogs/1/namespaces/a%1Fb/tables?pageToken=&x=%2F"
    ours = auth.headers("GET", url, {"accept": "application/json"}, b"")
    signer = botocore.SigV4Auth(
        Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), "glue", "us-east-1"
    )
    theirs = AWSRequest("GET", url, headers={k: v for k, v in ours.items() if k not in ("authorization", "host")})
    theirs.context["timestamp"] = "20150830T123600Z"
    text = signer.string_to_sign(theirs, signer.canonical_request(theirs))
    assert signer.signature(text, theirs) == ours["authorization"].rpartition("Signature=")[2]
    assert "/us-east-1/glue/aws4_request" in ours["authorization"]


def test_token_is_sent_beside_a_signature_in_another_header() -> None:
    auth = SigV4Auth(lambda: S3Credentials("A", "B"), region="r", service="execute-api", inner=BearerAuth("tok"))
    found = auth.headers("GET", "https://h/v1/config", {}, b"")
    assert found["original-authorization"] == "Bearer tok"
    assert "original-authorization" in found["authorization"]


# What is never shown


def test_secrets_are_in_no_text_or_pickle(service: ScriptedService) -> None:
    service.on(
        "GET /v1/config", (200, {"defaults": {}, "overrides": {}}), *[error_json(403, "X", "no tok-en-123 here")]
    )
    catalog = opened(service, {"token": "tok-en-123", "header.authorization-extra": "hid-den"})
    shown = [repr(catalog), repr(catalog.session.auth), repr(catalog.settings), str(catalog.settings)]
    service.on("GET /v1/namespaces/db", error_json(403, "ForbiddenException", "not with tok-en-123"))
    with pytest.raises(AccessDeniedError) as caught:
        catalog.load_namespace_properties(("db",))
    shown += ["".join(traceback.format_exception(caught.value))]
    assert not any("tok-en-123" in one or "hid-den" in one for one in shown)
    for one in (catalog, catalog.session.auth, catalog.settings):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(one)


def test_token_is_not_sent_over_plain_http() -> None:
    from frazil.rest.open_rest import open_rest

    with pytest.raises(InvalidRequestError, match="unencrypted"):
        open_rest("lake", "http://catalog.example:8181", {"token": "x"})
    for name in ("header.Authorization", "header.x-api-key", "header.Cookie"):
        with pytest.raises(InvalidRequestError, match="unencrypted"):
            open_rest("lake", "http://catalog.example:8181", {name: "Bearer x"})
    with pytest.raises(InvalidRequestError, match="contains a user"):
        open_rest("lake", "https://me:secret@catalog.example", {})


def test_echoed_secret_headers_are_removed_from_messages(service: ScriptedService) -> None:
    given = {"header.Authorization": "Bearer canary-token", "header.X-Api-Key": "canary-key", "header.X-Team": "blue"}
    catalog = opened(service, given)
    said = "not for canary-token, canary-key of blue"
    service.on("GET /v1/namespaces", error_json(403, "ForbiddenException", said))
    with pytest.raises(AccessDeniedError, match=r"not for \*\*\*, \*\*\* of blue"):
        catalog.list_namespaces()
    assert service.asked[-1].headers["authorization"] == "Bearer canary-token"


@pytest.mark.parametrize(
    ("delegate", "more", "kind"),
    [
        (None, {}, None),
        (None, {"token": "t"}, "BearerAuth"),
        ("none", {"token": "t"}, None),
        ("basic", {"rest.auth.basic.username": "u", "rest.auth.basic.password": "p"}, "BasicAuth"),
        ("OAuth2", {"token": "t"}, "BearerAuth"),
    ],
)
def test_user_token_is_sent_beside_a_signature(delegate: str | None, more: dict[str, str], kind: str | None) -> None:
    from frazil.rest.open_rest import choose_auth

    given = {"rest.auth.type": "sigv4", "rest.signing-region": "eu-west-1", **more}
    given |= {} if delegate is None else {"rest.auth.sigv4.delegate-auth-type": delegate}
    found = choose_auth(Settings(given), "https://h", HttpClient(), None)
    assert isinstance(found, SigV4Auth)
    assert (None if found._inner is None else type(found._inner).__name__) == kind


@pytest.mark.parametrize("delegate", ["sigv4", "kerberos", ""])
def test_unknown_authentication_beside_a_signature_is_refused(delegate: str) -> None:
    from frazil.rest.open_rest import choose_auth

    given = {"rest.auth.type": "sigv4", "rest.signing-region": "r", "rest.auth.sigv4.delegate-auth-type": delegate}
    with pytest.raises(InvalidPropertyError, match="it is not supported"):
        choose_auth(Settings(given), "https://h", HttpClient(), None)


@pytest.mark.parametrize("exp", ["9" * 400, "1e300", '"soon"', "null", "true", "[" * 10_000])
def test_token_without_expiry_is_renewed_on_refusal(exp: str) -> None:
    claims = base64.urlsafe_b64encode(f'{{"exp": {exp}}}'.encode()).decode()
    assert find_expiry(f"h.{claims}.s") is None


@pytest.mark.parametrize("address", ["ftp://h", "https://", "http:///x", "https://h/?warehouse=x", "https://h o"])
def test_invalid_service_address_is_refused(address: str) -> None:
    from frazil.rest.open_rest import open_rest

    with pytest.raises(InvalidRequestError, match="Cannot connect"):
        open_rest("lake", address, {})
