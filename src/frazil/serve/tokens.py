"""`/v1/oauth/tokens`: issues a token for a client secret, or for a token that expires soon. Errors follow OAuth2."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import parse_qsl, unquote

from frazil.serve.auth import IssuedToken, OauthProblem
from frazil.serve.exchange import Answer, Request, json_answer
from frazil.serve.service import Service

CLIENT_CREDENTIALS = "client_credentials"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
_NOT_KEPT = {"cache-control": "no-store"}
_MAX_FIELDS = 20


def give_token(service: Service, request: Request) -> Answer:
    """Issue a token."""
    try:
        issued = _issue(service, request)
    except OauthProblem as problem:
        answer_body = {"error": problem.error, "error_description": problem.description}
        headers = {**_NOT_KEPT, **({"www-authenticate": "Basic"} if problem.code == 401 else {})}
        response = json_answer(answer_body, code=problem.code, headers=headers)
        return Answer(response.code, response.body, response.headers, problem.error)
    body: dict[str, object] = {
        "access_token": issued.token,
        "token_type": "bearer",
        "expires_in": issued.seconds,
        "issued_token_type": ACCESS_TOKEN,
        "scope": issued.right.value,
    }
    return json_answer(body, headers=_NOT_KEPT)


def _issue(service: Service, request: Request) -> IssuedToken:
    if service.auth.is_open:
        raise OauthProblem(400, "unauthorized_client", "this server requires no token and issues none")
    fields = _fields(request)
    grant_type = fields.get("grant_type")
    if grant_type == CLIENT_CREDENTIALS:
        client_id, secret = _client(request, fields)
        return service.auth.issue(client_id, secret, fields.get("scope"), service.now_seconds)
    if grant_type == TOKEN_EXCHANGE:
        subject = fields.get("subject_token", "")
        return service.auth.exchange(subject, fields.get("scope"), service.now_seconds)
    raise OauthProblem(400, "unsupported_grant_type", "the grant types are client_credentials and token-exchange")


def _fields(request: Request) -> dict[str, str]:
    try:
        pairs = parse_qsl(request.body.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise OauthProblem(400, "invalid_request", "the body is not a form") from None
    return dict(pairs)


def _client(request: Request, fields: dict[str, str]) -> tuple[str, str]:
    """Return the client and its secret, from the form or from a Basic header."""
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            name, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            raise OauthProblem(400, "invalid_request", "the Authorization header is not readable") from None
        return unquote(name), unquote(secret)
    return fields.get("client_id", ""), fields.get("client_secret", "")
