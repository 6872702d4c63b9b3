"""All procedures, each declared once: parameters and results of `CALL lake.system.<name>(…)`, and terminal commands.

Names, parameters and results are Iceberg Java's; additions of frazil come last. A procedure of `t.maintain` has the
parameters that are declared here, under the same names or under `verb`. Nothing is run here: `sessions/run_call.py`
runs calls, `cli/maintain_commands.py` builds commands, and `tests/unit/maintenance/test_procedures.py` checks that
verbs and docs/sql.md agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure, with its Spark type."""

    name: str
    type: str
    doc: str
    is_required: bool = False
    default: str | None = None
    """The default, if it is a single word."""
    verb: str | None = None
    """The name in the Python verb, if it differs."""
    option: str | None = None
    """The name of a single value in the terminal, if it differs."""
    is_for_call: bool = True
    is_for_terminal: bool = True
    is_ignored: bool = False
    """Whether it is accepted only for compatibility with Iceberg Java."""

    @property
    def python_name(self) -> str:
        """The name of the parameter in the Python verb."""
        return self.verb or self.name


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure with its parameters and results. A dry run also returns `dry_columns`: what would be saved."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    columns: tuple[str, ...]
    dry_columns: tuple[str, ...] = ()
    is_for_terminal: bool = True

    @property
    def call_parameters(self) -> tuple[Parameter, ...]:
        """The parameters of CALL, in order."""
        return tuple(parameter for parameter in self.parameters if parameter.is_for_call)

    def columns_for(self, values: Mapping[str, object]) -> tuple[str, ...]:
        """Return the columns of the result for given arguments."""
        return self.columns + (self.dry_columns if values.get(DRY_RUN.name) else ())


_TABLE = Parameter("table", "string", "The table: db.events", is_required=True)
_BRANCH = Parameter("branch", "string", "The branch to work on", default="main")
DRY_RUN: Final = Parameter("dry_run", "boolean", "Change nothing, and show what would happen", default="false")
_WHERE = Parameter("where", "string", "Only files that can hold such rows")
_OPTIONS = Parameter("options", "map<string,string>", "Options, by name", option="option")
_PROPERTIES = Parameter("properties", "map<string,string>", "Properties of the new table", option="property")
_SNAPSHOT = Parameter("snapshot_id", "bigint", "The snapshot; the current one by default")
_THIS_SNAPSHOT = Parameter("snapshot_id", "bigint", "The snapshot", is_required=True)
_CONCURRENT = Parameter("max_concurrent_deletes", "int", "The number of files to delete at once")
_DELETE_ROOTS = Parameter("delete_roots", "array<string>", "A further folder that the table owns", option="delete-root")
_STREAM = Parameter(
    "stream_results", "boolean", "For Iceberg Java", is_for_terminal=False, is_ignored=True
)  # fmt: skip
_PARALLELISM = Parameter("parallelism", "int", "The number of files to read at once", is_for_terminal=False)
_IGNORE_MISSING = Parameter(
    "ignore_missing_files", "boolean", "Leave out files that are deleted meanwhile", default="false"
)
_MOVED = ("previous_snapshot_id bigint", "current_snapshot_id bigint")
_PICKED = ("source_snapshot_id bigint", "current_snapshot_id bigint")

