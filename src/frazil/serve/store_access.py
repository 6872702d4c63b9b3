"""Clients' access to a table's files in an object store: its address, and credentials or signatures of this server.

The server's options decide what clients get:

    vend none      the store's address (endpoint, region) without credentials: clients have their own. The default
    vend keys      the server's own credentials, for callers with write access everywhere: they open all folders
    vend session   credentials of a role for an hour, with a policy for the table's folders; for callers with read
                   access, for reading
    sign           clients send the heads of their requests to be signed, and get no credentials at all

Clients announce by `X-Iceberg-Access-Delegation` which of these they support. Access is limited to the table's folders,
as far as they are below the warehouse or a folder of `delete.roots`, and do not overlap one that is closed to the
caller:
metadata alone does not decide what the server's credentials are used for. For callers with read access, only reads are
signed; `sign_requests.py` has the allow-lists.
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
"""The minimum remaining validity of a session's credentials that are vended."""
MAX_SESSIONS: Final = 1_000

_S3_SCHEMES: Final = ("s3", "s3a", "s3n")
_WILD: Final = re.compile(r"[*?$]")
"""Characters that policies would interpret as wildcards and variables."""
_NOT_SIGNED: Final = frozenset({"authorization", "user-agent", "connection", "expect", "transfer-encoding"})
"""Headers that are changed in transit, or are the signature itself."""


AssumeRole = Callable[[str, str, int], SessionKeys]
"""Requests credentials of a role, under a policy, for some seconds."""


class StoreAccess:
    """The access to files given to clients. Thread-safe."""

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
            raise InvalidPropertyError(f"Cannot vend {vend!r}: it must be none, keys or session")
        if (vend == "session") != bool(role):
            raise InvalidPropertyError(
                f"Cannot vend {vend} with the role {role!r}: session requires a role, and a role requires session"
            )
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._sessions: dict[tuple[tuple[str, ...], bool], SessionKeys] = {}
        self._assume = assume_role if assume_role is not None else partial(_assume_role, self._store)

    def config(self, loaded: LoadedTable) -> dict[str, str]:
        """Return the public settings of the store for every client of a table."""
        if not _is_s3(loaded):
            return {}
        config: dict[str, str] = {
            name: self._store[name] for name in (S3_ENDPOINT, S3_PATH_STYLE) if name in self._store
        }
        if S3_ENDPOINT in config:
            # Clients have their own defaults, and a signature is valid for one addressing style only.
            config.setdefault(S3_PATH_STYLE, str(not is_true(self._store, S3_VIRTUAL)).lower())
        region = next((self._store[name] for name in S3_REGION if name in self._store), None)
        return config if region is None else {**config, "client.region": region, "s3.region": region}

    def delegated(
        self, loaded: LoadedTable, requested: str, *, can_write: bool, closed: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Return the fields of a response that give access to files, by the requested ways."""
        ways = {piece.strip() for piece in requested.split(",")}
        if not _is_s3(loaded):
            return {}
        if VENDED in ways:
            credentials = self.credentials(loaded, can_write=can_write, closed=closed)
            if credentials:
                return {"config": {**self.config(loaded), **self._refresh(loaded)}, "storage-credentials": credentials}
        if SIGNED in ways and self._signs:
            endpoint = f"{_path_of(loaded)}/sign"
            # Older clients, and PyIceberg, know the names with the prefix `s3.`.
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
        """Return credentials for each folder of a table; empty if the server vends none.

        `closed` are folders that are closed to the caller; None if none is.
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
            keys = _key_fields(source(), None)
        else:
            session = self._session([_as_s3(folder) for folder in folders], can_write=can_write)
            keys = _key_fields(session.keys, session.ends_ms)
        config = {**self.config(loaded), **keys, **self._refresh(loaded)}
        return [{"prefix": f"{folder}/", "config": config} for folder in folders]

    def _refresh(self, loaded: LoadedTable) -> dict[str, str]:
        """Return where Iceberg Java's clients request new credentials, if these expire."""
        return {"client.refresh-credentials-endpoint": f"{_path_of(loaded)}/credentials"} if self._role else {}

    def _session(self, folders: list[str], *, can_write: bool) -> SessionKeys:
        key = (tuple(folders), can_write)
        with self._lock:
            cached = self._sessions.get(key)
        if cached is not None and cached.ends_ms - self._now_ms() > RENEW_SECONDS * 1000:
            return cached
        policy = table_policy(folders, can_write=can_write)
        session = self._assume(self._role, policy, SESSION_SECONDS)
        with self._lock:
            if len(self._sessions) >= MAX_SESSIONS:
                self._sessions.clear()
            self._sessions[key] = session
        return session

    def _folders(self, loaded: LoadedTable, closed: Sequence[str] | None) -> list[str]:
        """Return the folders of a table that the server may give access to and that are open to the caller."""
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
        """Sign a request if it is for the table's files; return its URI and headers."""
        if not self._signs:
            raise UnsupportedError(
                "Cannot sign the request: this server does not sign requests", hint="Start it with --sign."
            )
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
        request_headers = {name.lower(): ",".join(values) for name, values in request.headers.items()}
        headers = {name: value for name, value in request_headers.items() if name not in _NOT_SIGNED}
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
        unsigned = {
            name: value for name, value in request_headers.items() if name in _NOT_SIGNED and name != "authorization"
        }
        return request.uri, {name: [value] for name, value in {**unsigned, **signed}.items()}


def table_policy(folders: Sequence[str], *, can_write: bool) -> str:
    """Return the policy of a session: certain folders, for reading or for writing."""
    actions = ["s3:GetObject"]
    if can_write:
        actions += ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
    files, lists = [], []
    for folder in folders:
        bucket, _, key = folder.partition("://")[2].partition("/")
        key = _WILD.sub(lambda match: f"${{{match[0]}}}", key.rstrip("/"))
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
    """Return the path of a table at this server, which clients append to the server's address."""
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
    """Request credentials of a role with the server's own."""
    keys = s3_service(properties).credentials
    if keys is None:
        raise UnsupportedError(f"Cannot vend credentials for {role}: the server has no credentials to assume it with")
    region = next((properties[name] for name in S3_REGION if name in properties), "us-east-1")
    role_request = Role(role, region, "frazil-serve", seconds, endpoint=properties.get(ROLE_ENDPOINT), policy=policy)
    try:
        return assume_role(keys(), role_request)
    except StorageError as error:
        raise UnsupportedError(error.message) from None


NO_ACCESS: Final = StoreAccess()
