"""Connections that a file names, `connect("prod")`: `~/.config/frazil.toml`, or PyIceberg's `~/.pyiceberg.yaml`.

    [catalog.prod]                        catalog:
    uri = "https://…"                       prod:
    warehouse = "…"                           uri: https://…
    credential = "…"                          warehouse: …

`uri` is the address of a catalog service, a Hive Metastore or a database, `warehouse` its warehouse or the folder of
files; the rest are properties. frazil's own file goes first. Of YAML, what such files have is read: maps in maps, and
texts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from frazil.errors import InvalidRequestError, UnsupportedError

OWN_FILE: Final = ".config/frazil.toml"
PYICEBERG_FILE: Final = ".pyiceberg.yaml"
_MAX_BYTES: Final = 1 << 20
_BARE: Final = re.compile(r"[A-Za-z0-9_\-]{1,100}")
_LINE: Final = re.compile(r"( *)([^\s:#'\"][^:#]*?|'[^']*'|\"[^\"]*\"):(?: ++(.*))?")
_PYICEBERG_ONLY: Final = ("py-", "downcast-", "legacy-", "s3.signer", "s3.resolve-region")
_AUTH: Final = "auth."
_AUTH_NAMES: Final = {
    "basic.username": "rest.auth.basic.username",
    "basic.password": "rest.auth.basic.password",
    "oauth2.token_url": "oauth2-server-uri",
    "oauth2.scope": "scope",
}
"""What PyIceberg calls who asks, in a block of its own, and what properties call it."""
_AUTH_TYPES: Final = {"basic": "basic", "oauth2": "oauth2", "google": "google", "noop": "none"}
_AUTH_LEFT_OUT: Final = frozenset({"type", "oauth2.client_id", "oauth2.client_secret", "oauth2.refresh_margin"})


@dataclass(frozen=True, slots=True)
class NamedConnection:
    """What a file says about a name; values may be secret, and are not shown."""

    address: str
    catalog: str | None = field(default=None, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)


def find_connection(name: str, home: Path | None = None) -> NamedConnection | None:
    """Return what the files of a user's home say about a name, or None; a path or an address is no name."""
    if _BARE.fullmatch(name) is None:
        return None
    try:
        folder = Path.home() if home is None else home
    except RuntimeError:
        return None
    for file, read in ((folder / OWN_FILE, _read_toml), (folder / PYICEBERG_FILE, read_yaml)):
        text = _text(file)
        if text is None:
            continue
        found = read(text, str(file)).get("catalog")
        own = found.get(name) if isinstance(found, dict) else None
        if isinstance(own, dict):
            return _connection(name, str(file), _flat(own))
    return None


def _connection(name: str, file: str, given: dict[str, str]) -> NamedConnection:
    catalog_type = given.pop("type", None)
    uri, warehouse = given.pop("uri", None), given.pop("warehouse", None)
    properties = {key: value for key, value in given.items() if not key.startswith((*_PYICEBERG_ONLY, _AUTH))}
    properties |= _auth_properties(name, file, given)
    if uri is not None and uri.lower().startswith(("http://", "https://")) and catalog_type in (None, "rest"):
        return NamedConnection(uri, None, properties if warehouse is None else {**properties, "warehouse": warehouse})
    if uri is not None and uri.lower().startswith("thrift://") and catalog_type in (None, "hive"):
        return NamedConnection(uri, None, properties if warehouse is None else {**properties, "warehouse": warehouse})
    if catalog_type == "glue" and warehouse is not None:
        return NamedConnection(warehouse, "glue", properties)
    if catalog_type not in (None, "sql", "in-memory", "filesystem", "glue"):
        raise UnsupportedError(f"Cannot connect to {name!r} of {file}: catalogs of type {catalog_type!r} are not built")
    if warehouse is None:
        raise InvalidRequestError(f"Cannot connect to {name!r} of {file}: it says neither a service nor a warehouse")
    catalog = uri if catalog_type != "filesystem" else catalog_type
    return NamedConnection(warehouse, None if catalog is None else _plain_driver(catalog), properties)


