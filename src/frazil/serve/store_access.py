"""How clients reach a table's files in an object store: where it is, and credentials or signatures of this server.

What clients are given is decided where the server is started:

    vend none      where the store is (endpoint, region), and no credentials: clients have their own. The default
    vend keys      the server's own credentials, to callers who may write everywhere: they open all folders
    vend session   credentials of a role for an hour, with a policy for the table's folders; to callers who may only
                   read, for reading
    sign           clients send the heads of their requests here to be signed, and get no credentials at all

Clients say by `X-Iceberg-Access-Delegation` which of these they can use. All of it is for the table's folders, as far
as they are below the warehouse or a folder of `delete.roots`, and overlap none that is closed to the caller: whoever
writes metadata does not decide what the server's credentials are used for. For callers who may only read, only reads
are signed; `sign_requests.py` has the allow-lists.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from frazil.errors import InvalidPropertyError, StorageError, UnsupportedError
from frazil.loaded import LoadedTable
from frazil.serve.error_answers import FORBIDDEN
from frazil.serve.exchange import UNIT_SEPARATOR, Refusal
from frazil.serve.sign_requests import SignRequest, check_request
from frazil.storage.assume_role import Role, SessionKeys, assume_role
from frazil.storage.locations import is_under, may_overlap, scheme_of, table_folders
from frazil.storage.object_properties import (
    ROLE_ENDPOINT,
    S3_ENDPOINT,
    S3_PATH_STYLE,
    S3_REGION,
    S3_VIRTUAL,
    is_true,
)
from frazil.storage.object_service import S3Service, s3_service
from frazil.storage.sign_v4 import S3Credentials, query_text, sign_v4

VENDED: Final = "vended-credentials"
SIGNED: Final = "remote-signing"
SESSION_SECONDS: Final = 3600
RENEW_SECONDS: Final = 900
"""Credentials of a session are given out as long as they are good for so long."""
MAX_SESSIONS: Final = 1_000

_S3_SCHEMES: Final = ("s3", "s3a", "s3n")
_WILD: Final = re.compile(r"[*?$]")
"""Characters that policies would take for wildcards and variables."""
_NOT_SIGNED: Final = frozenset({"authorization", "user-agent", "connection", "expect", "transfer-encoding"})
"""Headers that are changed on the way, or are the signature itself."""


AssumeRole = Callable[[str, str, int], SessionKeys]
"""Asks for credentials of a role, under a policy, for some seconds."""


class StoreAccess:
    """What clients are given to reach files. Several threads may ask."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        vend: str = "none",
        role: str = "",
        signs: bool = False,
        roots: Sequence[str] = (),
        now_ms: Callable[[], int] = lambda: int(datetime.now(UTC).timestamp() * 1000),
        assume_role: AssumeRole | None = None,
    ) -> None:
        self._store = dict(properties or {})
        self._vend = vend
        self._role = role
        self._signs = signs
        self._roots = tuple(_as_s3(root) for root in roots)
        if vend not in ("none", "keys", "session"):
            raise InvalidPropertyError(f"Cannot vend {vend!r}: it is none, keys or session")
        if (vend == "session") != bool(role):
            raise InvalidPropertyError(f"Cannot vend {vend} with the role {role!r}: session and a role belong together")
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._sessions: dict[tuple[tuple[str, ...], bool], SessionKeys] = {}
        self._assume = assume_role if assume_role is not None else partial(_assume_role, self._store)

    def config(self, loaded: LoadedTable) -> dict[str, str]:
        """Return what every client of a table needs to know of the store, and nothing secret."""
        if not _is_s3(loaded):
            return {}
        config: dict[str, str] = {
            name: self._store[name] for name in (S3_ENDPOINT, S3_PATH_STYLE) if name in self._store
        }
        if S3_ENDPOINT in config:
            # Clients have defaults of their own, and a signature is for one of the two ways.
            config.setdefault(S3_PATH_STYLE, str(not is_true(self._store, S3_VIRTUAL)).lower())
        region = next((self._store[name] for name in S3_REGION if name in self._store), None)
        return config if region is None else {**config, "client.region": region, "s3.region": region}

    def delegated(
        self, loaded: LoadedTable, asked: str, *, can_write: bool, closed: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Return the fields of an answer by which a client reaches files, of the ways it can use."""
        ways = {piece.strip() for piece in asked.split(",")}
        if not _is_s3(loaded):
            return {}
        if VENDED in ways:
            credentials = self.credentials(loaded, can_write=can_write, closed=closed)
            if credentials:
                return {"config": {**self.config(loaded), **self._refresh(loaded)}, "storage-credentials": credentials}
        if SIGNED in ways and self._signs:
            endpoint = f"{_path_of(loaded)}/sign"
            # Clients of older versions, and PyIceberg, know the names with `s3.`.
            signer = {
                "s3.remote-signing-enabled": "true",
                "signer.endpoint": endpoint,
                "s3.signer": "S3V4RestSigner",
                "s3.signer.endpoint": endpoint,
            }
            return {"config": {**self.config(loaded), **signer}, "remote-signing-config": {}}
        return {}

    def credentials(
        self, loaded: LoadedTable, *, can_write: bool, closed: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return credentials for each folder of a table; none where the server gives none.

        `closed` are folders that are closed to the caller; None for one to whom none is.
        """
        may_have_keys = can_write and closed is None
        if not _is_s3(loaded) or self._vend == "none" or (self._vend == "keys" and not may_have_keys):
            return []
        folders = self._folders(loaded, closed)
        if not folders:
            return []
        if self._vend == "keys":
            source = self._service().credentials
            if source is None:
                return []
            found = _key_fields(source(), None)
        else:
            session = self._session([_as_s3(folder) for folder in folders], can_write=can_write)
            found = _key_fields(session.keys, session.ends_ms)
        config = {**self.config(loaded), **found, **self._refresh(loaded)}
        return [{"prefix": f"{folder}/", "config": config} for folder in folders]

    def _refresh(self, loaded: LoadedTable) -> dict[str, str]:
        """Return where Iceberg Java's clients ask for new credentials, if these end."""
        return {"client.refresh-credentials-endpoint": f"{_path_of(loaded)}/credentials"} if self._role else {}

    def _session(self, folders: list[str], *, can_write: bool) -> SessionKeys:
        key = (tuple(folders), can_write)
        with self._lock:
            known = self._sessions.get(key)
        if known is not None and known.ends_ms - self._now_ms() > RENEW_SECONDS * 1000:
            return known
        policy = table_policy(folders, can_write=can_write)
        made = self._assume(self._role, policy, SESSION_SECONDS)
        with self._lock:
            if len(self._sessions) >= MAX_SESSIONS:
                self._sessions.clear()
            self._sessions[key] = made
        return made

    def _folders(self, loaded: LoadedTable, closed: Sequence[str] | None) -> list[str]:
        """Return the folders of a table that are the server's to give access to, and not closed to the caller."""
        folders = table_folders(loaded.metadata.location, loaded.metadata.properties)
        return [
            folder
            for folder in folders
            if any(is_under(_as_s3(folder), root) for root in self._roots)
            and not any(may_overlap(folder, other) for other in closed or ())
        ]

    def _service(self) -> S3Service:
        return s3_service(self._store)

    # Signing

    def sign(
        self, loaded: LoadedTable, request: SignRequest, *, can_write: bool, closed: Sequence[str] | None = None
    ) -> tuple[str, dict[str, list[str]]]:
        """Return the URI and the headers of a request with its signature, if it is for the table's files."""
        if not self._signs:
            raise UnsupportedError("Cannot sign the request: this server signs none", hint="Start it with --sign.")
        service = self._service()
        if service.credentials is None:
            raise UnsupportedError("Cannot sign the request: the server has no credentials for the store")
        checked = check_request(service, request)
        folders = [_as_s3(folder) for folder in self._folders(loaded, closed)]
        for location in checked.locations:
            if not any(is_under(location, folder) for folder in folders):
                raise Refusal(403, FORBIDDEN, f"Cannot sign the request: {location} is not in the table's folders")
        if not can_write and not checked.is_read:
            raise Refusal(403, FORBIDDEN, f"Cannot sign {request.method}: the token is for reading")
        given = {name.lower(): ",".join(values) for name, values in request.headers.items()}
        headers = {name: value for name, value in given.items() if name not in _NOT_SIGNED}
        headers["host"] = request.target.netloc
        for name in ("x-amz-content-sha256", "x-amz-date", "x-amz-security-token"):
            headers.pop(name, None)
        signed = sign_v4(
            service.credentials(),
            method=request.method,
            path=request.target.path or "/",
            query=query_text(request.query),
            headers=headers,
            body_sha256=checked.body_sha256,
            region=request.region,
            now=datetime.now(UTC),
        )
        kept = {name: value for name, value in given.items() if name in _NOT_SIGNED and name != "authorization"}
        return request.uri, {name: [value] for name, value in {**kept, **signed}.items()}


def table_policy(folders: Sequence[str], *, can_write: bool) -> str:
    """Return the policy of a session: some folders, to read or to write."""
    actions = ["s3:GetObject"]
    if can_write:
        actions += ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
    files, lists = [], []
    for folder in folders:
        bucket, _, key = folder.partition("://")[2].partition("/")
        key = _WILD.sub(lambda found: f"${{{found[0]}}}", key.rstrip("/"))
        files.append(f"arn:aws:s3:::{bucket}/{key}/*")
        lists.append(
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": [f"arn:aws:s3:::{bucket}"],
                "Condition": {"StringLike": {"s3:prefix": [f"{key}/*"]}},
            }
        )
    statements = [{"Effect": "Allow", "Action": actions, "Resource": files}, *lists]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def _path_of(loaded: LoadedTable) -> str:
    """Return the path of a table at this server, as clients put it behind the server's address."""
    namespace = _escaped(UNIT_SEPARATOR.join(loaded.identifier[:-1]))
    return f"v1/namespaces/{namespace}/tables/{_escaped(loaded.identifier[-1])}"


