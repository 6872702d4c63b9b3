"""Decides which requests to an object store the server signs: reads and writes of a table, by allow-lists.

A signature lets the client use the server's credentials. So everything that a request may contain is listed here:
methods with their query names (each once), header names, the store's host, and for a deletion of many files its body,
whose hash is signed. Anything else is refused, such as `x-amz-copy-source`, access control lists, grants, versions and
bucket policies.
"""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from frazil.errors import InvalidRequestError
from frazil.serve.error_answers import FORBIDDEN
from frazil.serve.exchange import Refusal
from frazil.storage.object_requests import parse_xml
from frazil.storage.object_service import S3Service

UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_REGION: Final = re.compile(r"[a-z0-9-]{1,32}")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.\-]{0,221}")
_URI: Final = re.compile(r"[!-~]+")
_SHA256: Final = re.compile(r"[0-9a-f]{64}|UNSIGNED-PAYLOAD|STREAMING-[A-Z0-9-]{1,60}")
_ENCODING: Final = re.compile(r"<\?xml[^>]*encoding\s*=\s*['\"](?!utf-8['\"])", re.IGNORECASE)

_ANY: Final = frozenset({"x-id"})
"""Names that newer clients add to identify the operation."""
_LIST: Final = frozenset({"prefix", "delimiter", "max-keys", "encoding-type", "marker", "list-type", "start-after"})
_LIST_2: Final = frozenset({"continuation-token", "fetch-owner"})
_READS: Final[Mapping[str, tuple[frozenset[str], ...]]] = {
    "GET": (frozenset(), frozenset({"partNumber"})),
    "HEAD": (frozenset(), frozenset({"partNumber"})),
}
_WRITES: Final[Mapping[str, tuple[frozenset[str], ...]]] = {
    "GET": (frozenset({"uploadId"}), frozenset({"uploadId", "max-parts", "part-number-marker"})),
    "PUT": (frozenset(), frozenset({"partNumber", "uploadId"})),
    "POST": (frozenset({"uploads"}), frozenset({"uploadId"})),
    "DELETE": (frozenset(), frozenset({"uploadId"})),
}
_HEADERS: Final = frozenset(
    {
        "accept", "accept-encoding", "amz-sdk-invocation-id", "amz-sdk-request", "authorization", "cache-control",
        "connection", "content-disposition", "content-encoding", "content-language", "content-length", "content-md5",
        "content-type", "date", "expect", "host", "if-match", "if-modified-since", "if-none-match",
        "if-unmodified-since", "range", "transfer-encoding", "user-agent", "x-amz-content-sha256", "x-amz-date",
        "x-amz-decoded-content-length", "x-amz-sdk-checksum-algorithm", "x-amz-security-token", "x-amz-trailer",
        "x-amz-user-agent",
    }
)  # fmt: skip
_HEADER_PREFIXES: Final = ("x-amz-checksum-", "x-amz-meta-")
_ENCRYPTION: Final = ("x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id")


@dataclass(frozen=True, slots=True)
class SignRequest:
    """A request to an object store that a client wants to send."""

    method: str
    uri: str
    region: str
    headers: Mapping[str, Sequence[str]]
    body: str | None = None

    def __post_init__(self) -> None:
        if not _REGION.fullmatch(self.region):
            raise InvalidRequestError(f"Cannot sign the request: {self.region[:40]!r} is not a region")
        if self.method not in ("PUT", "GET", "HEAD", "POST", "DELETE", "PATCH", "OPTIONS"):
            raise InvalidRequestError(f"Cannot sign the request: {self.method[:20]!r} is not a method")
        if not _URI.fullmatch(self.uri):
            raise InvalidRequestError("Cannot sign the request: its address contains invalid characters")
        for name, values in self.headers.items():
            if any(not value.isprintable() for value in (name, *values)):
                raise InvalidRequestError("Cannot sign the request: a header contains invalid characters")

    @property
    def target(self) -> SplitResult:
        """The parts of the address."""
        try:
            return urlsplit(self.uri)
        except ValueError:
            raise InvalidRequestError("Cannot sign the request: its address is not a valid URL") from None

    @property
    def query(self) -> list[tuple[str, str]]:
        """The names and values of the query, unescaped."""
        return parse_qsl(self.target.query, keep_blank_values=True)


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """The files of a request, whether it only reads, and the hash of its body."""

    locations: tuple[str, ...]
    is_read: bool
    body_sha256: str


def check_request(service: S3Service, request: SignRequest) -> CheckedRequest:
    """Check a request against the allow-lists; return what it accesses."""
    _check_headers(service, request)
    query = request.query
    names = frozenset(name for name, _ in query) - _ANY
    if len({name for name, _ in query}) != len(query):
        raise _refusal("a name is repeated in its query")
    bucket, key = _bucket_and_key(service, request)
    values = dict(query)
    if key == "":
        return _check_bucket_request(request, bucket, names, values)
    is_read = names in _READS.get(request.method, ())
    if not is_read and names not in _WRITES.get(request.method, ()):
        raise _refusal(f"it is not a read or write of a file ({request.method} with {sorted(names)})")
    return CheckedRequest((f"s3://{bucket}/{key}",), is_read, _body_sha256(request))