_ALL = (
    Procedure(
        "rollback_to_snapshot",
        "Roll back to an earlier snapshot of the table's history.",
        (_TABLE, _THIS_SNAPSHOT),
        _MOVED,
        is_for_terminal=False,
    ),
    Procedure(
        "rollback_to_timestamp",
        "Roll back to the snapshot that was current at a time.",
        (_TABLE, Parameter("timestamp", "timestamp", "The time", is_required=True)),
        _MOVED,
        is_for_terminal=False,
    ),
    Procedure(
        "set_current_snapshot",
        "Make any snapshot the current one.",
        (
            _TABLE,
            Parameter("snapshot_id", "bigint", "The snapshot"),
            Parameter("ref", "string", "A branch or tag at it"),
        ),
        _MOVED,
        is_for_terminal=False,
    ),
    Procedure(
        "cherrypick_snapshot",
        "Apply the changes of a snapshot to the current one.",
        (_TABLE, _THIS_SNAPSHOT),
        _PICKED,
        is_for_terminal=False,
    ),
    Procedure(
        "publish_changes",
        "Publish the changes that were staged under a write-audit-publish id.",
        (_TABLE, Parameter("wap_id", "string", "The id", is_required=True)),
        _PICKED,
        is_for_terminal=False,
    ),
    Procedure(
        "fast_forward",
        "Move a branch forward to the head of a branch that descends from it.",
        (
            _TABLE,
            Parameter("branch", "string", "The branch to move", is_required=True),
            Parameter("to", "string", "The branch that is ahead", is_required=True),
        ),
        ("branch_updated string", "previous_ref bigint", "updated_ref bigint"),
        is_for_terminal=False,
    ),
    Procedure(
        "expire_snapshots",
        "Remove old snapshots and the files that only they reference.",
        (
            _TABLE,
            Parameter("older_than", "timestamp", "A time: 7d, yesterday, 2024-06-01, 2024-06-01T00:00:00Z"),
            Parameter("retain_last", "int", "The number of snapshots to keep on each branch"),
            _CONCURRENT,
            _STREAM,
            Parameter("snapshot_ids", "array<bigint>", "This snapshot", option="snapshot-id"),
            Parameter(
                "clean_expired_metadata", "boolean", "Remove schemas and specs that are no longer used", default="false"
            ),
            DRY_RUN,
            _DELETE_ROOTS,
        ),
        (
            "deleted_data_files_count bigint",
            "deleted_position_delete_files_count bigint",
            "deleted_equality_delete_files_count bigint",
            "deleted_manifest_files_count bigint",
            "deleted_manifest_lists_count bigint",
            "deleted_statistics_files_count bigint",
        ),
        dry_columns=("deleted_bytes bigint", "kept_count bigint"),
    ),
    Procedure(
        "ancestors_of",
        "List a snapshot and its ancestors.",
        (_TABLE, _SNAPSHOT),
        ("snapshot_id bigint", "timestamp bigint"),
        is_for_terminal=False,
    ),
    Procedure(
        "register_table",
        "Register a table in the lake by its metadata file.",
        (_TABLE, Parameter("metadata_file", "string", "The metadata file", is_required=True)),
        ("current_snapshot_id bigint", "total_records_count bigint", "total_data_files_count bigint"),
        is_for_terminal=False,
    ),
    Procedure(
        "remove_orphan_files",
        "Delete unreferenced files in the table's folders.",
        (
            _TABLE,
            Parameter(
                "older_than", "timestamp", "A time: 7d, yesterday, 2024-06-01T00:00:00Z; three days ago by default"
            ),
            Parameter("location", "string", "Only this folder of the table"),
            DRY_RUN,
            _CONCURRENT,
            Parameter(
                "file_list_view",
                "string",
                "A view of files to check instead of a listing, with file_path and last_modified",
                verb="file_list",
                is_for_terminal=False,
            ),
            Parameter(
                "equal_schemes", "map<string,string>", "s3a=s3: treat the first as the second", option="equal-scheme"
            ),
            Parameter(
                "equal_authorities",
                "map<string,string>",
                "OLD=NEW: treat the first as the second",
                option="equal-authority",
            ),
            Parameter(
                "prefix_mismatch_mode",
                "string",
                "Files that differ only in scheme or authority: ERROR, IGNORE or DELETE",
                default="ERROR",
            ),
            Parameter("prefix_listing", "boolean", "For Iceberg Java", is_for_terminal=False, is_ignored=True),
            Parameter(
                "stream_results", "boolean", "Return at most 20,000 files", default="false", is_for_terminal=False
            ),
            _DELETE_ROOTS,
            Parameter("old_metadata", "boolean", "Also metadata files that are no longer in the log", default="false"),
        ),
        ("orphan_file_location string",),
    ),
    Procedure(
        "rewrite_data_files",
        "Compact small files into large ones, and apply deletes.",
        (
            _TABLE,
            Parameter("strategy", "string", "binpack or sort", default="binpack"),
            Parameter(
                "sort_order",
                "string",
                "An order, or zorder(a, b); the table's own by default",
                verb="sort_by",
                option="sort-by",
            ),
            _OPTIONS,
            _WHERE,
            _BRANCH,
            DRY_RUN,
        ),
        (
            "rewritten_data_files_count int",
            "added_data_files_count int",
            "rewritten_bytes_count bigint",
            "failed_data_files_count int",
            "removed_delete_files_count int",
        ),
    ),
    Procedure(
        "compute_table_stats",
        "Count distinct values of columns, for optimisers.",
        (
            _TABLE,
            _SNAPSHOT,
            Parameter("columns", "array<string>", "A column; all by default", option="column"),
            DRY_RUN,
        ),
        ("statistics_file string",),
    ),
    Procedure(
        "compute_partition_stats",
        "Write a file with the counts of each partition.",
        (_TABLE, _SNAPSHOT, DRY_RUN),
        ("partition_statistics_file string",),
    ),
    Procedure(
        "create_changelog_view",
        "Create a temporary view of the row changes of a table.",
        (
            _TABLE,
            Parameter("changelog_view", "string", "The view's name; <table>_changes by default"),
            Parameter("options", "map<string,string>", "Options of the read: which snapshots, or times"),
            Parameter("compute_updates", "boolean", "Show a row that was deleted and inserted again as an update"),
            Parameter("identifier_columns", "array<string>", "The columns that identify rows"),
            Parameter("net_changes", "boolean", "Leave out changes that cancel out"),
        ),
        ("changelog_view string",),
        is_for_terminal=False,
    ),
    Procedure(
        "add_files",
        "Add existing files to a table, in place.",
        (
            _TABLE,
            Parameter(
                "source_table",
                "string",
                "A folder of Parquet, ORC or Avro files, or one file",
                is_required=True,
                verb="source",
                option="FOLDER",
            ),
            Parameter("partition_filter", "map<string,string>", "Only files in these folders", option="partition"),
            Parameter("check_duplicate_files", "boolean", "Refuse files that are already in the table", default="true"),
            _PARALLELISM,
            DRY_RUN,
            Parameter("file_format", "string", "parquet, orc or avro; each file's own by default", is_for_call=False),
        ),
        ("added_files_count bigint", "changed_partition_count bigint"),
    ),
    Procedure(
        "snapshot",
        "Create a table over the files of another, which it reads and never deletes.",
        (
            Parameter(
                "source_table",
                "string",
                "A table of Spark's session catalog, or parquet.`/a/folder`",
                is_required=True,
                option="SOURCE",
            ),
            _TABLE,
            Parameter("location", "string", "The location of the new table's own files"),
            _PROPERTIES,
            _PARALLELISM,
            _IGNORE_MISSING,
            DRY_RUN,
        ),
        ("imported_files_count bigint",),
    ),
    Procedure(
        "migrate",
        "Convert a table of Spark's session catalog into a table of the lake, in place.",
        (
            Parameter("table", "string", "A table of Spark's session catalog: db.events", is_required=True),
            _PROPERTIES,
            Parameter("drop_backup", "boolean", "Do not keep the old table under another name", default="false"),
            Parameter("backup_table_name", "string", "The old table's name; <name>_BACKUP_ by default"),
            _PARALLELISM,
            _IGNORE_MISSING,
            DRY_RUN,
        ),
        ("migrated_files_count bigint",),
    ),
    Procedure(
        "rewrite_table_path",
        "Rewrite a table's metadata for another location, and list the files to copy.",
        (
            _TABLE,
            Parameter(
                "source_prefix", "string", "The prefix of all paths of the table", is_required=True, option="SOURCE"
            ),
            Parameter("target_prefix", "string", "Their prefix after the copy", is_required=True, option="TARGET"),
            Parameter("start_version", "string", "The metadata file of the last copy: only later changes"),
            Parameter("end_version", "string", "The metadata file to copy; the current one by default"),
            Parameter("staging_location", "string", "The folder for new metadata before it is copied"),
            Parameter(
                "create_file_list", "boolean", "Write the list of files to copy", default="true", is_for_terminal=False
            ),
            DRY_RUN,
        ),
        (
            "latest_version string",
            "file_list_location string",
            "rewritten_manifest_file_paths_count int",
            "rewritten_delete_file_paths_count int",
        ),
    ),
    Procedure(
        "rewrite_position_delete_files",
        "Compact delete files into fewer files or deletion vectors.",
        (_TABLE, _OPTIONS, _WHERE, _BRANCH, DRY_RUN),
        (
            "rewritten_delete_files_count int",
            "added_delete_files_count int",
            "rewritten_bytes_count bigint",
            "added_bytes_count bigint",
        ),
    ),
    Procedure(
        "rewrite_manifests",
        "Cluster manifests by partition.",
        (
            _TABLE,
            Parameter("use_caching", "boolean", "For Iceberg Java", is_for_terminal=False, is_ignored=True),
            Parameter("spec_id", "int", "Only manifests of one partition spec"),
            Parameter("sort_by", "array<string>", "A partition field to sort by first", option="sort-by"),
            _BRANCH,
            DRY_RUN,
        ),
        ("rewritten_manifests_count int", "added_manifests_count int"),
    ),
    Procedure(
        "convert_equality_deletes",
        "Convert equality deletes to position deletes or deletion vectors.",
        (_TABLE, _BRANCH, DRY_RUN),
        ("converted_delete_files_count int", "added_delete_files_count int", "deleted_rows_count bigint"),
    ),
    Procedure(
        "remove_dangling_deletes",
        "Remove delete files that no longer apply to any data file.",
        (_TABLE, _BRANCH, DRY_RUN),
        ("removed_delete_files_count int",),
    ),
    Procedure(
        "optimize",
        "Run the procedures that are worthwhile.",
        (
            _TABLE,
            Parameter("budget_bytes", "bigint", "The most bytes to rewrite"),
            Parameter("budget_minutes", "double", "The minutes after which no step is started"),
            DRY_RUN,
        ),
        ("procedure string", "reason string", "result string"),
    ),
)

PROCEDURES: Final[Mapping[str, Procedure]] = {procedure.name: procedure for procedure in _ALL}