def _auth_properties(name: str, file: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return who asks, of PyIceberg's block `auth`, as properties."""
    auth = {key.removeprefix(_AUTH): value for key, value in given.items() if key.startswith(_AUTH)}
    if not auth:
        return {}
    auth_type = auth.get("type", "").lower()
    if auth_type == "legacyoauth2":
        # That is what `credential` and `token` beside the block say.
        return {}
    odd = sorted(auth.keys() - _AUTH_NAMES.keys() - _AUTH_LEFT_OUT - {"oauth2.expires_in"})
    if auth_type not in _AUTH_TYPES or odd:
        what = f"auth.type {auth_type[:40]!r}" if auth_type not in _AUTH_TYPES else f"auth.{odd[0][:40]}"
        raise UnsupportedError(
            f"Cannot connect to {name!r} of {file}: {what} is not known here",
            hint="Give token or credential, or a function as auth of connect().",
        )
    found = {_AUTH_NAMES[key]: value for key, value in auth.items() if key in _AUTH_NAMES}
    if "oauth2.client_id" in auth:
        found["credential"] = f"{auth['oauth2.client_id']}:{auth.get('oauth2.client_secret', '')}"
    seconds = auth.get("oauth2.expires_in", "")
    if seconds.isascii() and seconds.isdigit():
        found["token-expires-in-ms"] = f"{seconds}000"
    return {"rest.auth.type": _AUTH_TYPES[auth_type], **found}


def _plain_driver(uri: str) -> str:
    """Return a database's address without the driver that SQLAlchemy wants named."""
    return re.sub(r"^(postgresql|sqlite)\+[a-z0-9_]+:", r"\1:", uri)


def _text(file: Path) -> str | None:
    try:
        if not file.is_file():
            return None
        if file.stat().st_size > _MAX_BYTES:
            raise InvalidRequestError(f"Cannot read {str(file)!r}: it is larger than {_MAX_BYTES} bytes")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"Cannot read {str(file)!r}: {type(error).__name__}") from error


def _read_toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # The message has a place in it, and no values.
        raise InvalidRequestError(f"Cannot read {file!r}: it is no TOML ({str(error)[:100]})") from None


def read_yaml(text: str, file: str) -> dict[str, Any]:
    """Return the maps of a YAML text that has nothing but maps and texts."""
    root: dict[str, Any] = {}
    open_maps: list[tuple[int, dict[str, Any]]] = [(-1, root)]
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() in ("", "---") or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line.rstrip())
        if found is None or "\t" in line[: len(line) - len(line.lstrip())]:
            raise InvalidRequestError(
                f"Cannot read line {number} of {file!r}: it is no name with a text or a map",
                hint=f"Write the connection into ~/{OWN_FILE} instead.",
            )
        depth, name, value = len(found[1]), _scalar(found[2]), (found[3] or "").strip()
        while open_maps[-1][0] >= depth:
            open_maps.pop()
        inside = open_maps[-1][1]
        if value == "" or value.startswith("#"):
            inner: dict[str, Any] = {}
            inside[name] = inner
            open_maps.append((depth, inner))
        else:
            inside[name] = _scalar(value)
    return root


def _scalar(text: str) -> str:
    """Return a text without its quotes, or without the comment behind it."""
    if text[:1] in ("'", '"'):
        end = text.find(text[0], 1)
        return text[1:end] if end > 0 else text
    return text.partition(" #")[0].strip()


def _flat(found: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested maps as names with dots, and values as texts."""
    made: dict[str, str] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            made |= _flat(value, f"{prefix}{name}.")
        else:
            made[f"{prefix}{name}"] = str(value).lower() if isinstance(value, bool) else str(value)
    return made
