"""One request to a catalog service, sent once, and what is known when no answer comes.

urllib3 does the work: connections that are kept, TLS, proxies, compression. Two failures are told apart, as for object
stores: `RequestNotSent`, where nothing can have been carried out, and `AnswerLost`, where nobody knows. No redirect
is followed, since a request carries who asks; nothing is taken from the environment. A forked process opens
connections of its own.
"""

from __future__ import annotations

import os
import ssl
import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3

from frazil.codec.gzip_text import MAX_RATIO, RATIO_FREE_BYTES
from frazil.errors import InvalidPropertyError, InvalidRequestError
from frazil.rest.settings import TransportOptions
from frazil.storage.http import AnswerLost, RequestNotSent

MAX_BODY_BYTES: Final = 1 << 29
"""How much of an answer is read; one table's metadata may be large."""
_PIECE_BYTES: Final = 1 << 18
_POOL_SIZE: Final = 32


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        """Whether the request was carried out."""
        return 200 <= self.status < 300


class AnswerTooLarge(AnswerLost):
    """An answer is not read, since it is larger than allowed; the request was carried out, or was not."""


class Transport:
    """Connections to catalog services. Any number of threads may share one."""

    def __init__(self, options: TransportOptions = TransportOptions()) -> None:  # noqa: B008 - a frozen value
        self._options = options
        self._lock = threading.Lock()
        self._pool: urllib3.PoolManager | None = None
        self._pid = os.getpid()

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, max_bytes: int = MAX_BODY_BYTES
    ) -> Reply:
        """Send one request, once, and return the answer."""
        try:
            response = self._manager().request(
                method,
                url,
                headers=dict(headers),
                body=body if body or method in ("POST", "PUT") else None,
                redirect=False,
                retries=False,
                preload_content=False,
                timeout=urllib3.Timeout(connect=self._options.connect_timeout, read=self._options.timeout),
            )
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            raise RequestNotSent(_reason(error)) from None
        except urllib3.exceptions.ProxyError as error:
            raise RequestNotSent(f"the proxy does not answer ({_reason(error)})") from None
        except urllib3.exceptions.SSLError as error:
            # Only a certificate is looked at before the request is sent; what fails else may fail after it.
            error_class = RequestNotSent if _is_about_certificate(error) else AnswerLost
            raise error_class(f"no TLS connection: {_reason(error)}") from None
        except urllib3.exceptions.LocationValueError as error:
            raise InvalidRequestError(f"Cannot reach {shown_url(url)}: {_reason(error)}") from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise AnswerLost(_reason(error)) from None
        try:
            found = _read(response, max_bytes)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            response.close()
            raise AnswerLost(_reason(error)) from None
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return Reply(response.status, {name.lower(): value for name, value in response.headers.items()}, found)

    def close(self) -> None:
        """Close the connections that are kept."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._pid == os.getpid():
            pool.clear()

    def _manager(self) -> urllib3.PoolManager:
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._pool = _new_manager(self._options)
            return self._pool


def _new_manager(options: TransportOptions) -> urllib3.PoolManager:
    tls: dict[str, Any] = {
        "ca_certs": options.ca_file,
        "cert_file": options.client_certificate,
        "key_file": options.client_key,
    }
    given = {name: value for name, value in tls.items() if value is not None}
    for name, path in given.items():
        if not os.access(path, os.R_OK):
            raise InvalidPropertyError(f"Cannot use {path!r} for TLS ({name}): the file cannot be read")
    if options.proxy is not None:
        return urllib3.ProxyManager(options.proxy, maxsize=_POOL_SIZE, **given)
    return urllib3.PoolManager(maxsize=_POOL_SIZE, **given)


def _read(response: urllib3.BaseHTTPResponse, max_bytes: int) -> bytes:
    """Return a body, unpacked; one that is larger than allowed is cut off with an error before it is held.

    A compressed body may be at most a hundred times as large as what was sent, or 16 MB.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise AnswerLost(f"it is encoded as {encoding[:40]!r}")
    unpacker = None if encoding in ("identity", "") else zlib.decompressobj(wbits=32 + zlib.MAX_WBITS)
    pieces: list[bytes] = []
    total = sent = 0
    for piece in response.stream(_PIECE_BYTES, decode_content=False):
        sent += len(piece)
        limit = max_bytes if unpacker is None else min(max_bytes, max(RATIO_FREE_BYTES, MAX_RATIO * sent))
        for unpacked in (piece,) if unpacker is None else _unpacked(unpacker, piece):
            total += len(unpacked)
            if total > limit:
                raise AnswerTooLarge(f"it is larger than {limit} bytes")
            pieces.append(unpacked)
    if unpacker is not None and sent and not unpacker.eof:
        raise AnswerLost("it ends in the middle")
    return b"".join(pieces)


def _unpacked(unpacker: Any, data: bytes) -> Iterator[bytes]:
    """Yield what a piece unpacks to, a part at a time."""
    try:
        while data:
            yield unpacker.decompress(data, _PIECE_BYTES)
            data = unpacker.unconsumed_tail
        if unpacker.unused_data:
            raise AnswerLost("something follows its compressed text")
    except zlib.error as error:
        raise AnswerLost(f"it cannot be unpacked ({error})") from None


def _is_about_certificate(error: urllib3.exceptions.SSLError) -> bool:
    return any(isinstance(cause, ssl.CertificateError) for cause in (*error.args, error.__cause__, error.__context__))


def _reason(error: BaseException) -> str:
    """Return why there is no answer, without the address, which may hold names."""
    inner: object = getattr(error, "original_error", None) or error
    text = str(inner).rpartition(": ")[2] if isinstance(inner, urllib3.exceptions.NewConnectionError) else str(inner)
    return " ".join(text.split())[:200] or type(error).__name__


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine itself."""
    host = urlsplit(url).hostname or ""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def shown_url(url: str) -> str:
    """Return a URL without user, password and query, as it may be shown."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
