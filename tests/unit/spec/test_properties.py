"""The table of properties, and how one is read."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import InvalidPropertyError
from frazil.spec import properties
from frazil.spec.metrics_mode import FULL, TRUNCATE_16
from frazil.spec.properties import (
    COLUMN_PROPERTIES,
    TABLE_PROPERTIES,
    VIEW_PROPERTIES,
    check_properties,
    check_retired,
    check_view_properties,
    properties_for_new_table,
    read_column_properties,
    read_column_property,
    read_property,
    without_reserved,
)
from frazil.spec.property_kinds import ColumnProperty, Property
from tools.properties_markdown import properties_markdown

# Iceberg Java's defaults, from its documents and code; None where it has none.
REFERENCE_DEFAULTS: dict[str, Any] = {
    "commit.retry.num-retries": 4,
    "commit.retry.min-wait-ms": 100,
    "commit.retry.max-wait-ms": 60_000,
    "commit.retry.total-timeout-ms": 1_800_000,
    "commit.status-check.num-retries": 3,
    "commit.status-check.min-wait-ms": 1000,
    "commit.status-check.max-wait-ms": 60_000,
    "commit.status-check.total-timeout-ms": 1_800_000,
    "commit.manifest.target-size-bytes": 8_388_608,
    "commit.manifest.min-count-to-merge": 100,
    "commit.manifest-merge.enabled": True,
    "history.expire.max-snapshot-age-ms": 432_000_000,
    "history.expire.min-snapshots-to-keep": 1,
    "history.expire.max-ref-age-ms": 2**63 - 1,
    "gc.enabled": True,
    "write.format.default": "parquet",
    "write.delete.format.default": "parquet",
    "write.target-file-size-bytes": 536_870_912,
    "write.delete.target-file-size-bytes": 67_108_864,
    "write.delete.mode": "copy-on-write",
    "write.delete.isolation-level": "serializable",
    "write.distribution-mode": None,
    "write.wap.enabled": False,
    "write.parquet.row-group-size-bytes": 134_217_728,
    "write.parquet.page-size-bytes": 1_048_576,
    "write.parquet.page-row-limit": 20_000,
    "write.parquet.dict-size-bytes": 2_097_152,
    "write.parquet.compression-codec": "gzip",
    "write.parquet.compression-level": None,
    "write.parquet.bloom-filter-max-bytes": 1_048_576,
    "write.avro.compression-codec": "gzip",
    "write.orc.stripe-size-bytes": 67_108_864,
    "write.orc.block-size-bytes": 268_435_456,
    "write.orc.compression-codec": "zlib",
    "write.orc.bloom.filter.fpp": 0.05,
    "write.manifest.compression-codec": "gzip",
    "write.metadata.compression-codec": "none",
    "write.metadata.previous-versions-max": 100,
    "write.metadata.delete-after-commit.enabled": False,
    "write.metadata.metrics.default": TRUNCATE_16,
    "write.metadata.metrics.max-inferred-column-defaults": 100,
    "write.object-storage.enabled": False,
    "write.object-storage.partitioned-paths": True,
    "write.data.path": None,
    "write.summary.partition-limit": 0,
    "read.split.target-size": 134_217_728,
    "read.split.metadata-target-size": 33_554_432,
    "read.split.planning-lookback": 10,
    "read.split.open-file-cost": 4_194_304,
    "read.split.adaptive-size.enabled": True,
    "read.data-planning-mode": "auto",
    "encryption.data-key-length": 16,
    "format-version": 2,
}


@pytest.mark.parametrize("name", list(REFERENCE_DEFAULTS))
def test_unset_property_has_the_default_of_iceberg_java(name: str) -> None:
    assert read_property({}, TABLE_PROPERTIES[name]) == REFERENCE_DEFAULTS[name]


def test_view_properties_have_their_own_defaults() -> None:
    assert read_property({}, properties.VIEW_METADATA_COMPRESSION) == "gzip"
    assert read_property({}, properties.VIEW_VERSION_HISTORY_SIZE) == 10
    assert read_property({}, properties.VIEW_REPLACE_DROP_DIALECT_ALLOWED) is False
    assert VIEW_PROPERTIES["commit.retry.num-retries"] is properties.COMMIT_NUM_RETRIES


@pytest.mark.parametrize("one", [*TABLE_PROPERTIES.values(), *VIEW_PROPERTIES.values()], ids=lambda one: one.name)
def test_every_default_round_trips_as_text(one: Property[Any]) -> None:
    assert one.meaning[0].isupper()
    assert not one.meaning.endswith(".")
    if one.default is None:
        return
    text = ",".join(one.default) if isinstance(one.default, tuple) else str(one.default)
    assert read_property({one.name: text}, one) == one.default


@pytest.mark.parametrize("family", COLUMN_PROPERTIES.values(), ids=lambda family: family.prefix)
def test_every_column_property_round_trips_its_default(family: ColumnProperty[Any]) -> None:
    assert read_column_property({}, family, "a.b") == family.default
    if family.default is not None:
        assert read_column_property({family.key("a.b"): str(family.default)}, family, "a.b") == family.default


@pytest.mark.parametrize(
    ("one", "text", "value"),
    [
        (properties.COMMIT_NUM_RETRIES, "0", 0),
        (properties.COMMIT_NUM_RETRIES, "+7", 7),
        (properties.SPLIT_SIZE, "9223372036854775807", 2**63 - 1),
        (properties.GC_ENABLED, "FALSE", False),
        (properties.DELETE_MODE, "Merge-On-Read", "merge-on-read"),
        (properties.PARQUET_COMPRESSION, "ZSTD", "zstd"),
        (properties.PARQUET_COMPRESSION_LEVEL, "-3", -3),
        (properties.ORC_BLOOM_FILTER_FPP, "1e-3", 0.001),
        (properties.ORC_BLOOM_FILTER_COLUMNS, " a, b.c ,", ("a", "b.c")),
        (properties.DEFAULT_METRICS_MODE, "FULL", FULL),
        (properties.ENCRYPTION_DEK_LENGTH, "32", 32),
        (properties.COMMENT, "", ""),
    ],
    ids=str,
)
def test_values_are_parsed_with_their_types(one: Property[Any], text: str, value: Any) -> None:
    assert read_property({one.name: text}, one) == value


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (properties.COMMIT_NUM_RETRIES, "-1"),
        (properties.COMMIT_NUM_RETRIES, "2147483648"),
        (properties.COMMIT_NUM_RETRIES, "four"),
        (properties.COMMIT_NUM_RETRIES, ""),
        (properties.COMMIT_NUM_RETRIES, " 4"),
        (properties.COMMIT_NUM_RETRIES, "4.0"),
        (properties.COMMIT_NUM_RETRIES, "1_000"),
        (properties.COMMIT_NUM_RETRIES, "٤"),
        (properties.COMMIT_NUM_RETRIES, "9" * 1_000_000),
        (properties.SPLIT_SIZE, "128MB"),
        (properties.SPLIT_SIZE, "0"),
        (properties.SPLIT_SIZE, "9223372036854775808"),
        (properties.GC_ENABLED, "yes"),
        (properties.GC_ENABLED, "1"),
        (properties.DELETE_MODE, "merge_on_read"),
        (properties.DELETE_ISOLATION_LEVEL, "read-committed"),
        (properties.PARQUET_COMPRESSION, "none"),
        (properties.PARQUET_COMPRESSION_LEVEL, "99"),
        (properties.ORC_BLOOM_FILTER_FPP, "0"),
        (properties.ORC_BLOOM_FILTER_FPP, "1"),
        (properties.ORC_BLOOM_FILTER_FPP, "NaN"),
        (properties.ORC_BLOOM_FILTER_FPP, "1e-9999"),
        (properties.DEFAULT_METRICS_MODE, "truncate(0)"),
        (properties.ENCRYPTION_DEK_LENGTH, "20"),
        (properties.WRITE_DATA_LOCATION, ""),
        (properties.VIEW_VERSION_HISTORY_SIZE, "0"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_invalid_value_is_refused_with_key_value_and_valid_ones(one: Property[Any], text: str) -> None:
    with pytest.raises(InvalidPropertyError) as caught:
        read_property({one.name: text}, one)
    assert one.name in caught.value.message
    assert text[:20] in caught.value.message
    assert caught.value.hint == f"Set it to {one.value_type.allowed}."
    assert len(str(caught.value)) < 500


def test_value_that_is_not_text_is_refused() -> None:
    with pytest.raises(InvalidPropertyError, match="not allowed"):
        read_property({"gc.enabled": True}, properties.GC_ENABLED)  # type: ignore[dict-item]


def test_delete_files_default_to_the_data_file_settings() -> None:
    one = properties.DELETE_PARQUET_COMPRESSION
    assert read_property({}, one) == "gzip"
    assert read_property({"write.parquet.compression-codec": "zstd"}, one) == "zstd"
    both = {"write.parquet.compression-codec": "zstd", "write.delete.parquet.compression-codec": "snappy"}
    assert read_property(both, one) == "snappy"
    assert read_property({"write.format.default": "avro"}, properties.DELETE_DEFAULT_FILE_FORMAT) == "avro"


def test_invalid_inherited_value_names_the_data_file_property() -> None:
    with pytest.raises(InvalidPropertyError, match=r"property write\.parquet\.compression-codec"):
        read_property({"write.parquet.compression-codec": "rar"}, properties.DELETE_PARQUET_COMPRESSION)


def test_column_properties_use_full_names() -> None:
    table = {
        "write.parquet.bloom-filter-enabled.column.a": "true",
        "write.parquet.bloom-filter-enabled.column.s.b": "false",
        "write.parquet.bloom-filter-fpp.column.a": "0.5",
    }
    family = properties.PARQUET_BLOOM_FILTER_COLUMN_ENABLED
    assert read_column_properties(table, family) == {"a": True, "s.b": False}
    assert read_column_property(table, properties.PARQUET_BLOOM_FILTER_COLUMN_FPP, "a") == 0.5
    with pytest.raises(InvalidPropertyError, match=r"bloom-filter-enabled\.column\.a"):
        read_column_property({family.key("a"): "maybe"}, family, "a")


def test_unknown_properties_are_kept() -> None:
    table = {"my.own": "x", "write.parquet.unheard-of": "y"}
    check_properties(table)
    assert properties_for_new_table(table) == {**table, "write.parquet.compression-codec": "zstd"}


def test_new_table_uses_zstd_unless_another_codec_is_set() -> None:
    assert properties_for_new_table({}) == {"write.parquet.compression-codec": "zstd"}
    asked = {"write.parquet.compression-codec": "snappy", "format-version": "3", "uuid": "x"}
    assert properties_for_new_table(asked) == {"write.parquet.compression-codec": "snappy"}


def test_reserved_properties_are_never_stored() -> None:
    assert without_reserved(dict.fromkeys(properties.RESERVED_PROPERTIES, "1") | {"a": "b"}) == {"a": "b"}
    assert len(properties.RESERVED_PROPERTIES) == 9


@pytest.mark.parametrize("name", ["write.object-storage.path", "write.folder-storage.path"])
def test_retired_properties_are_refused_with_their_replacement(name: str) -> None:
    with pytest.raises(InvalidPropertyError, match=name) as caught:
        check_retired({name: "s3://x"})
    assert caught.value.hint == "Set write.data.path instead."
    check_retired({})


def test_properties_can_be_validated_before_use() -> None:
    check_properties({"gc.enabled": "true", "write.metadata.metrics.column.a": "full"})
    for bad in ({"gc.enabled": "no"}, {"write.metadata.metrics.column.a": "half"}, {"a": 1}, {1: "a"}):
        with pytest.raises(InvalidPropertyError):
            check_properties(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidPropertyError, match=r"version\.history\.num-entries"):
        check_view_properties({"version.history.num-entries": "0"})
    check_view_properties({"write.metadata.metrics.column.a": "half"})


def test_properties_are_picklable() -> None:
    for one in [*TABLE_PROPERTIES.values(), *COLUMN_PROPERTIES.values()]:
        assert pickle.loads(pickle.dumps(one)) == one


def test_properties_page_is_current() -> None:
    page = Path(__file__).parents[3] / "docs" / "properties.md"
    assert page.read_text(encoding="utf-8") == properties_markdown(), "run make names"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("write.format.defaults", "write.format.default"),
        ("write.merge.mod", "write.merge.mode"),
        ("write.target-filesize-bytes", "write.target-file-size-bytes"),
        ("commit.retry.num-retires", "commit.retry.num-retries"),
        ("history.expire.max-snapshots-age-ms", "history.expire.max-snapshot-age-ms"),
    ],
)
def test_misspelt_name_is_refused_with_a_suggestion(name: str, meant: str) -> None:
    with pytest.raises(InvalidPropertyError, match=rf"{name}: there is no such property(?s:.*)Did you mean {meant}\?"):
        check_properties({name: "1"})


@pytest.mark.parametrize(
    "name",
    [
        *(
            "owner",
            "team",
            "write.parquet.row-group-limit",
            "dbt.model",
            "write.object-storage.path",
        ),
        *("write.metadata.metrics.column.a", "connector", "flink.watermark", "spark.sql.sources.provider"),
    ],
)
def test_foreign_names_are_kept(name: str) -> None:
    check_properties({name: "full"})
