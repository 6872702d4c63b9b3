"""Snapshots, references and logs as JSON. Specification: "Table Metadata and Snapshots" (Appendix C).

A table may have tens of thousands of snapshots, so a list of them is fully checked but not built: each
keeps its text and its key fields (`_StoredText`), is read on demand, and is written back byte for byte.
The check is a typed decode of every snapshot, which refuses everything that `decode_snapshot` would. A
snapshot that is unusual (unrecognised fields, escapes, the inline manifests of v1) or invalid is passed to
`decode_snapshot`, which reads it or reports the error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import count_plain_strings, parse_json
from frazil.errors import InvalidRequestError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import (
    INITIAL_SEQUENCE_NUMBER,
    MetadataLogEntry,
    RefType,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    Summary,
)
from frazil.spec.snapshot_list import Cell, SnapshotList

HEADING = "Snapshots"
LOG_HEADING = "Table Metadata Fields"

NO_SNAPSHOT = -1
"""The id that some writers use for the absence of a snapshot."""

_Id = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Int = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Time = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


# Snapshots


def decode_snapshot(obj: JsonObject) -> Snapshot:
    """Return the snapshot of a JSON object."""
    snapshot_id = _id(obj, "snapshot-id")
    manifest_list: str | None = obj.string("manifest-list", None)
    manifests: tuple[str, ...] | None = obj.strings("manifests", None)
    if manifest_list is None and manifests is None:
        raise obj.fail("the required field is missing", field="manifest-list")
    first_row_id = _id(obj, "first-row-id", None)
    added_rows = _id(obj, "added-rows", None)
    if first_row_id is not None and added_rows is None:
        raise obj.fail("the required field is missing; there is a first-row-id", field="added-rows")
    parent_id: int | None = obj.int64("parent-snapshot-id", None)
    if parent_id is not None and parent_id < 0:
        if parent_id != NO_SNAPSHOT:
            raise obj.fail(f"{parent_id} is negative", field="parent-snapshot-id")
        parent_id = None
    schema_id: int | None = obj.int32("schema-id", None)
    if schema_id is not None and schema_id < 0:
        raise obj.fail(f"{schema_id} is negative", field="schema-id")
    summary: dict[str, str] | None = obj.string_map("summary", None)
    return Snapshot(
        snapshot_id=snapshot_id,
        timestamp_ms=obj.int64("timestamp-ms"),
        manifest_list=manifest_list,
        summary=None if summary is None else FrozenMap(summary),
        parent_snapshot_id=parent_id,
        sequence_number=_id(obj, "sequence-number", INITIAL_SEQUENCE_NUMBER),
        schema_id=schema_id,
        manifests=manifests,
        first_row_id=first_row_id,
        added_rows=added_rows,
        key_id=obj.string("key-id", None),
        extra=obj.extra(),
    )


def encode_snapshot(snapshot: Snapshot, *, format_version: int) -> dict[str, Any]:
    """Return a snapshot as a JSON object."""
    encoded: dict[str, Any] = {}
    if format_version > 1:
        encoded["sequence-number"] = snapshot.sequence_number
    encoded["snapshot-id"] = snapshot.snapshot_id
    if snapshot.parent_snapshot_id is not None:
        encoded["parent-snapshot-id"] = snapshot.parent_snapshot_id
    encoded["timestamp-ms"] = snapshot.timestamp_ms
    if snapshot.summary is not None:
        encoded["summary"] = _operation_first(snapshot.summary)
    _set_present(
        encoded,
        {
            "manifest-list": snapshot.manifest_list,
            "manifests": None if snapshot.manifests is None else list(snapshot.manifests),
            "schema-id": snapshot.schema_id,
            "first-row-id": snapshot.first_row_id,
            "added-rows": snapshot.added_rows,
            "key-id": snapshot.key_id,
        },
    )
    return with_extra(encoded, snapshot.extra)


def _operation_first(summary: FrozenMap[str, str]) -> dict[str, str]:
    if Summary.OPERATION not in summary:
        return summary
    return {Summary.OPERATION: summary[Summary.OPERATION], **summary}


class _Common(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, gc=False):
    """The common form of a snapshot; absent fields are UNSET, null fields None."""

    snapshot_id: _Id
    timestamp_ms: _Time
    manifest_list: str
    parent_snapshot_id: _Id | UnsetType | None = UNSET
    sequence_number: _Id | UnsetType | None = UNSET
    summary: dict[str, str] | UnsetType | None = UNSET
    schema_id: _Int | UnsetType | None = UNSET
    first_row_id: _Id | UnsetType | None = UNSET
    added_rows: _Id | UnsetType | None = UNSET
    key_id: str | UnsetType | None = UNSET


class _StoredText(msgspec.Struct, frozen=True, gc=False):
    """The key fields of a snapshot, and its checked text."""

    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int
    timestamp_ms: int
    first_row_id: int | None
    added_rows: int | None
    text: msgspec.Raw

    def read(self) -> Snapshot:
        """Return the whole snapshot."""
        try:
            common = _decode_common(self.text)
        except msgspec.DecodeError:
            where = f"snapshot {self.snapshot_id}"
            return decode_snapshot(JsonObject(msgspec.json.decode(self.text), where=where, heading=HEADING))
        return Snapshot(
            self.snapshot_id,
            self.timestamp_ms,
            common.manifest_list,
            FrozenMap(common.summary) if isinstance(common.summary, dict) else None,
            self.parent_snapshot_id,
            self.sequence_number,
            None if common.schema_id is UNSET else common.schema_id,
            None,
            self.first_row_id,
            self.added_rows,
            None if common.key_id is UNSET else common.key_id,
        )


class _Unusual(Exception):
    """A snapshot that is not of the common form."""


_decode_common = msgspec.json.Decoder(_Common).decode
_decode_texts = msgspec.json.Decoder(list[msgspec.Raw]).decode


def decode_snapshots(text: msgspec.Raw, *, where: str) -> SnapshotList:
    """Return the snapshots of a JSON list, checked but not read."""
    try:
        texts = _decode_texts(text)
    except msgspec.ValidationError:
        parse_json(bytes(text), where=where, heading=HEADING)
        raise JsonObject({}, heading=HEADING).fail("expected a list", field=where) from None
    try:
        return SnapshotList(_store_common(texts, text) or _store_any(texts, where))
    except InvalidRequestError as problem:
        raise JsonObject({}, heading=HEADING).fail(problem.message, field=where) from problem


def encode_snapshots(snapshots: SnapshotList, *, format_version: int) -> list[Any]:
    """Return snapshots as a JSON list; those never read keep their original text."""
    return [_encode_cell(cell, format_version) for cell in snapshots.cells]


def _encode_cell(cell: Cell, format_version: int) -> Any:
    if isinstance(cell, _StoredText):
        return cell.text
    snapshot = cell if isinstance(cell, Snapshot) else cell.read()
    return encode_snapshot(snapshot, format_version=format_version)


def _store_common(texts: list[msgspec.Raw], whole: msgspec.Raw) -> list[_StoredText] | None:
    """Return the snapshots of a list if all have the common form, else None."""
    try:
        results = [_store(_decode_common(text), text) for text in texts]
    except (msgspec.DecodeError, RecursionError, _Unusual):
        return None
    if count_plain_strings(whole) != sum(strings for _, strings in results):
        return None
    return [stored for stored, _ in results]


def _store_any(texts: list[msgspec.Raw], where: str) -> list[_StoredText]:
    """Return the snapshots of a list, each of which may have any form."""
    return [
        (_store_common([text], text) or [_store_unusual(text, f"{where}[{index}]")])[0]
        for index, text in enumerate(texts)
    ]


def _store(common: _Common, text: msgspec.Raw) -> tuple[_StoredText, int]:
    """Return a snapshot and its number of strings: field names, two values, and the summary's keys and values."""
    parent, number, summary = common.parent_snapshot_id, common.sequence_number, common.summary
    first_row_id, added_rows = common.first_row_id, common.added_rows
    strings = (
        11
        - (parent is UNSET)
        - (number is UNSET)
        - (summary is UNSET)
        - (common.schema_id is UNSET)
        - (first_row_id is UNSET)
        - (added_rows is UNSET)
        - (common.key_id is UNSET)
    )
    if summary:
        strings += 2 * len(summary)
    if isinstance(common.key_id, str):
        strings += 1
    if added_rows is UNSET or added_rows is None:
        if first_row_id is not UNSET and first_row_id is not None:
            raise _Unusual
        added_rows = None
    stored = _StoredText(
        common.snapshot_id,
        None if parent is UNSET else parent,
        INITIAL_SEQUENCE_NUMBER if number is UNSET or number is None else number,
        common.timestamp_ms,
        None if first_row_id is UNSET else first_row_id,
        added_rows,
        text,
    )
    return stored, strings


