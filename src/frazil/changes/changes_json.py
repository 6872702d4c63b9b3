"""Updates and requirements as JSON, in the form of the REST protocol (`rest-catalog-open-api.yaml`).

The input is a request rather than a file, so errors are InvalidRequestErrors. Unknown fields are ignored; unknown types
of updates are refused, since a change that is not understood must not be made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from frazil.changes import requirements as required
from frazil.changes import updates as changed
from frazil.changes.requirements import Requirement
from frazil.changes.updates import Update
from frazil.codec.json_fields import LONG_MAX, LONG_MIN, JsonObject
from frazil.codec.partition_spec_json import decode_partition_spec, encode_partition_spec
from frazil.codec.schema_json import decode_schema, encode_schema
from frazil.codec.snapshot_json import decode_ref, decode_snapshot, encode_ref, encode_snapshot
from frazil.codec.sort_order_json import decode_sort_order, encode_sort_order
from frazil.codec.statistics_json import (
    decode_encryption_key,
    decode_partition_statistics_file,
    decode_statistics_file,
    encode_encryption_key,
    encode_partition_statistics_file,
    encode_statistics_file,
)
from frazil.codec.view_metadata_json import decode_view_version, encode_view_version
from frazil.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partitioning import INITIAL_SPEC_ID
from frazil.spec.snapshot import INITIAL_SEQUENCE_NUMBER, Snapshot

HEADING = "REST catalog protocol"

JsonFields = dict[str, Any]


class _Form(NamedTuple):
    """The JSON form of one type: its name, its class, and both directions of the conversion."""

    name: str
    cls: type
    encode: Callable[[Any], JsonFields]
    decode: Callable[[JsonObject], Any]


def encode_update(update: Update) -> JsonFields:
    """Encode an update as a JSON object."""
    form = _UPDATES_BY_KIND.get(type(update))
    if form is None:
        raise InvalidRequestError(f"Cannot write {type(update).__name__} as JSON: it is not an update")
    return {"action": form.name, **form.encode(update)}


def decode_update(value: object, *, where: str = "the update") -> Update:
    """Decode an update; `where` is its path in the request, for errors."""
    return cast(Update, _decode(value, where, "action", _UPDATES_BY_NAME))


def encode_requirement(requirement: Requirement) -> JsonFields:
    """Encode a requirement as a JSON object."""
    form = _REQUIREMENTS_BY_KIND.get(type(requirement))
    if form is None:
        raise InvalidRequestError(f"Cannot write {type(requirement).__name__} as JSON: it is not a requirement")
    return {"type": form.name, **form.encode(requirement)}


def decode_requirement(value: object, *, where: str = "the requirement") -> Requirement:
    """Decode a requirement; `where` is its path in the request, for errors."""
    return cast(Requirement, _decode(value, where, "type", _REQUIREMENTS_BY_NAME))


def _decode(value: object, where: str, tag: str, forms: Mapping[str, _Form]) -> object:
    with _request_errors():
        obj = JsonObject(value, where=where, heading=HEADING)
        name: str = obj.string(tag)
        form = forms.get(name.lower())
        if form is None:
            raise UnsupportedError(
                f"Cannot read {where}: its {tag} {name[:60]!r} is not supported",
                hint="Update frazil, or use the client that sent the request.",
            )
        return form.decode(obj)


@contextmanager
def _request_errors() -> Iterator[None]:
    try:
        yield
    except CorruptTableError as problem:
        raise InvalidRequestError(problem.message, hint=problem.hint, heading=problem.context.get("heading")) from None


def _single(name: str, attribute: str) -> Callable[[Any], JsonFields]:
    return lambda value: {name: getattr(value, attribute)}


def _long_form(tag: str, cls: type, name: str, attribute: str) -> _Form:
    return _Form(tag, cls, _single(name, attribute), lambda obj: cls(obj.int64(name)))


def _int_form(tag: str, cls: type, name: str, attribute: str) -> _Form:
    return _Form(tag, cls, _single(name, attribute), lambda obj: cls(obj.int32(name)))


def _text_form(tag: str, cls: type, name: str, attribute: str) -> _Form:
    return _Form(tag, cls, _single(name, attribute), lambda obj: cls(obj.string(name)))


def _ints_form(tag: str, cls: type, name: str, attribute: str) -> _Form:
    return _Form(tag, cls, lambda value: {name: list(getattr(value, attribute))}, lambda obj: cls(obj.int32s(name)))


def _encode_add_schema(update: changed.AddSchema) -> JsonFields:
    last = update.last_column_id if update.last_column_id is not None else update.schema.highest_field_id
    return {"schema": encode_schema(update.schema), "last-column-id": last}


def _decode_add_schema(obj: JsonObject) -> changed.AddSchema:
    # The field last-column-id is deprecated, and wrong if the sender's table is outdated: it is ignored.
    return changed.AddSchema(decode_schema(obj.object("schema")))


def _decode_add_spec(obj: JsonObject) -> changed.AddPartitionSpec:
    # A client may leave the ID to the catalog, which assigns one in any case.
    value = obj.raw("spec")
    if isinstance(value, dict):
        value = {**value, "spec-id": INITIAL_SPEC_ID if value.get("spec-id") is None else value["spec-id"]}
    return changed.AddPartitionSpec(
        decode_partition_spec(JsonObject(value, where=obj.path_of("spec"), heading=HEADING))
    )


def _encode_snapshot(snapshot: Snapshot) -> JsonFields:
    has_number = snapshot.sequence_number != INITIAL_SEQUENCE_NUMBER
    return encode_snapshot(snapshot, format_version=2 if has_number else 1)


def _decode_snapshot_ids(obj: JsonObject) -> changed.RemoveSnapshots:
    ids = obj.list("snapshot-ids")
    for index, value in enumerate(ids):
        if not isinstance(value, int) or isinstance(value, bool) or not LONG_MIN <= value <= LONG_MAX:
            raise obj.fail("expected a 64-bit integer", field=f"snapshot-ids[{index}]")
    return changed.RemoveSnapshots(tuple(ids))


def _decode_set_ref(obj: JsonObject) -> changed.SetSnapshotRef:
    return changed.SetSnapshotRef(obj.string("ref-name"), decode_ref(obj))


def _decode_set_properties(obj: JsonObject) -> changed.SetProperties:
    # Old clients use "updated" and "removed".
    name = "updates" if "updates" in obj or "updated" not in obj else "updated"
    return changed.SetProperties(FrozenMap(obj.string_map(name)))


def _decode_remove_properties(obj: JsonObject) -> changed.RemoveProperties:
    name = "removals" if "removals" in obj or "removed" not in obj else "removed"
    return changed.RemoveProperties(obj.strings(name))


_UPDATES = (
    _text_form("assign-uuid", changed.AssignUuid, "uuid", "uuid"),
    _int_form("upgrade-format-version", changed.UpgradeFormatVersion, "format-version", "format_version"),
    _Form("add-schema", changed.AddSchema, _encode_add_schema, _decode_add_schema),
    _int_form("set-current-schema", changed.SetCurrentSchema, "schema-id", "schema_id"),
    _Form(
        "add-spec",
        changed.AddPartitionSpec,
        lambda value: {"spec": encode_partition_spec(value.spec)},
        _decode_add_spec,
    ),
    _int_form("set-default-spec", changed.SetDefaultSpec, "spec-id", "spec_id"),
    _Form(
        "add-sort-order",
        changed.AddSortOrder,
        lambda value: {"sort-order": encode_sort_order(value.sort_order)},
        lambda obj: changed.AddSortOrder(decode_sort_order(obj.object("sort-order"))),
    ),
    _int_form("set-default-sort-order", changed.SetDefaultSortOrder, "sort-order-id", "sort_order_id"),
    _Form(
        "add-snapshot",
        changed.AddSnapshot,
        lambda value: {"snapshot": _encode_snapshot(value.snapshot)},
        lambda obj: changed.AddSnapshot(decode_snapshot(obj.object("snapshot"))),
    ),
    _Form(
        "set-snapshot-ref",
        changed.SetSnapshotRef,
        lambda value: {"ref-name": value.ref_name, **encode_ref(value.ref)},
        _decode_set_ref,
    ),
    _Form(
        "remove-snapshots",
        changed.RemoveSnapshots,
        lambda value: {"snapshot-ids": list(value.snapshot_ids)},
        _decode_snapshot_ids,
    ),
    _text_form("remove-snapshot-ref", changed.RemoveSnapshotRef, "ref-name", "ref_name"),
    _text_form("set-location", changed.SetLocation, "location", "location"),
    _Form(
        "set-properties", changed.SetProperties, lambda value: {"updates": dict(value.updates)}, _decode_set_properties
    ),
    _Form(
        "remove-properties",
        changed.RemoveProperties,
        lambda value: {"removals": list(value.removals)},
        _decode_remove_properties,
    ),
    _Form(
        "set-statistics",
        changed.SetStatistics,
        # The first field is deprecated, but older servers require it.
        lambda value: {
            "snapshot-id": value.statistics.snapshot_id,
            "statistics": encode_statistics_file(value.statistics),
        },
        lambda obj: changed.SetStatistics(decode_statistics_file(obj.object("statistics"))),
    ),
    _long_form("remove-statistics", changed.RemoveStatistics, "snapshot-id", "snapshot_id"),
    _Form(
        "set-partition-statistics",
        changed.SetPartitionStatistics,
        lambda value: {"partition-statistics": encode_partition_statistics_file(value.partition_statistics)},
        lambda obj: changed.SetPartitionStatistics(
            decode_partition_statistics_file(obj.object("partition-statistics"))
        ),
    ),
    _long_form("remove-partition-statistics", changed.RemovePartitionStatistics, "snapshot-id", "snapshot_id"),
    _ints_form("remove-partition-specs", changed.RemovePartitionSpecs, "spec-ids", "spec_ids"),
    _ints_form("remove-schemas", changed.RemoveSchemas, "schema-ids", "schema_ids"),
    _Form(
        "add-encryption-key",
        changed.AddEncryptionKey,
        lambda value: {"encryption-key": encode_encryption_key(value.encryption_key)},
        lambda obj: changed.AddEncryptionKey(decode_encryption_key(obj.object("encryption-key"))),
    ),
    _text_form("remove-encryption-key", changed.RemoveEncryptionKey, "key-id", "key_id"),
    _Form(
        "add-view-version",
        changed.AddViewVersion,
        lambda value: {"view-version": encode_view_version(value.view_version)},
        lambda obj: changed.AddViewVersion(decode_view_version(obj.object("view-version"))),
    ),
    _int_form("set-current-view-version", changed.SetCurrentViewVersion, "view-version-id", "view_version_id"),
)

_REQUIREMENTS = (
    _Form("assert-create", required.AssertCreate, lambda value: {}, lambda obj: required.AssertCreate()),
    _text_form("assert-table-uuid", required.AssertTableUuid, "uuid", "uuid"),
    _text_form("assert-view-uuid", required.AssertViewUuid, "uuid", "uuid"),
    _Form(
        "assert-ref-snapshot-id",
        required.AssertRefSnapshotId,
        lambda value: {"ref": value.ref, "snapshot-id": value.snapshot_id},
        lambda obj: required.AssertRefSnapshotId(obj.string("ref"), obj.int64("snapshot-id", None)),
    ),
    _int_form(
        "assert-last-assigned-field-id",
        required.AssertLastAssignedFieldId,
        "last-assigned-field-id",
        "last_assigned_field_id",
    ),
    _int_form("assert-current-schema-id", required.AssertCurrentSchemaId, "current-schema-id", "current_schema_id"),
    _int_form(
        "assert-last-assigned-partition-id",
        required.AssertLastAssignedPartitionId,
        "last-assigned-partition-id",
        "last_assigned_partition_id",
    ),
    _int_form("assert-default-spec-id", required.AssertDefaultSpecId, "default-spec-id", "default_spec_id"),
    _int_form(
        "assert-default-sort-order-id",
        required.AssertDefaultSortOrderId,
        "default-sort-order-id",
        "default_sort_order_id",
    ),
)

_UPDATES_BY_KIND = {form.cls: form for form in _UPDATES}
_UPDATES_BY_NAME = {form.name: form for form in _UPDATES}
_REQUIREMENTS_BY_KIND = {form.cls: form for form in _REQUIREMENTS}
_REQUIREMENTS_BY_NAME = {form.name: form for form in _REQUIREMENTS}
