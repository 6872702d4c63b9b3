"""Azure's object store: accounts, containers and blobs, as in `abfss:` and related locations.

    abfss://container@account.dfs.core.windows.net/path     also abfs:, wasb:, wasbs:
    abfss://container/path, az://container/path             with the account `adls.account-name`

Accounts with hierarchical folders (Data Lake Storage) accept the same requests as those without, at `blob.` instead of
`dfs.`. This module holds the differences from S3: authentication (a shared key, a signed query, or an Entra token), a
header that every blob needs, listings, and blocks instead of parts. How a file is created, and what a lost response
means, is in `object_store.py`, as for every store.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final
from urllib.parse import parse_qsl, unquote

from frazil.errors import InvalidPropertyError, InvalidRequestError
from frazil.storage.multipart import PartedNewFile
from frazil.storage.object_properties import (
    AZURE_ACCOUNT,
    AZURE_ACCOUNT_NAMES,
    AZURE_ANONYMOUS,
    AZURE_ENDPOINT,
    AZURE_KEY,
    AZURE_KEY_NAMES,
    AZURE_SAS,
    AZURE_TOKEN,
    first_of,
    is_true,
)
from frazil.storage.object_requests import (
    Listed,
    ObjectRequests,
    Outcome,
    child_text,
    children,
    parse_xml,
    unreadable,
)
from frazil.storage.object_service import Address, ObjectService, UnsignedRequest
from frazil.storage.object_store import ObjectStorage
from frazil.storage.origin import Origin, parse_endpoint
from frazil.storage.store_accounts import AZURE_ACCOUNT_PATTERN, AZURE_BUCKET, AZURE_TAIL, AzureHosts

_VERSION: Final = "2021-08-06"
_SIGNED: Final = (
    "content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
    "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range",
)  # fmt: skip
"""The headers whose values are signed, in this order."""

Secrets = Mapping[str, str]
"""Properties with credentials; read for each request, since a service may renew them."""


@dataclass(frozen=True, slots=True)
class AzureService(ObjectService):
    """Azure accounts, or an emulator at an endpoint."""

    account: str | None = None
    endpoint: Origin | None = None
    is_anonymous: bool = False
    secrets: Callable[[], Secrets] | None = field(default=None, repr=False)
    hosts: AzureHosts = AzureHosts()  # noqa: RUF009 - a frozen value
    """The hosts in locations that may be contacted."""
    are_users: bool = True
    """Whether the credentials are the user's, and so belong to the user's accounts."""

    name = "Azure Blob Storage"
    id_header = "x-ms-meta-frazilwrite"
    condition = ("if-none-match", "*")
    taken_codes = frozenset({"BlobAlreadyExists"})
    has_bulk_delete = False
    has_conditional_parts = True
    bucket_pattern = AZURE_BUCKET

    @property
    def is_proven(self) -> bool:
        """Azure's own store honours the condition."""
        return self.endpoint is None

    def address(self, bucket: str) -> Address:
        """Return the address of a container: with the account in the host name, or in the path of an emulator."""
        container, account, tail = self._parts(bucket)
        if self.endpoint is not None:
            return Address(self.endpoint, f"/{account}/{container}/")
        self.hosts.check(account, tail)
        return Address(Origin(f"{account}.blob{tail}"), f"/{container}/")

    def path(self, bucket: str, key: str) -> str:
        """Return the path of a blob, or of a container, which ends without a slash."""
        path = self.address(bucket).path
        return f"{path}{key}" if key != "" else path[:-1]

    def _parts(self, bucket: str) -> tuple[str, str, str]:
        match = AZURE_BUCKET.fullmatch(bucket)
        assert match is not None
        account = match["account"] or self.account
        if account is None:
            raise InvalidRequestError(
                f"Cannot use the container {bucket!r}: it names no account",
                hint=f"Write container@account.dfs{AZURE_TAIL}, or set {AZURE_ACCOUNT}.",
            )
        return match["container"], account, match["tail"] or AZURE_TAIL

    def authorize(self, request: UnsignedRequest) -> dict[str, str]:
        """Add the headers that authenticate a request."""
        headers = {**request.headers, "x-ms-version": _VERSION, "x-ms-date": format_datetime(request.now, usegmt=True)}
        account = self._account_of(request.path, request.headers["host"])
        secret_type, secret = self._secret(account, request.headers["host"])
        if secret_type == AZURE_TOKEN:
            headers["authorization"] = f"Bearer {secret}"
        elif secret_type == AZURE_KEY:
            length = str(request.body_bytes) if request.body_bytes else ""
            signed = _signature(secret, account, request.method, request.path, request.query, headers, length)
            headers["authorization"] = f"SharedKey {account}:{signed}"
        return headers

    def secret_query(self, path: str, host: str) -> str:
        """Return the signed query (SAS) of an account, if it is used for authentication."""
        secret_type, secret = self._secret(self._account_of(path, host), host)
        return secret.lstrip("?") if secret_type == AZURE_SAS else ""

    def _account_of(self, path: str, host: str) -> str:
        return path.split("/")[1] if self.endpoint is not None else host.partition(".")[0]

    def _secret(self, account: str, host: str) -> tuple[str, str]:
        if self.is_anonymous:
            return "", ""
        if self.secrets is None:
            raise InvalidRequestError(
                "Cannot use the object store: its credentials are not included in a pickled storage",
                hint="Choose the storage from its properties where it is used.",
            )
        secrets = self.secrets()
        for name in (f"{AZURE_SAS}.{account}", *(key for key in secrets if key.startswith(f"{AZURE_SAS}.{account}."))):
            if name in secrets:
                return AZURE_SAS, secrets[name]
        for secret_type, names in (
            (AZURE_SAS, (AZURE_SAS,)),
            (AZURE_TOKEN, (AZURE_TOKEN,)),
            (AZURE_KEY, AZURE_KEY_NAMES),
        ):
            secret = first_of(secrets, names)
            if secret is None:
                continue
            # An Entra token may be valid for several accounts; a key or a signature belongs to one.
            if secret_type != AZURE_TOKEN and self.are_users and not self.hosts.owns(account, host):
                raise InvalidRequestError(
                    f"Cannot use the account {account!r}: your {secret_type} belongs to "
                    f"{', '.join(sorted(self.hosts.accounts))}",
                    hint=f"Set {AZURE_SAS}.{account} for this account.",
                )
            return secret_type, secret
        raise InvalidRequestError(
            f"Cannot use the account {account!r}: it has no credentials",
            hint=f"Set {AZURE_KEY}, {AZURE_SAS} (or {AZURE_SAS}.{account}), {AZURE_TOKEN}, or {AZURE_ANONYMOUS}.",
        )

    def without_secrets(self) -> AzureService:
        """Return the service without credentials."""
        return replace(self, secrets=None)

    def write_headers(self) -> Mapping[str, str]:
        """Return the headers that a blob written by one request needs."""
        return {"x-ms-blob-type": "BlockBlob"}

    def _secrets(self) -> tuple[str, ...]:
        if self.secrets is None:
            return ()
        secrets = tuple(self.secrets().values())
        return (*secrets, *(value for text in secrets for name, value in parse_qsl(text) if name == "sig"))


