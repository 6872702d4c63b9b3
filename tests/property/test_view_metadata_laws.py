"""Laws of view metadata: files read back, and changes keep the rules whatever their order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frazil.codec.view_metadata_json import decode_view_metadata, encode_view_metadata
from frazil.errors import CorruptTableError, UnsupportedError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, NestedField
from frazil.spec.view_evolution import new_view_metadata
from frazil.spec.view_metadata import (
    Representation,
    SqlRepresentation,
    UnknownRepresentation,
    ViewMetadata,
    ViewVersion,
)
from tests.support.view_changes import change_view_properties, replace_view, roll_back_view

KNOWN = {
    "view-uuid", "format-version", "location", "properties", "schemas", "current-version-id", "versions",
    "version-log", "version-id", "timestamp-ms", "schema-id", "summary", "default-catalog", "default-namespace",
    "representations", "type", "sql", "dialect", "current-schema-id",
}  # fmt: skip
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
texts = st.dictionaries(text, text, max_size=3).map(FrozenMap)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
extras = st.dictionaries(text.filter(lambda key: key not in KNOWN), json_values, max_size=2).map(FrozenMap)
schemas = st.sampled_from([Schema((NestedField(1, name, LONG), NestedField(2, "s", STRING))) for name in "abc"])


@st.composite
def representations(draw: st.DrawFn) -> tuple[Representation, ...]:
    dialects = draw(st.lists(text, max_size=3, unique_by=str.lower))
    found: list[Representation] = [SqlRepresentation(draw(text), one, draw(extras)) for one in dialects]
    if draw(st.booleans()):
        kind = draw(text.filter(lambda word: word.lower() != "sql"))
        found.append(UnknownRepresentation(kind, FrozenMap({"type": kind, **draw(extras)})))
    return tuple(found)


versions = st.builds(
    ViewVersion,
    version_id=st.integers(1, 50),
    schema_id=st.just(0),
    timestamp_ms=st.integers(-(2**63), 2**63 - 1),
    representations=representations(),
    default_namespace=st.lists(text, max_size=3).map(tuple),
    default_catalog=st.none() | text,
    summary=texts,
    extra=extras,
)
views = st.builds(
    new_view_metadata,
    view_uuid=st.uuids().map(str),
    location=text.filter(bool),
    schema=schemas,
    version=versions,
    properties=texts,
)


@given(view=views, replacements=st.lists(st.tuples(versions, schemas), max_size=3), compress=st.booleans())
def test_view_metadata_round_trips(
    view: ViewMetadata, replacements: list[tuple[ViewVersion, Schema]], compress: bool
) -> None:
    view = change_view_properties(view, {"replace.drop-dialect.allowed": "true"})
    for version, schema in replacements:
        view = replace_view(view, version, schema)
    data = encode_view_metadata(view, compress=compress)
    read = decode_view_metadata(data)
    assert read == view
    assert encode_view_metadata(read, compress=compress) == data


def _small_version(at: int) -> ViewVersion:
    return ViewVersion(1, 0, at, (SqlRepresentation(f"select {at}", "spark"),))


steps = st.lists(
    st.tuples(st.just("replace"), st.integers(0, 6))
    | st.tuples(st.just("back"), st.integers(1, 9))
    | st.tuples(st.just("limit"), st.integers(1, 4)),
    max_size=25,
)


@given(steps=steps)
def test_view_changes_keep_the_invariants_in_any_order(steps: list[tuple[str, Any]]) -> None:
    schema = Schema((NestedField(1, "a", LONG),))
    uuid = "fa6506c3-7681-40c8-86dc-e36561f83385"
    view = new_view_metadata(view_uuid=uuid, location="l", schema=schema, version=_small_version(0))
    limit = 10
    for verb, at in steps:
        before = view
        if verb == "replace":
            view = replace_view(view, _small_version(at), schema)
        elif verb == "limit":
            limit = at
            view = change_view_properties(view, {"version.history.num-entries": str(at)})
        elif at in view.versions_by_id:
            view = roll_back_view(view, at, timestamp_ms=at)
        if view.current_version_id != before.current_version_id:
            assert view.version_log[-1].version_id == view.current_version_id
        assert len(view.versions) <= limit
        assert len({one.version_id for one in view.versions}) == len(view.versions)
        definitions = [one.sql_representations[0].sql for one in view.versions]
        assert len(set(definitions)) == len(definitions)
        assert view.version_log[-1].version_id == view.current_version_id
        assert all(entry.version_id in view.versions_by_id for entry in view.version_log)


@given(view=views, cuts=st.lists(st.tuples(st.integers(0, 2000), st.binary(max_size=3)), min_size=1, max_size=3))
def test_any_bytes_are_view_metadata_or_refused(view: ViewMetadata, cuts: list[tuple[int, bytes]]) -> None:
    data = encode_view_metadata(view, compress=False)
    for at, piece in cuts:
        place = at % (len(data) + 1)
        data = data[:place] + piece + data[place + len(piece) + 1 :]
    try:
        decode_view_metadata(data)
    except (CorruptTableError, UnsupportedError):
        return
