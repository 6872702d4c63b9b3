"""Procedures, settings and classes of the Iceberg jar that scripts use, and their replacements.

`frazil doctor` and `docs/migrate-from-the-jar.md` use these lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Fate = Literal["same", "change", "cannot"]

PROCEDURES: Final[dict[str, tuple[str, ...]]] = {
    "add_files": ("table", "source_table", "partition_filter", "check_duplicate_files", "parallelism"),
    "ancestors_of": ("table", "snapshot_id"),
    "cherrypick_snapshot": ("table", "snapshot_id"),
    "compute_partition_stats": ("table", "snapshot_id"),
    "compute_table_stats": ("table", "snapshot_id", "columns"),
    "create_changelog_view": (
        *("table", "changelog_view", "options", "compute_updates", "identifier_columns", "net_changes"),
    ),
    "expire_snapshots": (
        *("table", "older_than", "retain_last", "max_concurrent_deletes", "stream_results", "snapshot_ids"),
        "clean_expired_metadata",
    ),
    "fast_forward": ("table", "branch", "to"),
    "migrate": (*("table", "properties", "drop_backup", "backup_table_name", "parallelism", "ignore_missing_files"),),
    "publish_changes": ("table", "wap_id"),
    "register_table": ("table", "metadata_file"),
    "remove_orphan_files": (
        *("table", "older_than", "location", "dry_run", "max_concurrent_deletes", "file_list_view", "equal_schemes"),
        *("equal_authorities", "prefix_mismatch_mode", "prefix_listing", "stream_results"),
    ),
    "rewrite_data_files": ("table", "strategy", "sort_order", "options", "where", "branch"),
    "rewrite_manifests": ("table", "use_caching", "spec_id", "sort_by"),
    "rewrite_position_delete_files": ("table", "options", "where"),
    "rewrite_table_path": (
        *("table", "source_prefix", "target_prefix", "start_version", "end_version", "staging_location"),
        "create_file_list",
    ),
    "rollback_to_snapshot": ("table", "snapshot_id"),
    "rollback_to_timestamp": ("table", "timestamp"),
    "set_current_snapshot": ("table", "snapshot_id", "ref"),
    "snapshot": ("source_table", "table", "location", "properties", "parallelism", "ignore_missing_files"),
}
"""The procedures of the jar (1.12) and their arguments."""

SAME_ANSWER: Final = {
    ("expire_snapshots", "stream_results"): "deleted files are never collected on the driver",
    ("remove_orphan_files", "prefix_listing"): "storages are listed by prefix if they support it",
    ("rewrite_manifests", "use_caching"): "nothing is cached",
}
"""Arguments that change how something is done, but not the result."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text that scripts and configurations may contain, and its replacement."""

    text: str
    """A regular expression."""
    grep: str
    """The search term for people."""
    fate: Fate
    becomes: str


