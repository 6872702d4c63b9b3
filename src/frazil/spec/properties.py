"""All table and view properties: name, type, default and meaning.

Code reads a property by its constant, `read_property(metadata.properties, properties.COMMIT_NUM_RETRIES)`, and gets
a checked, typed value. Unlisted properties are kept and ignored, since other engines have their own; names that differ
from a listed one only by a letter or two are refused. `docs/properties.md` is generated from this list.

If the documentation and the code of Iceberg Java disagree, `default_note` states the choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias, TypeVar

from frazil.errors import InvalidPropertyError
from frazil.spec import versions
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.metrics_mode import TRUNCATE_16, MetricsMode
from frazil.spec.property_kinds import (
    INT_MAX,
    LONG_MAX,
    AnyText,
    Choice,
    ColumnProperty,
    Flag,
    Mode,
    Names,
    OneNumberOf,
    Property,
    Ratio,
    Text,
    ValueType,
    Whole,
    parse_value,
    read_column_properties,
    read_column_property,
    read_property,
)

__all__ = ["read_column_properties", "read_column_property", "read_property"]

T = TypeVar("T")
KB, MB, GB = 2**10, 2**20, 2**30
SECOND_MS, MINUTE_MS, DAY_MS = 1000, 60_000, 86_400_000

FileFormat: TypeAlias = Literal["parquet", "avro", "orc"]
ParquetCodec: TypeAlias = Literal["zstd", "gzip", "snappy", "lz4", "lz4_raw", "brotli", "uncompressed"]
AvroCodec: TypeAlias = Literal["gzip", "zstd", "snappy", "uncompressed"]
OrcCodec: TypeAlias = Literal["zlib", "zstd", "snappy", "lz4", "lzo", "none"]
OrcStrategy: TypeAlias = Literal["speed", "compression"]
PageVersion: TypeAlias = Literal["v1", "v2"]
MetadataCodec: TypeAlias = Literal["none", "gzip"]
DistributionMode: TypeAlias = Literal["none", "hash", "range"]
RowLevelMode: TypeAlias = Literal["copy-on-write", "merge-on-read"]
IsolationLevel: TypeAlias = Literal["serializable", "snapshot"]
DeleteGranularity: TypeAlias = Literal["file", "partition"]
PlanningMode: TypeAlias = Literal["auto", "local", "distributed"]

_FORMAT: Choice[FileFormat] = Choice(("parquet", "avro", "orc"))
_PARQUET_CODEC: Choice[ParquetCodec] = Choice(("zstd", "gzip", "snappy", "lz4", "lz4_raw", "brotli", "uncompressed"))
_AVRO_CODEC: Choice[AvroCodec] = Choice(("gzip", "zstd", "snappy", "uncompressed"))
_ORC_CODEC: Choice[OrcCodec] = Choice(("zlib", "zstd", "snappy", "lz4", "lzo", "none"))
_ORC_STRATEGY: Choice[OrcStrategy] = Choice(("speed", "compression"))
_PAGE_VERSION: Choice[PageVersion] = Choice(("v1", "v2"))
_METADATA_CODEC: Choice[MetadataCodec] = Choice(("none", "gzip"))
_DISTRIBUTION: Choice[DistributionMode] = Choice(("none", "hash", "range"))
_ROW_LEVEL: Choice[RowLevelMode] = Choice(("copy-on-write", "merge-on-read"))
_ISOLATION: Choice[IsolationLevel] = Choice(("serializable", "snapshot"))
_GRANULARITY: Choice[DeleteGranularity] = Choice(("file", "partition"))
_PLANNING: Choice[PlanningMode] = Choice(("auto", "local", "distributed"))
_FLAG = Flag()
_COUNT = Whole(0, INT_MAX)
_POSITIVE = Whole(1, INT_MAX)
_INT_BYTES = Whole(1, INT_MAX, "bytes")
_BYTES = Whole(1, LONG_MAX, "bytes")
_INT_MS = Whole(0, INT_MAX, "ms")
_MS = Whole(0, LONG_MAX, "ms")
_LEVEL = Whole(-131_072, 22)
_LOCATION = Text("a location")

_table: list[Property[Any]] = []
_columns: list[ColumnProperty[Any]] = []
_views: list[Property[Any]] = []


class _Section:
    """A section of properties, whose methods create properties and register them."""

    def __init__(self, title: str, into: list[Property[Any]]) -> None:
        self.title = title
        self.into = into

    def of(
        self, name: str, value_type: ValueType[T], default: T, meaning: str, *, note: str | None = None
    ) -> Property[T]:
        prop = Property(name, value_type, default, meaning, self.title, default_note=note)
        self.into.append(prop)
        return prop

    def unset(
        self, name: str, value_type: ValueType[T], meaning: str, *, note: str | None = None
    ) -> Property[T | None]:
        prop: Property[T | None] = Property(name, value_type, None, meaning, self.title, default_note=note)
        self.into.append(prop)
        return prop

    def like(self, name: str, other: Property[T]) -> Property[T]:
        meaning = f"The same for delete files: {other.meaning[0].lower()}{other.meaning[1:]}"
        prop = replace(other, name=name, meaning=meaning, section=self.title, falls_back_to=other, default_note=None)
        self.into.append(prop)
        return prop

    def column(
        self, prefix: str, value_type: ValueType[T], default: T, meaning: str, *, note: str | None = None
    ) -> ColumnProperty[T]:
        prop = ColumnProperty(prefix, value_type, default, meaning, self.title, note)
        _columns.append(prop)
        return prop


_of = _Section("Format and schema", _table)
FORMAT_VERSION = _of.of(
    "format-version", _POSITIVE, versions.DEFAULT, "Format version to create or upgrade to; reserved, not stored"
)
COMMENT = _of.unset("comment", AnyText("any text"), "What the table is for")
DEFAULT_NAME_MAPPING = _of.unset(
    "schema.name-mapping.default", Text("a name mapping as JSON"), "Field ids for data files that have none"
)
SNAPSHOT_ID_INHERITANCE_ENABLED = _of.of(
    "compatibility.snapshot-id-inheritance.enabled",
    _FLAG,
    False,
    "Lets version 1 manifests inherit snapshot ids; always so from version 2",
)
IDENTIFIER_FIELDS_RELY = _of.of(
    "identifier-fields.rely", _FLAG, False, "Whether engines may rely on identifier fields being unique"
)

_of = _Section("Commit", _table)
COMMIT_NUM_RETRIES = _of.of(
    "commit.retry.num-retries", _COUNT, 4, "How often a commit is retried after a conflict with another writer"
)
COMMIT_MIN_RETRY_WAIT_MS = _of.of("commit.retry.min-wait-ms", _INT_MS, 100, "First wait before a commit is retried")
COMMIT_MAX_RETRY_WAIT_MS = _of.of(
    "commit.retry.max-wait-ms", _INT_MS, MINUTE_MS, "Longest wait before a commit is retried"
)
COMMIT_TOTAL_RETRY_TIME_MS = _of.of(
    "commit.retry.total-timeout-ms", _INT_MS, 30 * MINUTE_MS, "Time after which a commit is not retried"
)
COMMIT_NUM_STATUS_CHECKS = _of.of(
    "commit.status-check.num-retries", _COUNT, 3, "How often to check whether a commit of unknown outcome happened"
)
COMMIT_STATUS_CHECKS_MIN_WAIT_MS = _of.of(
    "commit.status-check.min-wait-ms", _MS, SECOND_MS, "First wait before the outcome is checked again"
)
COMMIT_STATUS_CHECKS_MAX_WAIT_MS = _of.of(
    "commit.status-check.max-wait-ms", _MS, MINUTE_MS, "Longest wait before the outcome is checked again"
)
COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS = _of.of(
    "commit.status-check.total-timeout-ms", _MS, 30 * MINUTE_MS, "Time after which the outcome stays unknown"
)
MANIFEST_TARGET_SIZE_BYTES = _of.of(
    "commit.manifest.target-size-bytes", _BYTES, 8 * MB, "Target size of merged manifests"
)
MANIFEST_MIN_MERGE_COUNT = _of.of(
    "commit.manifest.min-count-to-merge", _COUNT, 100, "Number of manifests from which they are merged"
)
MANIFEST_MERGE_ENABLED = _of.of("commit.manifest-merge.enabled", _FLAG, True, "Whether commits merge manifests")
MANIFEST_LISTS_ENABLED = _of.of(
    "write.manifest-lists.enabled", _FLAG, True, "Whether snapshots of version 1 name a manifest list"
)
MANIFEST_COMPRESSION = _of.of(
    "write.manifest.compression-codec", _AVRO_CODEC, "gzip", "Codec of manifests and manifest lists"
)
MANIFEST_COMPRESSION_LEVEL = _of.unset("write.manifest.compression-level", _LEVEL, "Level of the manifests' codec")

_of = _Section("History and metadata files", _table)
GC_ENABLED = _of.of("gc.enabled", _FLAG, True, "Whether expiry, purge and orphan removal may delete files")
MAX_SNAPSHOT_AGE_MS = _of.of("history.expire.max-snapshot-age-ms", _MS, 5 * DAY_MS, "Age from which snapshots expire")
MIN_SNAPSHOTS_TO_KEEP = _of.of(
    "history.expire.min-snapshots-to-keep", _POSITIVE, 1, "Snapshots that each branch keeps regardless of their age"
)
MAX_REF_AGE_MS = _of.of(
    "history.expire.max-ref-age-ms", _MS, LONG_MAX, "Age from which branches and tags other than main expire"
)
METADATA_COMPRESSION = _of.of("write.metadata.compression-codec", _METADATA_CODEC, "none", "Codec of metadata files")
METADATA_PREVIOUS_VERSIONS_MAX = _of.of(
    "write.metadata.previous-versions-max", _COUNT, 100, "Previous metadata files to track, at least one"
)
METADATA_DELETE_AFTER_COMMIT_ENABLED = _of.of(
    "write.metadata.delete-after-commit.enabled",
    _FLAG,
    False,
    "Whether a commit deletes the metadata files it no longer tracks",
)
WRITE_PARTITION_SUMMARY_LIMIT = _of.of(
    "write.summary.partition-limit", _COUNT, 0, "Changed partitions up to which a snapshot's summary lists them"
)

_of = _Section("Column metrics", _table)
DEFAULT_METRICS_MODE = _of.of(
    "write.metadata.metrics.default", Mode(), TRUNCATE_16, "Metrics mode of columns without their own"
)
METRICS_MAX_INFERRED_COLUMN_DEFAULTS = _of.of(
    "write.metadata.metrics.max-inferred-column-defaults",
    _COUNT,
    100,
    "Columns that get the default mode if it is not set; the rest get none",
)
METRICS_MODE_COLUMN: ColumnProperty[MetricsMode | None] = _of.column(
    "write.metadata.metrics.column.", Mode(), None, "Metrics mode of one column", note="the table's default mode"
)

_of = _Section("Locations", _table)
WRITE_DATA_LOCATION = _of.unset("write.data.path", _LOCATION, "Folder of new data files", note="`<table>/data`")
WRITE_METADATA_LOCATION = _of.unset(
    "write.metadata.path", _LOCATION, "Folder of new metadata files", note="`<table>/metadata`"
)
OBJECT_STORE_ENABLED = _of.of(
    "write.object-storage.enabled",
    _FLAG,
    False,
    "Whether paths of data files start with a hash, to spread load over object storage",
)
OBJECT_STORE_PARTITIONED_PATHS = _of.of(
    "write.object-storage.partitioned-paths", _FLAG, True, "Whether hashed paths contain the partition values"
)
LOCATION_PROVIDER_IMPL = _of.unset(
    "write.location-provider.impl",
    Text("a Java class"),
    "Java class that names data files; writes are refused, since Java classes are not supported",
)

_of = _Section("Write", _table)
DEFAULT_FILE_FORMAT = _of.of("write.format.default", _FORMAT, "parquet", "Format of data files")
DELETE_DEFAULT_FILE_FORMAT = _of.like("write.delete.format.default", DEFAULT_FILE_FORMAT)
WRITE_TARGET_FILE_SIZE_BYTES = _of.of("write.target-file-size-bytes", _BYTES, 512 * MB, "Target size of data files")
DELETE_TARGET_FILE_SIZE_BYTES = _of.of(
    "write.delete.target-file-size-bytes", _BYTES, 64 * MB, "Target size of delete files"
)
WRITE_DISTRIBUTION_MODE = _of.unset(
    "write.distribution-mode",
    _DISTRIBUTION,
    "How rows are distributed before they are written",
    note="range if sorted, hash if partitioned, else none",
)
DELETE_DISTRIBUTION_MODE = _of.unset(
    "write.delete.distribution-mode", _DISTRIBUTION, "The same for DELETE", note="hash"
)
UPDATE_DISTRIBUTION_MODE = _of.unset(
    "write.update.distribution-mode", _DISTRIBUTION, "The same for UPDATE", note="hash"
)
MERGE_DISTRIBUTION_MODE = _of.unset(
    "write.merge.distribution-mode", _DISTRIBUTION, "The same for MERGE", note="hash if partitioned, else none"
)
DELETE_MODE = _of.of(
    "write.delete.mode", _ROW_LEVEL, "copy-on-write", "How DELETE changes files; merge-on-read needs format version 2"
)
UPDATE_MODE = _of.of(
    "write.update.mode", _ROW_LEVEL, "copy-on-write", "How UPDATE changes files; merge-on-read needs format version 2"
)
MERGE_MODE = _of.of(
    "write.merge.mode", _ROW_LEVEL, "copy-on-write", "How MERGE changes files; merge-on-read needs format version 2"
)
DELETE_ISOLATION_LEVEL = _of.of(
    "write.delete.isolation-level", _ISOLATION, "serializable", "What concurrent changes make a DELETE fail"
)
UPDATE_ISOLATION_LEVEL = _of.of(
    "write.update.isolation-level", _ISOLATION, "serializable", "What concurrent changes make an UPDATE fail"
)
MERGE_ISOLATION_LEVEL = _of.of(
    "write.merge.isolation-level", _ISOLATION, "serializable", "What concurrent changes make a MERGE fail"
)
DELETE_GRANULARITY = _of.of(
    "write.delete.granularity",
    _GRANULARITY,
    "file",
    "Whether a position delete file is for one data file or for a partition",
    note="file, as in Iceberg Java on Spark, although its documentation says partition",
)
WRITE_AUDIT_PUBLISH_ENABLED = _of.of(
    "write.wap.enabled", _FLAG, False, "Whether writes may be staged for audit and published later"
)
SPARK_FANOUT_ENABLED = _of.unset(
    "write.spark.fanout.enabled",
    _FLAG,
    "Whether writers keep a file open for each partition instead of sorting rows",
    note="on if the table has no sort order",
)
SPARK_ACCEPT_ANY_SCHEMA = _of.of(
    "write.spark.accept-any-schema",
    _FLAG,
    False,
    "Whether writes with columns that the table lacks are accepted, to merge schemas",
)
SPARK_AUTO_SCHEMA_EVOLUTION = _of.of(
    "write.spark.auto-schema-evolution.enabled",
    _FLAG,
    True,
    "Whether MERGE WITH SCHEMA EVOLUTION may change the schema",
)
SPARK_ADVISORY_PARTITION_SIZE_BYTES = _of.unset(
    "write.spark.advisory-partition-size-bytes",
    _BYTES,
    "Size of the partitions Spark writes from",
    note="from the codec and 128 MB of data",
)
UPSERT_ENABLED = _of.of("write.upsert.enabled", _FLAG, False, "Used by Flink only")

_of = _Section("Parquet", _table)
PARQUET_ROW_GROUP_SIZE_BYTES = _of.of("write.parquet.row-group-size-bytes", _INT_BYTES, 128 * MB, "Size of a row group")
PARQUET_ROW_GROUP_SIZE_TRACK_UNCOMPRESSED = _of.of(
    "write.parquet.row-group-size-track-uncompressed",
    _FLAG,
    False,
    "Whether the size of a row group counts bytes before compression",
)
PARQUET_PAGE_SIZE_BYTES = _of.of("write.parquet.page-size-bytes", _INT_BYTES, MB, "Size of a page")
PARQUET_PAGE_ROW_LIMIT = _of.of("write.parquet.page-row-limit", _POSITIVE, 20_000, "Most rows in a page")
PARQUET_PAGE_VERSION = _of.of("write.parquet.page-version", _PAGE_VERSION, "v1", "Version of data pages")
PARQUET_DICT_SIZE_BYTES = _of.of("write.parquet.dict-size-bytes", _INT_BYTES, 2 * MB, "Most bytes in a dictionary page")
PARQUET_COMPRESSION = _of.of(
    "write.parquet.compression-codec",
    _PARQUET_CODEC,
    "gzip",
    "Codec of Parquet files",
    note="gzip; new tables are created with zstd set",
)
PARQUET_COMPRESSION_LEVEL = _of.unset("write.parquet.compression-level", _LEVEL, "Level of the codec")
PARQUET_ROW_GROUP_CHECK_MIN_RECORD_COUNT = _of.of(
    "write.parquet.row-group-check-min-record-count",
    _POSITIVE,
    100,
    "Fewest rows between two checks of a row group's size",
)
PARQUET_ROW_GROUP_CHECK_MAX_RECORD_COUNT = _of.of(
    "write.parquet.row-group-check-max-record-count",
    _POSITIVE,
    10_000,
    "Most rows between two checks of a row group's size",
)
PARQUET_SHRED_VARIANTS = _of.of(
    "write.parquet.shred-variants", _FLAG, False, "Whether variants are written with typed columns for common fields"
)
PARQUET_VARIANT_BUFFER_SIZE = _of.of(
    "write.parquet.variant-inference-buffer-size", _POSITIVE, 100, "Rows sampled to choose those columns"
)
PARQUET_BLOOM_FILTER_MAX_BYTES = _of.of(
    "write.parquet.bloom-filter-max-bytes", _INT_BYTES, MB, "Most bytes in a bloom filter"
)
PARQUET_BLOOM_FILTER_ADAPTIVE_ENABLED = _of.of(
    "write.parquet.bloom-filter-adaptive-enabled",
    _FLAG,
    False,
    "Whether bloom filters have the smallest size that satisfies their rate",
)
PARQUET_BLOOM_FILTER_COLUMN_ENABLED = _of.column(
    "write.parquet.bloom-filter-enabled.column.", _FLAG, False, "Whether one column gets a bloom filter"
)
PARQUET_BLOOM_FILTER_COLUMN_FPP = _of.column(
    "write.parquet.bloom-filter-fpp.column.", Ratio(), 0.01, "Rate of false positives of one column's bloom filter"
)
PARQUET_BLOOM_FILTER_COLUMN_NDV: ColumnProperty[int | None] = _of.column(
    "write.parquet.bloom-filter-ndv.column.",
    Whole(1, LONG_MAX),
    None,
    "Expected number of distinct values in one column",
)
PARQUET_COLUMN_STATS_ENABLED = _of.column(
    "write.parquet.stats-enabled.column.", _FLAG, True, "Whether one column gets statistics in the file"
)
PARQUET_DICT_ENCODING_COLUMN_ENABLED = _of.column(
    "write.parquet.dict-encoding-enabled.column.", _FLAG, True, "Whether one column is written with a dictionary"
)
DELETE_PARQUET_ROW_GROUP_SIZE_BYTES = _of.like(
    "write.delete.parquet.row-group-size-bytes", PARQUET_ROW_GROUP_SIZE_BYTES
)
DELETE_PARQUET_PAGE_SIZE_BYTES = _of.like("write.delete.parquet.page-size-bytes", PARQUET_PAGE_SIZE_BYTES)
DELETE_PARQUET_PAGE_ROW_LIMIT = _of.like("write.delete.parquet.page-row-limit", PARQUET_PAGE_ROW_LIMIT)
DELETE_PARQUET_PAGE_VERSION = _of.like("write.delete.parquet.page-version", PARQUET_PAGE_VERSION)
DELETE_PARQUET_DICT_SIZE_BYTES = _of.like("write.delete.parquet.dict-size-bytes", PARQUET_DICT_SIZE_BYTES)
DELETE_PARQUET_COMPRESSION = _of.like("write.delete.parquet.compression-codec", PARQUET_COMPRESSION)
DELETE_PARQUET_COMPRESSION_LEVEL = _of.like("write.delete.parquet.compression-level", PARQUET_COMPRESSION_LEVEL)
DELETE_PARQUET_ROW_GROUP_CHECK_MIN_RECORD_COUNT = _of.like(
    "write.delete.parquet.row-group-check-min-record-count", PARQUET_ROW_GROUP_CHECK_MIN_RECORD_COUNT
)
DELETE_PARQUET_ROW_GROUP_CHECK_MAX_RECORD_COUNT = _of.like(
    "write.delete.parquet.row-group-check-max-record-count", PARQUET_ROW_GROUP_CHECK_MAX_RECORD_COUNT
)

_of = _Section("Avro and ORC", _table)
AVRO_COMPRESSION = _of.of("write.avro.compression-codec", _AVRO_CODEC, "gzip", "Codec of Avro files")
AVRO_COMPRESSION_LEVEL = _of.unset("write.avro.compression-level", _LEVEL, "Level of the codec")
DELETE_AVRO_COMPRESSION = _of.like("write.delete.avro.compression-codec", AVRO_COMPRESSION)
DELETE_AVRO_COMPRESSION_LEVEL = _of.like("write.delete.avro.compression-level", AVRO_COMPRESSION_LEVEL)
ORC_STRIPE_SIZE_BYTES = _of.of("write.orc.stripe-size-bytes", _BYTES, 64 * MB, "Size of a stripe")
ORC_BLOCK_SIZE_BYTES = _of.of("write.orc.block-size-bytes", _BYTES, 256 * MB, "Size of a file system block")
ORC_WRITE_BATCH_SIZE = _of.of("write.orc.vectorized.batch-size", _POSITIVE, 1024, "Rows written at a time")
ORC_COMPRESSION = _of.of("write.orc.compression-codec", _ORC_CODEC, "zlib", "Codec of ORC files")
ORC_COMPRESSION_STRATEGY = _of.of(
    "write.orc.compression-strategy", _ORC_STRATEGY, "speed", "Whether the codec favours speed or size"
)
ORC_BLOOM_FILTER_COLUMNS: Property[tuple[str, ...]] = _of.of(
    "write.orc.bloom.filter.columns", Names("column names separated by commas"), (), "Columns that get a bloom filter"
)
ORC_BLOOM_FILTER_FPP = _of.of(
    "write.orc.bloom.filter.fpp", Ratio(), 0.05, "Rate of false positives of the bloom filters"
)
DELETE_ORC_STRIPE_SIZE_BYTES = _of.like("write.delete.orc.stripe-size-bytes", ORC_STRIPE_SIZE_BYTES)
DELETE_ORC_BLOCK_SIZE_BYTES = _of.like("write.delete.orc.block-size-bytes", ORC_BLOCK_SIZE_BYTES)
DELETE_ORC_WRITE_BATCH_SIZE = _of.like("write.delete.orc.vectorized.batch-size", ORC_WRITE_BATCH_SIZE)
DELETE_ORC_COMPRESSION = _of.like("write.delete.orc.compression-codec", ORC_COMPRESSION)
DELETE_ORC_COMPRESSION_STRATEGY = _of.like("write.delete.orc.compression-strategy", ORC_COMPRESSION_STRATEGY)

_of = _Section("Read", _table)
SPLIT_SIZE = _of.of("read.split.target-size", _BYTES, 128 * MB, "Target size of the data that one task reads")
METADATA_SPLIT_SIZE = _of.of(
    "read.split.metadata-target-size", _BYTES, 32 * MB, "Target size of the metadata that one task reads"
)
SPLIT_LOOKBACK = _of.of("read.split.planning-lookback", _POSITIVE, 10, "Groups kept open while splits are packed")
SPLIT_OPEN_FILE_COST = _of.of(
    "read.split.open-file-cost", Whole(0, LONG_MAX, "bytes"), 4 * MB, "Cost of opening a file, in bytes"
)
ADAPTIVE_SPLIT_SIZE_ENABLED = _of.of(
    "read.split.adaptive-size.enabled", _FLAG, True, "Whether splits shrink so that small scans still use every core"
)
DATA_PLANNING_MODE = _of.of("read.data-planning-mode", _PLANNING, "auto", "Where data manifests are planned")
DELETE_PLANNING_MODE = _of.of("read.delete-planning-mode", _PLANNING, "auto", "Where delete manifests are planned")
PARQUET_VECTORIZATION_ENABLED = _of.of(
    "read.parquet.vectorization.enabled", _FLAG, True, "Whether Parquet is read in batches"
)
PARQUET_BATCH_SIZE = _of.of("read.parquet.vectorization.batch-size", _POSITIVE, 5000, "Rows in a batch")
ORC_VECTORIZATION_ENABLED = _of.of("read.orc.vectorization.enabled", _FLAG, False, "Whether ORC is read in batches")
ORC_BATCH_SIZE = _of.of("read.orc.vectorization.batch-size", _POSITIVE, 5000, "Rows in a batch")

_of = _Section("Encryption and Hive", _table)
ENCRYPTION_TABLE_KEY = _of.unset("encryption.key-id", Text("a key's id"), "Id of the table's master key")
ENCRYPTION_DEK_LENGTH = _of.of(
    "encryption.data-key-length", OneNumberOf((16, 24, 32), "bytes"), 16, "Length of the keys that encrypt files"
)
ENGINE_HIVE_ENABLED = _of.of("engine.hive.enabled", _FLAG, False, "Whether Hive may query a table of a Hive Metastore")
HIVE_LOCK_ENABLED = _of.of(
    "engine.hive.lock-enabled", _FLAG, True, "Whether commits hold the lock of a table in a Hive Metastore"
)

_of = _Section("Views", _views)
VIEW_COMMENT = _of.unset("comment", AnyText("any text"), "What the view is for")
VIEW_VERSION_HISTORY_SIZE = _of.of("version.history.num-entries", _POSITIVE, 10, "Number of versions that a view keeps")
VIEW_REPLACE_DROP_DIALECT_ALLOWED = _of.of(
    "replace.drop-dialect.allowed", _FLAG, False, "Whether a new version may lack an SQL dialect of the current one"
)
VIEW_METADATA_COMPRESSION = _of.of(
    "write.metadata.compression-codec", _METADATA_CODEC, "gzip", "Codec of metadata files"
)
VIEW_METADATA_LOCATION = _of.unset(
    "write.metadata.path", _LOCATION, "Folder of new metadata files", note="`<view>/metadata`"
)

_views += [
    COMMIT_NUM_RETRIES,
    COMMIT_MIN_RETRY_WAIT_MS,
    COMMIT_MAX_RETRY_WAIT_MS,
    COMMIT_TOTAL_RETRY_TIME_MS,
]

TABLE_PROPERTIES: Mapping[str, Property[Any]] = FrozenMap({prop.name: prop for prop in _table})
"""All table properties, by name."""
COLUMN_PROPERTIES: Mapping[str, ColumnProperty[Any]] = FrozenMap({column.prefix: column for column in _columns})
"""All families of column properties, by prefix."""
VIEW_PROPERTIES: Mapping[str, Property[Any]] = FrozenMap({view.name: view for view in _views})
"""All view properties, by name."""

RESERVED_PROPERTIES = frozenset(
    {
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names that represent the table's state; they are never stored as properties."""