def _as_s3(location: str) -> str:
    return f"s3://{location.partition('://')[2]}" if scheme_of(location) in _S3_SCHEMES else location


def _is_s3(loaded: LoadedTable) -> bool:
    return scheme_of(loaded.metadata.location) in _S3_SCHEMES


def _key_fields(keys: S3Credentials, ends_ms: int | None) -> dict[str, str]:
    fields = {"s3.access-key-id": keys.access_key_id, "s3.secret-access-key": keys.secret_access_key}
    if keys.session_token is not None:
        fields["s3.session-token"] = keys.session_token
    if ends_ms is not None:
        fields["s3.session-token-expires-at-ms"] = str(ends_ms)
    return fields


def _escaped(text: str) -> str:
    return quote(text, safe="")


def _assume_role(properties: Mapping[str, str], role: str, policy: str, seconds: int) -> SessionKeys:
    """Ask for credentials of a role with the server's own."""
    keys = s3_service(properties).credentials
    if keys is None:
        raise UnsupportedError(f"Cannot give credentials of {role}: the server has none of its own")
    region = next((properties[name] for name in S3_REGION if name in properties), "us-east-1")
    asked = Role(role, region, "frazil-serve", seconds, endpoint=properties.get(ROLE_ENDPOINT), policy=policy)
    try:
        return assume_role(keys(), asked)
    except StorageError as error:
        raise UnsupportedError(error.message) from None


NO_ACCESS: Final = StoreAccess()
