"""Access to the tables of a service: the requested access modes, credentials, signatures, and tokens for single tables.

A service may return a token with a table (`token` in its `config`), which is then used for requests about that table.
Tokens are sent only to the service's own host, whatever its responses name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from frazil.catalog.base import random_id
from frazil.catalog.names import Identifier, format_name
from frazil.errors import UnsupportedError
from frazil.rest import service as has
from frazil.rest import settings as names
from frazil.rest.auth import SigV4Auth, TableAuth
from frazil.rest.load_result import LoadResult, VendedCredentials, read_credentials, read_table
from frazil.rest.refusals import refusal
from frazil.rest.remote_sign import DEFAULT_SIGNER, SIGNER_ENDPOINTS, SIGNER_URIS
from frazil.rest.service import Service, read_object
from frazil.rest.session import RestSession
from frazil.rest.settings import Settings
from frazil.rest.table_storage import table_storage
from frazil.storage.base import Storage
from frazil.storage.choose import SchemeStorage
from frazil.storage.http import Answer
from frazil.storage.object_properties import first_of
from frazil.storage.origin import shown_url

Views = tuple[Identifier, ...]
"""The views through which a table is read, the outermost first."""
DELEGATION: Final = "x-iceberg-access-delegation"
_KEYS: Final = "vended-credentials"
_SIGNATURES: Final = "remote-signing"
_REFRESH: Final = "client.refresh-credentials-endpoint"


class TableAccess:
    """The access to the tables of one service. Thread-safe."""

    def __init__(
        self,
        service: Service,
        session: RestSession,
        settings: Settings,
        plain_storage: SchemeStorage,
        now_ms: Callable[[], int],
    ) -> None:
        self._service = service
        self._session = session
        self._plain = plain_storage
        self._now_ms = now_ms
        self._id = random_id()
        self._sessions: dict[tuple[Identifier, Views], RestSession] = {}
        self._lock = threading.Lock()
        has_keys = any(name.endswith("access-key-id") for name in plain_storage.stores.own)
        # A service that does not list signing may not understand a list of modes.
        ways = f"{_KEYS},{_SIGNATURES}" if service.has(has.SIGN) else _KEYS
        self.header = {} if DELEGATION in settings.headers() or has_keys else {DELEGATION: ways}
        """The header that requests credentials or signatures, unless the user has credentials or sets another."""

    def storage(
        self,
        table: Identifier,
        result: LoadResult,
        views: Views = (),
        *,
        plan_id: str | None = None,
        keys: tuple[VendedCredentials, ...] | None = None,
    ) -> Storage:
        """Return the storage of a table's files, with the credentials vended with it or with a scan plan."""
        return table_storage(
            self._plain,
            result.config,
            result.credentials if keys is None else keys,
            lambda: self.new_credentials(table, result, views, plan_id),
            lambda request: self.sign(table, result.config, request, views),
            owner=" ".join([self._id, plan_id or "", format_name(table), *map(format_name, views)]),
            now_ms=self._now_ms,
        )

    def session_of(self, table: Identifier, views: Views = ()) -> RestSession:
        """Return the session for requests about a table: with the token issued for it, else that of the user."""
        return self._sessions.get((table, views), self._session)

    def keep_token(self, table: Identifier, config: Mapping[str, str], views: Views = ()) -> None:
        """Use the token that a service issued with a table, read through views, from now on."""
        key = (table, views)
        token = config.get(names.TOKEN)
        with self._lock:
            # A SigV4 signature occupies the only authorization header.
            if token is None or isinstance(self._session.auth, SigV4Auth):
                self._sessions.pop(key, None)
                return
            self._session.hide(token)
            self._sessions[key] = self._session.with_auth(TableAuth(token, self._session.auth))

    def new_credentials(
        self, table: Identifier, result: LoadResult, views: Views = (), plan_id: str | None = None
    ) -> tuple[VendedCredentials, ...]:
        """Request new credentials for a table's files, or for those of a plan."""
        what = f"get credentials for table {format_name(table)}"
        address = next(
            (
                config[_REFRESH]
                for config in (result.config, *(key.config for key in result.credentials))
                if _REFRESH in config
            ),
            None,
        )
        url, query = f"{self._service.table(table)}/credentials", self._service.reader_query(views)
        if plan_id is not None:
            query["planId"] = plan_id
        if address is not None and not self._service.has(has.CREDENTIALS):
            url = self._own_address(address, what)
        if address is not None or self._service.has(has.CREDENTIALS):
            reply = self._ask("GET", url, what, table, views, query=query)
            return read_credentials(read_object(reply, what).raw("storage-credentials", None))
        query.pop("planId", None)
        reply = self._ask("GET", self._service.table(table), what, table, views, query=query, headers=self.header)
        reloaded = read_table(reply, format_name(table))
        return (*reloaded.credentials, VendedCredentials("", reloaded.config))

    def sign(self, table: Identifier, config: Mapping[str, str], request: dict[str, Any], views: Views = ()) -> Answer:
        """Request the service's signature for a request to a store."""
        what = f"sign a request for files of table {format_name(table)}"
        url = f"{self._service.table(table)}/sign"
        if not self._service.has(has.SIGN):
            endpoint = first_of(config, SIGNER_ENDPOINTS) or DEFAULT_SIGNER
            url = self._own_address(endpoint, what, base=first_of(config, SIGNER_URIS))
        return self._ask("POST", url, what, table, views, body=request)

    def _ask(
        self,
        method: str,
        url: str,
        what: str,
        table: Identifier,
        views: Views,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> Answer:
        session = self.session_of(table, views)
        answer = session.send(method, url, query=query, headers=headers, body=body, is_question=True)
        if not answer.reply.is_success:
            raise refusal(session, answer.reply, what, table=table)
        return answer.reply

    def _own_address(self, endpoint: str, what: str, *, base: str | None = None) -> str:
        """Return an address named by the service if it is on the service's own host, else raise an error."""
        url = endpoint
        if not endpoint.startswith(("http://", "https://")):
            url = f"{(self._service.base if base is None else base).rstrip('/')}/{endpoint.lstrip('/')}"
        if urlsplit(url)[:2] != urlsplit(self._service.base)[:2]:
            raise UnsupportedError(
                f"Cannot {what}: the service delegates it to {shown_url(url)}, to which no tokens are sent"
            )
        return url
