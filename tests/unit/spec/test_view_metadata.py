"""View metadata as a value, and how views change; most cases are those of Iceberg Java's TestViewMetadata."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from frazil.errors import InvalidPropertyError, InvalidRequestError, NotFoundError, UnsupportedError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from frazil.spec.view_evolution import (
    add_view_schema,
    add_view_version,
    finish_view_change,
    new_view_metadata,
    set_current_view_version,
    trimmed_version_log,
    upgrade_view,
)
from frazil.spec.view_metadata import (
    SqlRepresentation,
    UnknownRepresentation,
    VersionLogEntry,
    ViewMetadata,
    ViewVersion,
    check_same_view,
)
from tests.support.view_changes import change_view_properties, move_view, replace_view, roll_back_view

UUID = "fa6506c3-7681-40c8-86dc-e36561f83385"
HISTORY = "version.history.num-entries"
DROP = "replace.drop-dialect.allowed"
X, Y, Z = (Schema((NestedField(1, name, LONG, required=True),)) for name in "xyz")
SPARK = SqlRepresentation("select * from tbl", "spark")
TRINO = SqlRepresentation("select * from tbl", "trino")


def version(version_id: int, sql: str = "select 1", *, schema_id: int = 0, timestamp_ms: int = 1000) -> ViewVersion:
    return ViewVersion(
        version_id,
        schema_id,
        timestamp_ms,
        (SqlRepresentation(sql, "spark"),),
        ("default",),
        "prod",
        FrozenMap({"user": "some-user"}),
    )


def of_dialects(version_id: int, *representations: SqlRepresentation) -> ViewVersion:
    return ViewVersion(version_id, 0, 1000, representations)


def view(*versions: ViewVersion, current: int | None = None, **properties: str) -> ViewMetadata:
    """Make a view that has all of these versions, whatever its history limit."""
    first = versions[0]
    made = new_view_metadata(view_uuid=UUID, location="s3://b/v", schema=X, version=first, properties=properties)
    for one in versions[1:]:
        made, _ = add_view_version(made, one)
    current_id = made.versions[-1].version_id if current is None else current
    log = (VersionLogEntry(made.versions_by_id[current_id].timestamp_ms, current_id),)
    return replace(made, current_version_id=current_id, version_log=log)


def with_history(metadata: ViewMetadata, size: int) -> ViewMetadata:
    return replace(metadata, properties=FrozenMap({HISTORY: str(size)}))


def ids(metadata: ViewMetadata) -> list[int]:
    return [one.version_id for one in metadata.versions]


def logged(metadata: ViewMetadata) -> list[int]:
    return [entry.version_id for entry in metadata.version_log]


# Values


def test_new_view_has_one_version_and_one_log_entry() -> None:
    made = new_view_metadata(
        view_uuid=UUID, location="loc", schema=Z.with_schema_id(9), version=version(1, schema_id=9)
    )
    assert made.format_version == 1
    assert made.current_version == version(1, schema_id=0)
    assert made.current_schema == Z
    assert made.version_log == (VersionLogEntry(1000, 1),)
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"location": ""}, "location is empty"),
        ({"view_uuid": "not-a-uuid"}, "view_uuid 'not-a-uuid' is not a UUID"),
        ({"format_version": 0}, "format_version is 0"),
        ({"versions": ()}, r"current_version_id 1 is not among the versions \(none\)"),
        ({"current_version_id": 23}, "current_version_id 23 is not among the versions 1"),
        ({"schemas": ()}, r"schema_id 0 of version 1 is not among the schemas \(none\)"),
        ({"versions": (version(1, schema_id=23),)}, "schema_id 23 of version 1 is not among the schemas 0"),
        ({"versions": (version(1), version(1, "select 2"))}, "two of the versions have the id 1"),
        ({"schemas": (X, Y)}, "two of the schemas have the id 0"),
    ],
)
def test_invalid_metadata_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        replace(view(version(1)), **changes)  # type: ignore[arg-type]


def test_newer_view_format_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="view format version 23"):
        replace(view(version(1)), format_version=23)


def test_duplicate_dialects_are_refused_in_any_case() -> None:
    with pytest.raises(InvalidRequestError, match="two queries for the dialect 'spark'"):
        of_dialects(1, SPARK, SqlRepresentation("select 2", "SpArK"))


def test_version_id_has_32_bits() -> None:
    version(2**31 - 1)
    with pytest.raises(InvalidRequestError, match="32 bits"):
        version(2**31)


def test_query_is_found_by_dialect() -> None:
    both = ViewVersion(1, 0, 1, (UnknownRepresentation("plan", FrozenMap({"type": "plan"})), SPARK, TRINO))
    assert both.find_sql("TRINO") == TRINO
    assert both.find_sql("hive") is None
    assert both.dialects == {"spark", "trino"}
    assert both.sql_representations == (SPARK, TRINO)


def test_versions_and_schemas_are_found_by_id() -> None:
    made = view(version(1), version(2, "select 2"))
    assert made.version(2).version_id == 2
    assert made.schema(0) == X
    with pytest.raises(NotFoundError, match="version 3") as caught:
        made.version(3)
    assert caught.value.hint == "Its versions are: 1, 2."
    with pytest.raises(NotFoundError, match="schema 4"):
        made.schema(4)


def test_recreated_view_under_the_same_name_is_detected() -> None:
    made = view(version(1))
    check_same_view(made, replace(made, view_uuid=UUID.upper()))
    with pytest.raises(InvalidRequestError, match="its UUID was"):
        check_same_view(made, replace(made, view_uuid=UUID.replace("f", "0")))


# Adding versions and schemas


def test_version_gets_an_unused_id() -> None:
    made = view(version(1, "a"), version(1, "b"), version(1, "c"))
    assert ids(made) == [1, 2, 3]
    assert made.current_version == version(3, "c")
    assert add_view_version(made, version(9, "d"))[1] == 9


def test_version_differing_only_in_time_is_the_same() -> None:
    made = view(version(1, "a"), version(1, "b"), version(1, "c"))
    for at, sql in enumerate("abc", start=1):
        same, version_id = add_view_version(made, version(1, sql, timestamp_ms=7))
        assert same is made
        assert version_id == at


def test_version_differing_in_summary_is_another() -> None:
    other = replace(version(1, "b"), summary=FrozenMap({"user": "some-user", "key": "val"}))
    made = view(version(1, "a"), version(1, "b"), version(1, "a", timestamp_ms=5), other)
    assert ids(made) == [1, 2, 3]
    assert made.current_version == replace(other, version_id=3)


def test_version_of_an_unknown_schema_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="schema_id 23"):
        add_view_version(view(version(1)), version(2, "b", schema_id=23))


def test_schema_gets_the_next_id_and_an_equal_one_is_reused() -> None:
    made = view(version(1))
    made, second = add_view_schema(made, Y.with_schema_id(7))
    made, third = add_view_schema(made, Z.with_schema_id(9))
    assert [one.schema_id for one in made.schemas] == [0, 1, 2]
    assert (second, third) == (1, 2)
    for schema, expected in ((X, 0), (Y, 1), (Z, 2)):
        same, schema_id = add_view_schema(made, schema.with_schema_id(30))
        assert same is made
        assert schema_id == expected


def test_exhausted_ids_are_an_error() -> None:
    with pytest.raises(InvalidRequestError, match="version ids are used up"):
        add_view_version(view(version(2**31 - 1)), version(1, "b"))
    full = replace(view(version(1, schema_id=0)), schemas=(X, Y.with_schema_id(2**31 - 1)))
    with pytest.raises(InvalidRequestError, match="schema ids are used up"):
        add_view_schema(full, Z)


# Replacing


def test_replacing_assigns_ids_and_reuses_equal_schemas_and_versions() -> None:
    made = view(version(1, "a"))
    made = replace_view(made, version(1, "b", schema_id=7), Y.with_schema_id(7))
    made = replace_view(made, version(1, "c", schema_id=9), Z.with_schema_id(9))
    assert [(one.version_id, one.schema_id) for one in made.versions] == [(1, 0), (2, 1), (3, 2)]
    again = replace_view(made, version(1, "b", timestamp_ms=9000), Y)
    assert again.versions == made.versions
    assert again.current_version_id == 2
    assert again.version_log[-1] == VersionLogEntry(9000, 2)


def test_replacing_by_the_current_definition_changes_nothing() -> None:
    made = view(version(1, "a"))
    assert replace_view(made, version(5, "a", timestamp_ms=9000), X) == made


def test_base_is_never_changed() -> None:
    base = view(version(1, "a"))
    before = pickle.dumps(base)
    replace_view(base, version(1, "b"), Y)
    assert pickle.dumps(base) == before


def test_dropping_a_dialect_is_refused_by_default() -> None:
    base = view(of_dialects(1, SPARK))
    with pytest.raises(InvalidRequestError, match="lose the SQL dialects spark; it had spark and would have trino"):
        replace_view(base, of_dialects(1, TRINO), X)


def test_dropping_a_dialect_is_allowed_by_its_property() -> None:
    base = change_view_properties(view(of_dialects(1, SPARK)), {DROP: "true"})
    assert replace_view(base, of_dialects(1, TRINO), X).current_version.representations == (TRINO,)


def test_property_set_in_the_same_change_applies() -> None:
    base = view(of_dialects(1, SPARK))
    steps, version_id = add_view_version(base, of_dialects(1, TRINO))
    steps = set_current_view_version(steps, version_id, timestamp_ms=5)
    allowed = finish_view_change(base, replace(steps, properties=FrozenMap({DROP: "true"})))
    assert allowed.current_version.representations == (TRINO,)
    back = set_current_view_version(allowed, 1, timestamp_ms=6)
    with pytest.raises(InvalidRequestError, match="lose the SQL dialects trino"):
        finish_view_change(allowed, replace(back, properties=FrozenMap({DROP: "false"})))


def test_adding_a_dialect_is_always_allowed() -> None:
    base = view(of_dialects(1, SPARK))
    assert replace_view(base, of_dialects(1, SPARK, TRINO), X).current_version.representations == (SPARK, TRINO)
    assert replace_view(view(of_dialects(1)), of_dialects(1, SPARK), X).current_version.representations == (SPARK,)


def test_rollback_dropping_a_dialect_is_refused_ignoring_intermediate_steps() -> None:
    base = view(of_dialects(1, SPARK), of_dialects(2, TRINO), of_dialects(3, TRINO, SPARK), current=1)
    steps = base
    for version_id in (3, 1, 2):
        steps = set_current_view_version(steps, version_id, timestamp_ms=5)
    with pytest.raises(InvalidRequestError, match="lose the SQL dialects spark"):
        finish_view_change(base, steps)
    both = roll_back_view(base, 3, timestamp_ms=5)
    with pytest.raises(InvalidRequestError, match="it had spark, trino and would have trino"):
        roll_back_view(both, 2, timestamp_ms=6)


# The version log


def test_rollback_logs_its_own_time() -> None:
    base = view(version(1, "a", timestamp_ms=1000), version(2, "b", timestamp_ms=2000), current=1)
    changed = roll_back_view(base, 2, timestamp_ms=5000)
    assert changed.version_log == (VersionLogEntry(1000, 1), VersionLogEntry(5000, 2))
    changed = replace_view(changed, version(3, "c", timestamp_ms=3000), X)
    # Times of the log never go back, whatever the clock of the second writer says.
    assert changed.version_log[-1] == VersionLogEntry(5000, 3)
    changed = roll_back_view(changed, 1, timestamp_ms=9000)
    assert logged(changed) == [1, 2, 3, 1]
    assert changed.version_log[-1].timestamp_ms == 9000


def test_rollback_to_the_current_version_changes_nothing() -> None:
    base = view(version(1))
    assert roll_back_view(base, 1, timestamp_ms=5) == base


def test_rollback_to_an_expired_version_is_refused() -> None:
    with pytest.raises(NotFoundError, match="version 7"):
        roll_back_view(view(version(1)), 7, timestamp_ms=5)


def test_change_of_several_steps_has_one_log_entry() -> None:
    base = view(version(1, "a"), version(2, "b"), version(3, "c"), current=1)
    steps = base
    for version_id in (3, 1, 2):
        steps = set_current_view_version(steps, version_id, timestamp_ms=version_id)
    assert finish_view_change(base, steps).version_log == (*base.version_log, VersionLogEntry(2, 2))


def test_log_is_truncated_after_its_last_entry_of_an_expired_version() -> None:
    one, two, three = (VersionLogEntry(at, at) for at in (1, 2, 3))
    assert trimmed_version_log([one, two, three], {1, 2, 3}) == (one, two, three)
    assert trimmed_version_log([three, two, one, two, three], {2, 3}) == (two, three)
    assert trimmed_version_log([one, two, three, one, three], {1, 3}) == (three, one, three)


# Expiry


def test_old_versions_expire_by_id_and_order_is_kept() -> None:
    base = with_history(view(version(1, "a"), version(2, "b"), version(3, "c")), 2)
    changed = finish_view_change(base, base)
    assert ids(changed) == [2, 3]
    assert logged(changed) == [3]
    changed = roll_back_view(changed, 2, timestamp_ms=5)
    changed = roll_back_view(changed, 3, timestamp_ms=6)
    assert ids(changed) == [2, 3]
    assert logged(changed) == [3, 2, 3]
    with pytest.raises(NotFoundError):
        roll_back_view(changed, 1, timestamp_ms=7)


@pytest.mark.parametrize(("size", "kept"), [(1, [1]), (2, [1, 3]), (3, [1, 2, 3]), (10, [1, 2, 3])])
def test_current_version_never_expires(size: int, kept: list[int]) -> None:
    base = with_history(view(version(1, "a"), version(2, "b"), version(3, "c"), current=1), size)
    changed = finish_view_change(base, base)
    assert ids(changed) == kept
    assert changed.current_version_id == 1
    assert logged(changed) == [1]


def test_versions_added_by_a_change_survive_it() -> None:
    base = with_history(view(version(1, "a")), 2)
    steps, _ = add_view_version(base, version(2, "b"))
    steps, _ = add_view_version(steps, version(3, "c"))
    changed = finish_view_change(base, steps)
    assert ids(changed) == [1, 2, 3]
    assert ids(finish_view_change(changed, changed)) == [1, 3]


def test_ten_versions_are_kept_by_default() -> None:
    made = view(version(1, "select 0"))
    for at in range(1, 15):
        made = replace_view(made, version(1, f"select {at}", timestamp_ms=at), X)
    assert ids(made) == list(range(6, 16))
    assert logged(made) == list(range(6, 16))


def test_log_starts_after_the_last_entry_of_an_expired_version() -> None:
    made = with_history(view(version(1, "a")), 2)
    made = replace_view(made, version(1, "b"), X)
    made = roll_back_view(made, 1, timestamp_ms=5)
    made = replace_view(made, version(1, "c"), X)
    assert ids(made) == [2, 3]
    assert logged(made) == [3]


@pytest.mark.parametrize("size", ["0", "-1", "many"])
def test_invalid_history_limit_is_refused(size: str) -> None:
    with pytest.raises(InvalidPropertyError, match=HISTORY):
        new_view_metadata(view_uuid=UUID, location="l", schema=X, version=version(1), properties={HISTORY: size})
    with pytest.raises(InvalidPropertyError, match=HISTORY):
        change_view_properties(view(version(1)), {HISTORY: size})
    broken = replace(view(version(1)), properties=FrozenMap({HISTORY: size}))
    assert change_view_properties(broken, {}, [HISTORY]).properties == {}


# Properties, location, version


def test_properties_are_set_and_removed() -> None:
    base = change_view_properties(view(version(1)), {"a": "1", "b": "2"})
    assert change_view_properties(base, {"b": "3"}, ["a", "absent"]).properties == {"b": "3"}


def test_view_location_can_change() -> None:
    assert move_view(view(version(1)), "s3://other").location == "s3://other"
    with pytest.raises(InvalidRequestError, match="location is empty"):
        move_view(view(version(1)), "")


def test_views_have_one_format_version() -> None:
    base = view(version(1))
    assert upgrade_view(base, 1) is base
    with pytest.raises(InvalidRequestError, match="never downgraded"):
        upgrade_view(base, 0)
    with pytest.raises(UnsupportedError):
        upgrade_view(base, 2)


def test_uuid_never_changes() -> None:
    base = view(version(1))
    with pytest.raises(InvalidRequestError, match="UUID"):
        finish_view_change(base, replace(base, view_uuid=UUID.replace("f", "0")))