def _check_bucket_request(
    request: SignRequest, bucket: str, names: frozenset[str], values: Mapping[str, str]
) -> CheckedRequest:
    if request.method == "POST" and names == {"delete"}:
        locations = tuple(f"s3://{bucket}/{key}" for key in _deleted_keys(request.body))
        body_sha256 = hashlib.sha256((request.body or "").encode()).hexdigest()
        if _body_sha256(request) not in (body_sha256, UNSIGNED):
            raise _refusal("its body does not match the one to be signed")
        return CheckedRequest(locations, False, body_sha256)
    allowed = _LIST | _LIST_2 if values.get("list-type") == "2" else _LIST - {"list-type", "start-after"}
    if request.method != "GET" or "prefix" not in names or not names <= allowed:
        raise _refusal("it is for a bucket rather than a file")
    return CheckedRequest((f"s3://{bucket}/{values['prefix']}",), True, _body_sha256(request))


def _check_headers(service: S3Service, request: SignRequest) -> None:
    encryption_headers = service.write_headers()
    names_seen: set[str] = set()
    for name, values in request.headers.items():
        lower = name.lower()
        is_known = lower in _HEADERS or lower.startswith(_HEADER_PREFIXES)
        if lower in _ENCRYPTION:
            is_known = list(values) == [encryption_headers.get(lower)]
        if not is_known or lower in names_seen:
            raise _refusal(f"its header {lower[:60]!r} is not allowed")
        names_seen.add(lower)
    if service.endpoint is None and request.region != service.region:
        raise _refusal(f"its region {request.region!r} is not the server's")


def _body_sha256(request: SignRequest) -> str:
    hashes = [values for name, values in request.headers.items() if name.lower() == "x-amz-content-sha256"]
    if not hashes:
        return UNSIGNED if request.body is None else hashlib.sha256(request.body.encode()).hexdigest()
    if len(hashes[0]) != 1 or not _SHA256.fullmatch(hashes[0][0]):
        raise InvalidRequestError("Cannot sign the request: its x-amz-content-sha256 is not a SHA-256 digest")
    return hashes[0][0]


def _deleted_keys(body: str | None) -> list[str]:
    """Return the keys in a deletion of many files, parsed as the store parses them."""
    if body is None:
        raise InvalidRequestError("Cannot sign a delete of several files: the request has no body")
    try:
        if _ENCODING.search(body):
            raise ET.ParseError("its encoding is not UTF-8")
        root = parse_xml(body.encode())
    except (ET.ParseError, UnicodeEncodeError, ValueError):
        raise InvalidRequestError("Cannot sign a delete of several files: its body is not readable XML") from None
    keys: list[str] = []
    is_plain = _local(root) == "Delete"
    for item in root:
        if _local(item) == "Quiet" and len(item) == 0:
            continue
        is_plain = is_plain and _local(item) == "Object" and [_local(child) for child in item] == ["Key"]
        keys += [child.text or "" for child in item if len(child) == 0]
    if not is_plain or not keys or len(keys) != sum(_local(item) == "Object" for item in root):
        raise InvalidRequestError("Cannot sign a delete of several files: its body contains anything but keys")
    return keys


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _bucket_and_key(service: S3Service, request: SignRequest) -> tuple[str, str]:
    """Return the bucket and the key of a request, whose host must be exactly the store's."""
    target = request.target
    is_tls = service.endpoint is None or service.endpoint.is_tls
    host = target.netloc.lower().removesuffix(":443" if is_tls else ":80")
    if target.scheme != ("https" if is_tls else "http") or target.fragment or target.path[:2] == "//":
        raise _refusal("it is not for the store of this server")
    path = target.path[1:]
    for store_host in _hosts(service):
        bucket, _, key = path.partition("/")
        if host == store_host and "%" not in bucket:
            return bucket, unquote(key)
        bucket = host.removesuffix(f".{store_host}")
        # A store that does not support virtual hosts takes the first part of the path for the bucket.
        if not service.is_path_style and bucket != host and _BUCKET.fullmatch(bucket):
            return bucket, unquote(path)
    raise _refusal("it is not for the store of this server")


def _hosts(service: S3Service) -> tuple[str, ...]:
    if service.endpoint is not None:
        return (service.endpoint.authority.lower(),)
    tail = "amazonaws.com.cn" if service.region.startswith("cn-") else "amazonaws.com"
    hosts = (f"s3.{service.region}.{tail}", f"s3.dualstack.{service.region}.{tail}")
    return (*hosts, "s3.amazonaws.com") if service.region == "us-east-1" else hosts


def _refusal(reason: str) -> Refusal:
    return Refusal(403, FORBIDDEN, f"Cannot sign the request: {reason}")
