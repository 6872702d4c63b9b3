"""Where new files go, and how locations compare; hashed paths are those of Iceberg Java's TestLocationProvider."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import InvalidPropertyError, InvalidRequestError, UnsupportedError
from frazil.expr.columns.location_keys import location_keys
from frazil.storage.locations import (
    data_file_name,
    data_folder,
    data_locations,
    find_metadata_version,
    is_under,
    join_location,
    location_key,
    manifest_list_name,
    manifest_name,
    may_overlap,
    metadata_file_name,
    metadata_folder,
    parse_location,
    scheme_of,
    strip_slashes,
    table_folders,
)

TABLE = "s3://bucket/db/table"
HASHED = {"write.object-storage.enabled": "true"}
UNPARTITIONED = {**HASHED, "write.object-storage.partitioned-paths": "false"}


# Where new files go


def test_files_are_below_the_table_by_default() -> None:
    for location in (TABLE, f"{TABLE}/", f"{TABLE}//"):
        assert data_folder(location, {}) == f"{TABLE}/data"
        assert metadata_folder(location, {}) == f"{TABLE}/metadata"
        assert data_locations(location, {}).new_data_location("my_file") == f"{TABLE}/data/my_file"


def test_partitioned_files_have_a_folder_per_partition() -> None:
    assert data_locations(TABLE, {}).new_data_location("f", "a=1/b=x") == f"{TABLE}/data/a=1/b=x/f"
    assert data_locations(TABLE, {}).new_data_location("f", "") == f"{TABLE}/data/f"


@pytest.mark.parametrize(
    ("chosen", "folder"),
    [
        ("s3://other/place/", "s3://other/place"),
        ("/mnt/data", "/mnt/data"),
        ("elsewhere", f"{TABLE}/elsewhere"),
        ("a/b", f"{TABLE}/a/b"),
    ],
)
def test_other_folders_may_be_absolute_or_relative_to_the_table(chosen: str, folder: str) -> None:
    assert data_folder(TABLE, {"write.data.path": chosen}) == folder
    assert metadata_folder(TABLE, {"write.metadata.path": chosen}) == folder


@pytest.mark.parametrize("name", ["write.object-storage.path", "write.folder-storage.path"])
@pytest.mark.parametrize("hashed", ["true", "false"])
def test_retired_properties_are_refused_unless_replaced(name: str, hashed: str) -> None:
    properties = {name: "s3://random/object/location", "write.object-storage.enabled": hashed}
    with pytest.raises(InvalidPropertyError, match=name):
        data_locations(TABLE, properties)
    properties["write.data.path"] = "s3://b/x"
    assert data_locations(TABLE, properties).folder == "s3://b/x"


def test_java_location_provider_class_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"org\.example\.Provider"):
        data_locations(TABLE, {"write.location-provider.impl": "org.example.Provider"})


def test_empty_location_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="empty"):
        data_folder("", {})
    with pytest.raises(InvalidPropertyError):
        data_folder(TABLE, {"write.data.path": ""})


@pytest.mark.parametrize(
    ("name", "spread"),
    [
        ("a", "0101/0110/1001/10110010"),
        ("b", "1110/0111/1110/00000011"),
        ("c", "0010/1101/0110/01011111"),
        ("d", "1001/0001/0100/01110011"),
    ],
)
def test_hashed_paths_match_iceberg_java(name: str, spread: str) -> None:
    assert data_locations(TABLE, HASHED).new_data_location(name) == f"{TABLE}/data/{spread}/{name}"


def test_hashed_paths_without_partitions_join_hash_and_name() -> None:
    located = data_locations(TABLE, UNPARTITIONED).new_data_location("test.parquet", "data=val")
    assert located == f"{TABLE}/data/0110/1010/0011/11101000-test.parquet"


def test_hashed_paths_with_partitions_include_them_in_the_hash() -> None:
    located = data_locations(TABLE, HASHED).new_data_location("test.parquet", "data%231=val%231")
    assert located.startswith(f"{TABLE}/data/")
    assert located.endswith("/data%231=val%231/test.parquet")
    assert located == data_locations(TABLE, HASHED).new_data_location("data%231=val%231/test.parquet")


def test_hashed_paths_outside_the_table_name_the_table() -> None:
    outside = {**HASHED, "write.data.path": "s3://other/data"}
    assert data_locations(TABLE, outside).new_data_location("a") == "s3://other/data/0101/0110/1001/10110010/db/table/a"
    neighbour = {**HASHED, "write.data.path": f"{TABLE}2"}
    assert "/db/table/" in data_locations(TABLE, neighbour).new_data_location("a")
    unpartitioned = {**UNPARTITIONED, "write.data.path": "s3://other/data"}
    located = data_locations(TABLE, unpartitioned).new_data_location("a", "p=1")
    assert located == "s3://other/data/0101/0110/1001/10110010/db/table/a"


@pytest.mark.parametrize(
    ("table", "context"),
    [("s3://b/db/t", "db/t"), ("s3://b/t", "t"), ("/wh/db/t/", "db/t"), ("file:/t", "t"), ("s3://b/x/db/t", "db/t")],
)
def test_table_is_named_by_its_last_two_folders(table: str, context: str) -> None:
    assert data_locations(table, {**HASHED, "write.data.path": "s3://other"}).context == context


def test_file_names_match_iceberg_java() -> None:
    named = data_file_name(partition_id=3, task_id=41, operation_id="u", file_count=7, extension="parquet")
    assert named == "00003-41-u-00007.parquet"
    deletes = data_file_name(
        partition_id=3, task_id=41, operation_id="u", file_count=7, extension="puffin", suffix="deletes"
    )
    assert deletes == "00003-41-u-00007-deletes.puffin"
    assert metadata_file_name(12, "u") == "00012-u.metadata.json"
    assert metadata_file_name(12, "u", is_gzip=True) == "00012-u.gz.metadata.json"
    assert manifest_list_name(99, 2, "u") == "snap-99-2-u.avro"
    assert manifest_name("u", 4) == "u-m4.avro"


@pytest.mark.parametrize(
    ("location", "version"),
    [
        ("s3://b/m/00012-u.metadata.json", 12),
        ("00012-a-b.gz.metadata.json", 12),
        ("/x/v7.metadata.json", 7),
        ("/x/v7.gz.metadata.json", 7),
        ("/x/v7.metadata.json.gz", 7),
        ("/x/metadata.json", None),
        ("/x/u.metadata.json", None),
        ("/x/-1-u.metadata.json", None),
        ("/x/7-u.avro", None),
        ("/x/" + "9" * 5000 + ".metadata.json", None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_version_is_parsed_from_a_metadata_file_name(location: str, version: int | None) -> None:
    assert find_metadata_version(location) == version


# How locations compare


def test_schemes_and_slashes_are_normalized() -> None:
    assert scheme_of("S3A://b") == "s3a"
    assert scheme_of("/a:b") is None
    assert scheme_of("a/b:c") is None
    assert scheme_of("1a:b") is None
    assert strip_slashes("s3://b/x///") == "s3://b/x"
    assert strip_slashes("s3://") == "s3://"
    assert join_location("s3://b/", "x") == "s3://b/x"
    assert join_location("s3://b", "gs://c") == "gs://c"
    assert str(parse_location("s3a://b/x//y")) == "s3://b/x//y"
    with pytest.raises(InvalidRequestError, match="neither a URI nor an absolute path"):
        parse_location("a/b")


SAME = [
    ("file:/x/y", "file:///x/y"),
    ("file:/x/y", "/x/y"),
    ("file://localhost/x/y", "//x//y/"),
    ("FILE:/x/./y", "/x/y"),
    ("/x/z/../y", "/x/y"),
    ("/x/a%20b", "/x/a b"),
    ("s3a://b/x", "s3://b/x"),
    ("s3n://b/x", "s3://b/x"),
    ("s3://b/x//y", "s3://b/x/y"),
    ("s3://b/x/", "s3://b/x"),
    ("s3://b/%2e%2e/x", "s3://b/x"),
]
DIFFERENT = [
    ("/x/y", "/x/Y"),
    ("/x/y", "/x/y2"),
    ("s3://b/x", "s3://c/x"),
    ("s3://b/x", "gs://b/x"),
    ("file://host/x", "/x"),
    ("/x/a+b", "/x/a b"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_file_have_one_key(one: str, other: str) -> None:
    assert location_key(one) == location_key(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_files_have_different_keys(one: str, other: str) -> None:
    assert location_key(one) != location_key(other)


INSIDE = [
    ("/wh/t/f", "/wh/t"),
    ("/wh/t/f", "/wh/t/"),
    ("file:/wh/t/f", "file:///wh/t"),
    ("/wh//t/data/f", "file://localhost/wh/t"),
    ("s3a://b/t/f", "s3://b/t"),
    ("s3://b/t//f", "s3://b/t"),
    ("s3://b/f", "s3://b"),
    ("s3://b/f", "s3://b/"),
    ("/wh/t/k=a%20b/f", "/wh/t"),
    ("/wh/t/k=a%0Ab%5C/f", "/wh/t"),
    ("/wh/t/k=a%2F..%2Fb/f", "/wh/t"),
    ("/wh/t/..f", "/wh/t"),
    ("/wh/t/...", "/wh/t"),
]
OUTSIDE = [
    ("/wh/t2/f", "/wh/t"),
    ("/wh/t", "/wh/t"),
    ("/wh/t/", "/wh/t"),
    ("/wh/t//", "/wh/t"),
    ("s3://b/t/", "s3://b/t"),
    ("s3://b/t//", "s3://b/t"),
    ("/wh", "/wh/t"),
    ("/wh/t/../u/f", "/wh/t"),
    ("/wh/t/data/../f", "/wh/t"),
    ("/wh/t/..", "/wh/t"),
    ("/wh/t/%2e%2e/u/f", "/wh/t"),
    ("/wh/t/%252e%252e/u/f", "/wh/t"),
    ("/wh/t/..%2fu", "/wh/t"),
    ("/wh/t/a%2f..%2f..%2f..%2fetc/passwd", "/wh/t"),
    ("s3://b/t/../u/f", "s3://b/t"),
    ("s3://b/t/./f", "s3://b/t"),
    ("s3://b/t/f", "s3://c/t"),
    ("s3://b/t/f", "gs://b/t"),
    ("s3://b/t/f", "/t"),
    ("file://host/wh/t/f", "/wh/t"),
    ("/etc/passwd", "/"),
    ("/etc/passwd", "file:///"),
    ("/etc/passwd", "//"),
    ("t/f", "t"),
    ("", "/wh/t"),
    ("/wh/t/f", ""),
    ("/wh/t/a\0b", "/wh/t"),
    ("/wh/t/a\nb", "/wh/t"),
    ("/wh/t/..\\..\\x", "/wh/t"),
    ("/wh/t/f", "/wh/t/../t"),
    ("/WH/t/f", "/wh/t"),
]


@pytest.mark.parametrize(("location", "folder"), INSIDE)
def test_locations_inside_a_folder_are_recognised(location: str, folder: str) -> None:
    assert is_under(location, folder)


@pytest.mark.parametrize(("location", "folder"), OUTSIDE)
def test_locations_outside_a_folder_or_ambiguous_are_refused(location: str, folder: str) -> None:
    assert not is_under(location, folder)


steps = st.sampled_from(["a", "b", "t", ".", "..", "", "%2e%2e", "%2f", "..%2f", "%252e", "x y", "data"])
paths = st.lists(steps, max_size=6).map("/".join)


@given(below=paths)
def test_location_inside_stays_inside_however_it_is_read(below: str) -> None:
    location = f"/wh/t/{below}"
    if is_under(location, "/wh/t"):
        assert location_key(location).startswith("file:///wh/t/")


@given(below=paths, scheme=st.sampled_from(["file:", "file://", "file://localhost", ""]))
def test_location_key_ignores_the_scheme(below: str, scheme: str) -> None:
    assert location_key(f"{scheme}/wh/{below}") == location_key(f"/wh/{below}")


def test_folders_of_a_table_do_not_nest() -> None:
    assert table_folders(TABLE, {}) == (TABLE,)
    assert table_folders(TABLE, {"write.data.path": "s3://x/d"}) == (TABLE, "s3://x/d")
    both = {"write.data.path": "s3://x/d", "write.metadata.path": "s3://x/d"}
    assert table_folders(f"{TABLE}/", both) == (TABLE, "s3://x/d")
    assert table_folders(TABLE, {"write.data.path": f"{TABLE}2"}) == (TABLE, f"{TABLE}2")


# Deleting


@pytest.mark.parametrize(("one", "other"), [("gs", "gcs"), ("s3", "s3a"), ("s3", "s3n"), ("abfs", "abfss")])
def test_equivalent_schemes_share_keys_columns_and_folders(one: str, other: str) -> None:
    paths = [f"{scheme}://b/t/f.parquet" for scheme in (one, other, other.upper())]
    assert len({location_key(path) for path in paths}) == 1
    assert len(set(location_keys(pa.array(paths)))) == 1
    assert all(is_under(path, f"{one}://b/t") for path in paths)


@pytest.mark.parametrize(
    ("location", "other"),
    [
        ("s3://b/team/x/%2e%2e/f", "s3://b/team/x"),
        ("s3://b/team/x/%2e%2e/f", "s3://b/team/f"),
        ("s3a://b/team/x/%252e%252e/f", "s3://b/team/x"),
        ("file:///wh/team/x/%2E./f", "/wh/team/x"),
        ("/wh/team", "file:///wh/team/x/%2e%2e/f"),
    ],
)
def test_folders_overlap_if_they_may_by_any_reading_of_their_escapes(location: str, other: str) -> None:
    assert may_overlap(location, other) and may_overlap(other, location)
    assert not may_overlap(location, "s3://b/other") and not may_overlap(location, "/wh/other")