SETTINGS: Final = (
    Pattern(
        r"spark\.jars(\.packages)?\b.*iceberg",
        "iceberg-spark-runtime, iceberg-aws-bundle",
        "change",
        "remove it: frazil is a Python package",
    ),
    Pattern(r"IcebergSparkSessionExtensions", "IcebergSparkSessionExtensions", "change", "remove it"),
    Pattern(
        r"org\.apache\.iceberg\.spark\.SparkSessionCatalog",
        "SparkSessionCatalog",
        "cannot",
        "lakes exist beside the built-in Spark catalog: attach one under a separate name",
    ),
    Pattern(
        r"org\.apache\.iceberg\.spark\.SparkCatalog",
        "SparkCatalog",
        "change",
        "frazil.attach(spark, frazil.connect(…), name=…), or settings spark.frazil.lake.<name>.*",
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.type\W+hive\b",
        "type = hive",
        "change",
        'frazil.connect("thrift://host:9083", warehouse=…), with the same properties',
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.type\W+glue\b",
        "type = glue",
        "change",
        'frazil.connect("s3://…", catalog="glue", properties={"client.region": …})',
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.type\W+(dynamodb|nessie|bigquery)\b",
        "type = dynamodb, nessie",
        "cannot",
        "only supported through the REST protocol, if the service offers it (Nessie does)",
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.catalog-impl",
        "catalog-impl",
        "cannot",
        "Java classes are not supported: use SQLite, PostgreSQL, a folder or a REST service",
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.io-impl",
        "io-impl",
        "change",
        "remove it: the scheme of a location determines the store",
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.(type|uri|warehouse|credential|token|jdbc\.\w+|s3\.[\w.-]+|client\.[\w.-]+)",
        "spark.sql.catalog.<name>.*",
        "change",
        "arguments and properties of frazil.connect (docs/connecting.md)",
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.(cache-enabled|cache\.[\w.-]+)",
        "cache-enabled, cache.expiration-interval-ms",
        "change",
        "remove it: a statement loads its table once",
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.default-namespace",
        "default-namespace",
        "change",
        "remove it: write USE lake.db",
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.use-nullable-query-schema\W+false\b",
        "use-nullable-query-schema = false",
        "cannot",
        "columns of CREATE TABLE … AS are nullable: create the table first, with NOT NULL",
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.use-nullable-query-schema",
        "use-nullable-query-schema",
        "change",
        "remove it: columns of CREATE TABLE … AS are nullable, as in the jar",
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.hadoop\.[\w.-]+",
        "hadoop.*",
        "change",
        "credentials and endpoints of stores are properties of frazil.connect; other settings are spark.hadoop.*",
    ),
    Pattern(
        r"spark\.sql\.catalog\.\w+\.(metrics-reporter-impl|(table|view)-(default|override)\.[\w.-]+)",
        "metrics-reporter-impl, table-default.*, table-override.*, view-default.*, view-override.*",
        "cannot",
        "not supported: set properties when tables and views are created",
    ),
)

JAVA: Final = (
    Pattern(r"\bSparkActions\b", "SparkActions", "change", "t.maintain, or CALL lake.system.…"),
    Pattern(r"\bSpark3Util\b|\bSparkTableUtil\b", "Spark3Util, SparkTableUtil", "change", 'lake.table("db.t")'),
    Pattern(
        r"\b(HadoopTables|HadoopCatalog)\b",
        "HadoopTables, HadoopCatalog",
        "change",
        'frazil.connect(folder, catalog="filesystem")',
    ),
    Pattern(
        r"\b(JdbcCatalog|RESTCatalog)\b", "JdbcCatalog, RESTCatalog", "change", "frazil.connect (docs/connecting.md)"
    ),
    Pattern(
        r"\b(HiveCatalog|GlueCatalog)\b",
        "HiveCatalog, GlueCatalog",
        "change",
        "frazil.connect (docs/connecting.md)",
    ),
    Pattern(
        r"\b(DynamoDbCatalog|NessieCatalog)\b",
        "DynamoDbCatalog, NessieCatalog",
        "cannot",
        "not supported",
    ),
    Pattern(
        r"\bIcebergSpark\.registerBucketUDF\b", "IcebergSpark.registerBucketUDF", "change", "lake.system.bucket(n, c)"
    ),
    Pattern(
        r"_jvm\.org\.apache\.iceberg|\borg\.apache\.iceberg\.(?!spark\.)",
        "_jvm.org.apache.iceberg",
        "change",
        "docs/python.md",
    ),
)

COLUMNS: Final = (
    Pattern(
        r"(?i)(?<!\bas )(?<!\bselect )\b(?:varchar|(?<=[\w`<] )char)\s?\(\s?\d{1,9}\s?\)",
        "char(n), varchar(n)",
        "same",
        "string, as in the jar: the length is not enforced, and a warning says so",
    ),
)

PATTERNS: Final = (*SETTINGS, *JAVA, *COLUMNS)
