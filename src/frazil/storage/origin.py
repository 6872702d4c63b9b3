"""The origin of a server: parsed from an endpoint, which has nothing else, or from a whole URL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote, urlsplit

from frazil.errors import InvalidPropertyError, InvalidRequestError

_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.\-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_REGION: Final = re.compile(r"[A-Za-z0-9\-]{1,64}")


@dataclass(frozen=True, slots=True)
class Origin:
    """A server: scheme, host and port."""

    host: str
    port: int | None = None
    is_tls: bool = True

    @property
    def authority(self) -> str:
        """The host, and the port unless it is the default one, as in the `Host` header."""
        return self.host if self.port is None else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.is_tls else 'http'}://{self.authority}"


def parse_endpoint(name: str, text: str) -> Origin:
    """Parse an endpoint: `https://host` or `http://host:port`, and nothing more."""
    problem = f"Cannot use the property {name}: it must be https://host or http://host, optionally with a port"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InvalidPropertyError(problem) from error
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    if (
        not text.isprintable()
        or parts.scheme not in ("http", "https")
        or "@" in parts.netloc
        or parts.path not in ("", "/")
        or parts.query != ""
        or parts.fragment != ""
        or not _HOST.fullmatch(host)
    ):
        raise InvalidPropertyError(problem)
    is_tls = parts.scheme == "https"
    return Origin(host, None if port == (443 if is_tls else 80) else port, is_tls)


def split_url(url: str) -> tuple[Origin, str]:
    """Split a URL into the server and the request target; user and fragment are dropped."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidRequestError("Cannot reach the address: it is not a URL") from None
    if parts.scheme not in ("http", "https") or not re.fullmatch(r"[!-~]+", host):
        raise InvalidRequestError(f"Cannot reach {shown_url(url)}: it is not an http: or https: address")
    is_tls = parts.scheme == "https"
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    if parts.query != "":
        target += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~?")
    host = f"[{host}]" if ":" in host else host
    return Origin(host, None if port == (443 if is_tls else 80) else port, is_tls), target


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine."""
    host = urlsplit(url).hostname or ""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def shown_url(url: str) -> str:
    """Return a URL without user, password and query, for display."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def check_region(region: str | None) -> None:
    """Refuse a region that is not a valid part of a host name."""
    if region is not None and not _REGION.fullmatch(region):
        raise InvalidPropertyError(f"Cannot use the region {region!r}: it is not a region name")