def azure_service(
    properties: Mapping[str, str],
    secrets: Callable[[], Secrets] | None = None,
    *,
    hosts: AzureHosts = AzureHosts(),  # noqa: B008 - a frozen value
) -> AzureService:
    """Return the Azure service configured by properties; a credential source passed by the caller takes precedence."""
    account = first_of(properties, AZURE_ACCOUNT_NAMES)
    if account is not None and not AZURE_ACCOUNT_PATTERN.fullmatch(account):
        raise InvalidPropertyError(f"Cannot use the account {account!r}: it is not an account name")
    endpoint = parse_endpoint(AZURE_ENDPOINT, properties[AZURE_ENDPOINT]) if AZURE_ENDPOINT in properties else None
    credentials = {name: value for name, value in properties.items() if is_azure_secret(name)}
    for name, value in credentials.items():
        if not value.isascii() or not value.isprintable() or value == "" or " " in value:
            raise InvalidPropertyError(f"Cannot use {name}: it is empty or contains invalid characters")
    is_anonymous = is_true(properties, AZURE_ANONYMOUS)
    if not credentials and secrets is None and not is_anonymous:
        raise InvalidRequestError(
            "Cannot use Azure's store: no credentials are configured",
            hint=f"Set {AZURE_KEY}, {AZURE_SAS}, {AZURE_TOKEN}, or {AZURE_ANONYMOUS} for a public container.",
        )
    return AzureService(account, endpoint, is_anonymous, secrets or (lambda: credentials), hosts, secrets is None)


