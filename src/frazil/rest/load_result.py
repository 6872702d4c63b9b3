"""The response of a service when a table or view is loaded, created or changed: metadata, settings, credentials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import parse_json, split_json_object
from frazil.codec.table_metadata_json import decode_table_metadata
from frazil.codec.view_metadata_json import decode_view_metadata
from frazil.errors import CorruptTableError, ServiceError
from frazil.rest.service import HEADING
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.view_metadata import ViewMetadata
from frazil.storage.http import Answer

_NULL: Final = b"null"


@dataclass(frozen=True, slots=True)
class VendedCredentials:
    """Credentials for locations below a prefix; they are not shown."""

    prefix: str
    config: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoadResult:
    """A table in a service's response. Its settings may contain credentials, and are not shown."""

    metadata: TableMetadata
    metadata_location: str | None
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    credentials: tuple[VendedCredentials, ...] = field(default=(), repr=False)


def read_table(reply: Answer, name: str) -> LoadResult:
    """Parse the table of a response."""
    parts = _parts(reply, f"the response for table {name}")
    location = _text(parts, "metadata-location")
    metadata = decode_table_metadata(bytes(parts["metadata"]), path=location or f"metadata of {name}")
    return LoadResult(
        metadata, location, _texts(parts, "config"), read_credentials(_value(parts, "storage-credentials"))
    )


def read_view(reply: Answer, name: str) -> tuple[ViewMetadata, str]:
    """Parse the view of a response; return it with its metadata location."""
    parts = _parts(reply, f"the response for view {name}")
    location = _text(parts, "metadata-location")
    return decode_view_metadata(bytes(parts["metadata"]), path=location or f"metadata of {name}"), location or ""


def read_credentials(items: Any) -> tuple[VendedCredentials, ...]:
    """Parse a list of storage credentials."""
    if items is None:
        return ()
    vended: list[VendedCredentials] = []
    for index, item in enumerate(items if isinstance(items, list) else [items]):
        obj = JsonObject(item, where=f"storage-credentials[{index}]", heading=HEADING)
        vended.append(VendedCredentials(obj.string("prefix"), obj.string_map("config")))
    return tuple(vended)


def _parts(reply: Answer, what: str) -> dict[str, msgspec.Raw]:
    try:
        parts = split_json_object(reply.body, heading=HEADING)
    except CorruptTableError as problem:
        raise ServiceError(f"Cannot read {what}: {problem.message}") from problem
    if "metadata" not in parts:
        raise ServiceError(f"Cannot read {what}: it has no metadata")
    return parts


def _value(parts: Mapping[str, msgspec.Raw], name: str) -> Any:
    raw = parts.get(name)
    return None if raw is None or bytes(raw) == _NULL else parse_json(bytes(raw), where=name, heading=HEADING)


def _text(parts: Mapping[str, msgspec.Raw], name: str) -> str | None:
    value = _value(parts, name)
    return value if isinstance(value, str) else None


def _texts(parts: Mapping[str, msgspec.Raw], name: str) -> dict[str, str]:
    mapping = _value(parts, name)
    if not isinstance(mapping, dict):
        return {}
    return {key: value for key, value in mapping.items() if isinstance(key, str) and isinstance(value, str)}