RETIRED_PROPERTIES: Mapping[str, str] = FrozenMap(
    {"write.object-storage.path": "write.data.path", "write.folder-storage.path": "write.data.path"}
)
"""Properties that no longer work, with their replacements; a table that relies on one cannot be written."""


def without_reserved(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties without reserved names."""
    return {key: value for key, value in properties.items() if key not in RESERVED_PROPERTIES}


def properties_for_new_table(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties to store in a new table: the requested ones and defaults for new tables."""
    return {PARQUET_COMPRESSION.name: "zstd", **without_reserved(properties)}


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse invalid property values when they are set, rather than when they are used."""
    _check(properties, TABLE_PROPERTIES)


def check_view_properties(properties: Mapping[str, str]) -> None:
    """Refuse invalid view property values when they are set, rather than when they are used."""
    _check(properties, VIEW_PROPERTIES, columns=())


def check_retired(properties: Mapping[str, str], names: Iterable[str] = RETIRED_PROPERTIES) -> None:
    """Refuse properties that no longer work, if an operation would rely on them."""
    for name in names:
        if name in properties:
            raise InvalidPropertyError(
                f"Cannot use the property {name}: it no longer works", hint=f"Set {RETIRED_PROPERTIES[name]} instead."
            )


def _check(
    properties: Mapping[str, str],
    listed: Mapping[str, Property[Any]],
    columns: Iterable[ColumnProperty[Any]] = tuple(_columns),
) -> None:
    for key, text in properties.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise InvalidPropertyError(
                f"Cannot use the property {key!r}: keys and values are text, this is {key!r}: {text!r}"
            )
        prop = listed.get(key)
        if prop is not None:
            parse_value(key, text, prop.value_type)
            continue
        family = next((column for column in columns if key.startswith(column.prefix)), None)
        if family is not None:
            parse_value(key, text, family.value_type)
        elif key not in RETIRED_PROPERTIES:
            check_spelling(key, listed)


def check_spelling(key: str, known: Mapping[str, Property[Any]] = TABLE_PROPERTIES) -> None:
    """Refuse a name that differs from a listed one only by a letter or two; other names are accepted."""
    if key in known:
        return
    near = get_close_matches(key, known, n=1, cutoff=0.93) if "." in key else []
    if near:
        raise InvalidPropertyError(
            f"Cannot use the property {key}: there is no such property", hint=f"Did you mean {near[0]}?"
        )