def is_azure_secret(name: str) -> bool:
    """Return whether a property holds a credential for Azure."""
    return name in (AZURE_SAS, AZURE_TOKEN, *AZURE_KEY_NAMES) or name.startswith(f"{AZURE_SAS}.")


def _signature(
    key: str, account: str, method: str, path: str, query: str, headers: Mapping[str, str], length: str
) -> str:
    """Sign a request with an account's key."""
    values = {**headers, "content-length": length, "date": ""}
    canonical_headers = "".join(
        f"{name}:{headers[name].strip()}\n" for name in sorted(headers) if name.startswith("x-ms-")
    )
    resource = f"/{account}{path}"
    for name, value in sorted(parse_qsl(query, keep_blank_values=True)):
        resource += f"\n{name.lower()}:{value}"
    text = "\n".join([method, *(values.get(name, "") for name in _SIGNED)]) + f"\n{canonical_headers}{resource}"
    try:
        secret = base64.b64decode(key, validate=True)
    except ValueError as error:
        raise InvalidPropertyError(f"Cannot use {AZURE_KEY}: it is not base64") from error
    return base64.b64encode(hmac.new(secret, text.encode(), hashlib.sha256).digest()).decode()


class AzureRequests(ObjectRequests):
    """Requests to Azure, which has its own listing format."""

    __slots__ = ()

    def _list_query(self, prefix: str, is_deep: bool, max_keys: int, following: str | None) -> dict[str, str]:
        query = {"restype": "container", "comp": "list", "prefix": prefix, "maxresults": str(max_keys)}
        if not is_deep:
            query["delimiter"] = "/"
        return query if following is None else {**query, "marker": following}

    def _parse_page(self, body: bytes, location: str) -> tuple[Listed, str | None]:
        try:
            root = parse_xml(body)
            if root.tag != "EnumerationResults":
                raise unreadable(location, "the response is not a listing")
            blobs = next(iter(children(root, "Blobs")), ET.Element("Blobs"))
            objects = [
                (_name(child), int(child_text(element, "Content-Length")), _time_ms(element))
                for child in children(blobs, "Blob")
                for element in children(child, "Properties")[:1]
                # An account with hierarchical folders lists them too.
                if child_text(element, "ResourceType") != "directory"
            ]
            prefixes = [_name(child) for child in children(blobs, "BlobPrefix")]
        except (ET.ParseError, ValueError, OverflowError, TypeError) as error:
            raise unreadable(location, "the response is not a listing") from error
        following = child_text(root, "NextMarker")
        return Listed(objects, prefixes), None if following == "" else following


def _name(element: ET.Element) -> str:
    name_element = children(element, "Name")[0]
    text = name_element.text or ""
    return unquote(text, errors="strict") if name_element.get("Encoded", "").lower() == "true" else text


def _time_ms(element: ET.Element) -> int:
    return int(parsedate_to_datetime(child_text(element, "Last-Modified")).timestamp() * 1000)


class BlocksNewFile(PartedNewFile):
    """A new blob that is sent in blocks, which are invisible until a list of them is sent.

    The store removes unlisted blocks after a week.
    """

    __slots__ = ()

    def _begin(self) -> str:
        return hashlib.blake2b(repr(sorted(self._headers.items())).encode(), digest_size=12).hexdigest()

    def _part_query(self, number: int) -> Iterable[tuple[str, str]]:
        return (("comp", "block"), ("blockid", self._block(number)))

    def _block(self, number: int) -> str:
        return base64.b64encode(f"{self._upload}-{number:05}".encode()).decode()

    def _part_tag(self, number: int, headers: Mapping[str, str]) -> str:
        return self._block(number)

    def _send_complete(self, condition: Mapping[str, str]) -> Outcome:
        listed = "".join(f"<Latest>{etag}</Latest>" for etag in self._etags)
        headers = {name: value for name, value in self._headers.items() if name != "x-ms-blob-type"}
        return self._requests.send(
            "PUT",
            self._place,
            query=(("comp", "blocklist"),),
            headers={**headers, **condition},
            body=f"<?xml version='1.0' encoding='utf-8'?><BlockList>{listed}</BlockList>".encode(),
        )

    def _abort(self, upload: str) -> None:
        """Do nothing: the store removes unlisted blocks."""


class AzureStorage(ObjectStorage):
    """The containers of Azure accounts."""

    __slots__ = ()

    requests_kind = AzureRequests
    parts_kind = BlocksNewFile