def _store_unusual(text: msgspec.Raw, where: str) -> _StoredText:
    value = parse_json(bytes(text), where=where, heading=HEADING)
    read = decode_snapshot(JsonObject(value, where=where, heading=HEADING))
    return _StoredText(
        read.snapshot_id,
        read.parent_snapshot_id,
        read.sequence_number,
        read.timestamp_ms,
        read.first_row_id,
        read.added_rows,
        text,
    )


# References


def decode_ref(obj: JsonObject) -> SnapshotRef:
    """Return the branch or tag of a JSON object."""
    snapshot_id = _id(obj, "snapshot-id")
    ref_type: str = obj.string("type").lower()
    if ref_type not in ("branch", "tag"):
        raise obj.fail(f"expected branch or tag, found {ref_type[:40]!r}", field="type")
    ages = {
        "min_snapshots_to_keep": obj.int32("min-snapshots-to-keep", None),
        "max_snapshot_age_ms": obj.int64("max-snapshot-age-ms", None),
        "max_ref_age_ms": obj.int64("max-ref-age-ms", None),
    }
    try:
        return SnapshotRef(snapshot_id, cast(RefType, ref_type), **ages, extra=obj.extra())
    except InvalidRequestError as problem:
        raise obj.fail(problem.message.replace("_", "-")) from problem


