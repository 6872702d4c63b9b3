"""View metadata and updates to new view metadata."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.changes import updates as change
from frazil.changes.apply_view import apply_view_updates
from frazil.changes.updates import LAST_ADDED, ViewUpdate
from frazil.errors import InvalidRequestError, NotFoundError, UnsupportedError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.view_metadata import SqlRepresentation, ViewMetadata, ViewVersion
from tests.support import builders
from tests.support.metadata_builders import START_MS, UUID

LOCATION = "s3://bucket/db/v"
NOW_MS = START_MS + 1000


def version(sql: str = "select 1", version_id: int = 1, schema_id: int = LAST_ADDED, **fields: Any) -> ViewVersion:
    dialects = fields.pop("dialects", ("spark",))
    representations = tuple(SqlRepresentation(sql, one) for one in dialects)
    return ViewVersion(version_id, schema_id, fields.pop("timestamp_ms", START_MS), representations, ("db",))


CREATE: tuple[ViewUpdate, ...] = (
    change.AssignUuid(UUID),
    change.UpgradeFormatVersion(1),
    change.AddSchema(builders.schema(schema_id=7)),
    change.SetLocation(LOCATION + "/"),
    change.SetProperties(FrozenMap({"comment": "mine"})),
    change.AddViewVersion(version()),
    change.SetCurrentViewVersion(),
)


def apply(base: ViewMetadata | None, *updates: ViewUpdate) -> ViewMetadata:
    return apply_view_updates(base, updates, now_ms=NOW_MS)


def created() -> ViewMetadata:
    return apply(None, *CREATE)


def replaced(base: ViewMetadata, sql: str, **fields: Any) -> ViewMetadata:
    return apply(
        base, change.AddViewVersion(version(sql, schema_id=0, **fields)), change.SetCurrentViewVersion(LAST_ADDED)
    )


def test_view_is_built_from_updates_alone() -> None:
    view = created()
    assert (view.view_uuid, view.location, view.properties) == (UUID, LOCATION, {"comment": "mine"})
    assert view.current_schema == builders.schema()
    assert view.current_version == version(schema_id=0)
    assert [(one.timestamp_ms, one.version_id) for one in view.version_log] == [(START_MS, 1)]


def test_version_names_its_schema_by_id_or_last_added() -> None:
    schemas = [change.AddSchema(builders.schema(builders.field(1))), change.AddSchema(builders.schema())]
    for schema_id, wanted in ((LAST_ADDED, 1), (0, 0), (1, 1)):
        updates = [CREATE[0], *schemas, CREATE[3], change.AddViewVersion(version(schema_id=schema_id))]
        assert apply(None, *updates).current_version.schema_id == wanted


@pytest.mark.parametrize("missing", [0, 2, 3, 5])
def test_view_without_its_parts_is_refused(missing: int) -> None:
    with pytest.raises(InvalidRequestError):
        apply(None, *(one for at, one in enumerate(CREATE) if at != missing))


def test_view_is_created_with_several_versions() -> None:
    view = apply(None, *CREATE, change.AddViewVersion(version("select 2", 2)), change.SetCurrentViewVersion())
    assert view.current_version.find_sql("spark") == SqlRepresentation("select 2", "spark")
    assert len(view.versions) == 2


def test_empty_change_returns_the_base() -> None:
    base = created()
    same = (
        change.AssignUuid(UUID.upper()),
        change.UpgradeFormatVersion(1),
        change.AddSchema(builders.schema()),
        change.SetLocation(LOCATION),
        change.SetProperties(FrozenMap({"comment": "mine"})),
        change.RemoveProperties(("absent",)),
        change.AddViewVersion(version()),
        change.SetCurrentViewVersion(),
    )
    assert apply(base, *same) is base


def test_view_is_replaced_and_rolled_back() -> None:
    base = created()
    changed = replaced(base, "select 2", timestamp_ms=START_MS + 5)
    assert (changed.current_version_id, changed.version_log[-1].timestamp_ms) == (2, START_MS + 5)
    back = apply(changed, change.SetCurrentViewVersion(1))
    assert (back.current_version_id, back.version_log[-1].timestamp_ms) == (1, NOW_MS)
    assert [one.version_id for one in back.version_log] == [1, 2, 1]


def test_many_versions_in_one_change_are_one_log_entry() -> None:
    updates: list[ViewUpdate] = []
    for at in range(3):
        updates += [change.AddViewVersion(version(f"select {at + 2}", schema_id=0)), change.SetCurrentViewVersion()]
    changed = apply(created(), *updates)
    assert [one.version_id for one in changed.version_log] == [1, 4]


def test_version_log_never_goes_backwards() -> None:
    changed = replaced(created(), "select 2", timestamp_ms=5)
    assert changed.version_log[-1].timestamp_ms == START_MS


def test_dialect_is_not_dropped_unless_allowed() -> None:
    base = apply(None, *CREATE[:5], change.AddViewVersion(version(dialects=("spark", "trino"))))
    with pytest.raises(InvalidRequestError, match="trino"):
        replaced(base, "select 2")
    allowed = apply(base, change.SetProperties(FrozenMap({"replace.drop-dialect.allowed": "true"})))
    assert replaced(allowed, "select 2").current_version_id == 2


def test_properties_and_location_change() -> None:
    changed = apply(
        created(),
        change.SetProperties(FrozenMap({"a": "b"})),
        change.RemoveProperties(("comment",)),
        change.SetLocation("s3://elsewhere/"),
    )
    assert (changed.properties, changed.location) == ({"a": "b"}, "s3://elsewhere")


def test_invalid_view_updates_are_refused() -> None:
    base = created()
    with pytest.raises(InvalidRequestError, match="never changes"):
        apply(base, change.AssignUuid("00000000-0000-0000-0000-000000000000"))
    with pytest.raises(UnsupportedError):
        apply(base, change.UpgradeFormatVersion(2))
    with pytest.raises(InvalidRequestError, match="added none"):
        apply(base, change.SetCurrentViewVersion())
    with pytest.raises(InvalidRequestError, match="added none"):
        apply(base, change.AddViewVersion(version("select 3")))
    with pytest.raises(NotFoundError):
        apply(base, change.SetCurrentViewVersion(9))
    with pytest.raises(InvalidRequestError, match="not an update of views"):
        apply(base, change.RemoveSnapshots((1,)))  # type: ignore[arg-type]