def encode_ref(ref: SnapshotRef) -> dict[str, Any]:
    """Return a branch or tag as a JSON object."""
    encoded: dict[str, Any] = {"snapshot-id": ref.snapshot_id, "type": ref.type}
    _set_present(
        encoded,
        {
            "min-snapshots-to-keep": ref.min_snapshots_to_keep,
            "max-snapshot-age-ms": ref.max_snapshot_age_ms,
            "max-ref-age-ms": ref.max_ref_age_ms,
        },
    )
    return with_extra(encoded, ref.extra)


# Logs


class _CommonLogEntry(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, gc=False):
    timestamp_ms: _Time
    snapshot_id: _Id


_decode_common_log = msgspec.json.Decoder(list[_CommonLogEntry]).decode


def decode_snapshot_log(text: msgspec.Raw, *, where: str) -> tuple[SnapshotLogEntry, ...]:
    """Return the snapshot log of a JSON list, or of null."""
    try:
        entries = _decode_common_log(text)
    except (msgspec.DecodeError, RecursionError):
        entries = None
    if entries is not None and count_plain_strings(text) == 2 * len(entries):
        return tuple(
            map(SnapshotLogEntry, [entry.timestamp_ms for entry in entries], [entry.snapshot_id for entry in entries])
        )
    root = JsonObject({where: parse_json(bytes(text), where=where, heading=LOG_HEADING)}, heading=LOG_HEADING)
    return tuple(_decode_snapshot_log_entry(item) for item in root.objects(where, ()))


def _decode_snapshot_log_entry(obj: JsonObject) -> SnapshotLogEntry:
    snapshot_id = _id(obj, "snapshot-id")
    return SnapshotLogEntry(obj.int64("timestamp-ms"), snapshot_id, obj.extra())


def encode_snapshot_log(entries: Iterable[SnapshotLogEntry]) -> list[dict[str, Any]]:
    """Return the snapshot log as a JSON list."""
    return [
        with_extra({"timestamp-ms": entry.timestamp_ms, "snapshot-id": entry.snapshot_id}, entry.extra)
        for entry in entries
    ]


def decode_metadata_log_entry(obj: JsonObject) -> MetadataLogEntry:
    """Return the metadata log entry of a JSON object."""
    metadata_file = obj.string("metadata-file")
    return MetadataLogEntry(obj.int64("timestamp-ms"), metadata_file, obj.extra())


def encode_metadata_log(entries: Iterable[MetadataLogEntry]) -> list[dict[str, Any]]:
    """Return the metadata log as a JSON list."""
    return [
        with_extra({"timestamp-ms": entry.timestamp_ms, "metadata-file": entry.metadata_file}, entry.extra)
        for entry in entries
    ]


def with_extra(encoded: dict[str, Any], extra: FrozenMap[str, Any]) -> dict[str, Any]:
    """Return a JSON object with its unrecognised fields appended."""
    if extra:
        encoded.update((key, value) for key, value in extra.items() if key not in encoded)
    return encoded


def _set_present(encoded: dict[str, Any], fields: dict[str, Any]) -> None:
    encoded.update((name, value) for name, value in fields.items() if value is not None)


def _id(obj: JsonObject, field: str, *default: int | None) -> Any:
    value = obj.int64(field, *default)
    if value is not None and value < 0:
        raise obj.fail(f"{value} is negative", field=field)
    return value
