"""Every procedure, declared once: what `CALL lake.system.<name>(…)` takes and answers, and what the terminal offers.

Names, parameters and answers are Iceberg Java's; what is frazil's own comes last. A procedure of `t.maintain` has the
parameters that are declared here, under the same names or under `verb`. Nothing is run here: `sessions/run_call.py`
runs calls, `cli/maintain_commands.py` makes commands, `tests/unit/maintenance/test_procedures.py` holds verbs and the
page docs/sql.md to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure; its type is in Spark's words."""

    name: str
    type: str
    doc: str
    is_required: bool = False
    default: str | None = None
    """What it is where it is not given, if that can be said in a word."""
    verb: str | None = None
    """What Python's verb calls it, where that is another name."""
    option: str | None = None
    """What the terminal calls one value of it, where that is another name."""
    is_for_call: bool = True
    is_for_terminal: bool = True
    changes_nothing: bool = False
    """Whether it is there for Iceberg Java's sake only."""

    @property
    def python_name(self) -> str:
        """The name under which Python's verb takes it."""
        return self.verb or self.name


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure: what it takes, and what it answers. A dry run answers `dry_columns` as well: what would be saved."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    columns: tuple[str, ...]
    dry_columns: tuple[str, ...] = ()
    is_for_terminal: bool = True

    @property
    def call_parameters(self) -> tuple[Parameter, ...]:
        """Those that CALL takes, in their order."""
        return tuple(parameter for parameter in self.parameters if parameter.is_for_call)

    def columns_for(self, values: Mapping[str, object]) -> tuple[str, ...]:
        """Return the columns of the answer to some arguments."""
        return self.columns + (self.dry_columns if values.get(DRY_RUN.name) else ())


_TABLE = Parameter("table", "string", "The table: db.events", is_required=True)
_BRANCH = Parameter("branch", "string", "The branch to work on", default="main")
DRY_RUN: Final = Parameter("dry_run", "boolean", "Change nothing, and show what would happen", default="false")
_WHERE = Parameter("where", "string", "Only files that can hold such rows")
_OPTIONS = Parameter("options", "map<string,string>", "Options, by name", option="option")
_PROPERTIES = Parameter("properties", "map<string,string>", "Properties of the new table", option="property")
_SNAPSHOT = Parameter("snapshot_id", "bigint", "The snapshot; the current one by default")
_THIS_SNAPSHOT = Parameter("snapshot_id", "bigint", "The snapshot", is_required=True)
_CONCURRENT = Parameter("max_concurrent_deletes", "int", "How many files to delete at once")
_DELETE_ROOTS = Parameter(
    "delete_roots", "array<string>", "A further folder that is the table's own", option="delete-root"
)
_STREAM = Parameter(
    "stream_results", "boolean", "For Iceberg Java", is_for_terminal=False, changes_nothing=True
)  # fmt: skip
_PARALLELISM = Parameter("parallelism", "int", "How many files to look at at once", is_for_terminal=False)
_IGNORE_MISSING = Parameter(
    "ignore_missing_files", "boolean", "Leave out files that go while they are looked at", default="false"
)
_MOVED = ("previous_snapshot_id bigint", "current_snapshot_id bigint")
_PICKED = ("source_snapshot_id bigint", "current_snapshot_id bigint")

_ALL = (
    Procedure(
        "rollback_to_snapshot",
        "Go back to a snapshot of the table's own past.",
        (_TABLE, _THIS_SNAPSHOT),
        _MOVED,
        is_for_terminal=False,
    ),
    Procedure(
        "rollback_to_timestamp",
        "Go back to the snapshot that was current at a time.",
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
            Parameter("ref", "string", "A branch or a tag that has it"),
        ),
        _MOVED,
        is_for_terminal=False,
    ),
    Procedure(
        "cherrypick_snapshot",
        "Bring the changes of a snapshot into the current one.",
        (_TABLE, _THIS_SNAPSHOT),
        _PICKED,
        is_for_terminal=False,
    ),
    Procedure(
        "publish_changes",
        "Bring the changes that were written under an id into the current snapshot.",
        (_TABLE, Parameter("wap_id", "string", "The id", is_required=True)),
        _PICKED,
        is_for_terminal=False,
    ),
    Procedure(
        "fast_forward",
        "Move a branch to where another one is, which goes on from it.",
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
        "Forget old snapshots and delete the files that only they lead to.",
        (
            _TABLE,
            Parameter("older_than", "timestamp", "A time: 7d, yesterday, 2024-06-01, 2024-06-01T00:00:00Z"),
            Parameter("retain_last", "int", "Keep so many of each branch"),
            _CONCURRENT,
            _STREAM,
            Parameter("snapshot_ids", "array<bigint>", "This snapshot", option="snapshot-id"),
            Parameter(
                "clean_expired_metadata", "boolean", "Forget schemas and specs that nothing uses then", default="false"
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
        "List a snapshot and what came before it.",
        (_TABLE, _SNAPSHOT),
        ("snapshot_id bigint", "timestamp bigint"),
        is_for_terminal=False,
    ),
    Procedure(
        "register_table",
        "Take a table into the lake by its metadata file.",
        (_TABLE, Parameter("metadata_file", "string", "The metadata file", is_required=True)),
        ("current_snapshot_id bigint", "total_records_count bigint", "total_data_files_count bigint"),
        is_for_terminal=False,
    ),
    Procedure(
        "remove_orphan_files",
        "Delete files in the table's folder that nothing leads to.",
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
                "A view of files to look at, with file_path and last_modified, in place of a listing",
                verb="file_list",
                is_for_terminal=False,
            ),
            Parameter(
                "equal_schemes", "map<string,string>", "s3a=s3: the first means the second", option="equal-scheme"
            ),
            Parameter(
                "equal_authorities",
                "map<string,string>",
                "OLD=NEW: the first means the second",
                option="equal-authority",
            ),
            Parameter(
                "prefix_mismatch_mode",
                "string",
                "Files that differ in scheme or authority only: ERROR, IGNORE or DELETE",
                default="ERROR",
            ),
            Parameter("prefix_listing", "boolean", "For Iceberg Java", is_for_terminal=False, changes_nothing=True),
            Parameter(
                "stream_results", "boolean", "Answer 20,000 files at most", default="false", is_for_terminal=False
            ),
            _DELETE_ROOTS,
            Parameter("old_metadata", "boolean", "Also metadata files that the log has forgotten", default="false"),
        ),
        ("orphan_file_location string",),
    ),
    Procedure(
        "rewrite_data_files",
        "Make large files of small ones, and apply deletes.",
        (
            _TABLE,
            Parameter("strategy", "string", "binpack or sort", default="binpack"),
            Parameter(
                "sort_order",
                "string",
                "An order, or zorder(a, b); the table's own where not given",
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
        "Write a table of the partitions' counts.",
        (_TABLE, _SNAPSHOT, DRY_RUN),
        ("partition_statistics_file string",),
    ),
    Procedure(
        "create_changelog_view",
        "Make a temporary view of the changes of a table's rows.",
        (
            _TABLE,
            Parameter("changelog_view", "string", "The view's name; <table>_changes by default"),
            Parameter("options", "map<string,string>", "Options of the read: which snapshots, or times"),
            Parameter("compute_updates", "boolean", "Show a row that was deleted and came back as an update"),
            Parameter("identifier_columns", "array<string>", "The columns that tell rows apart"),
            Parameter("net_changes", "boolean", "Leave out what came and went"),
        ),
        ("changelog_view string",),
        is_for_terminal=False,
    ),
    Procedure(
        "add_files",
        "Take files of others into a table, where they are.",
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
            Parameter("partition_filter", "map<string,string>", "Only files of such folders", option="partition"),
            Parameter("check_duplicate_files", "boolean", "Refuse files that the table has already", default="true"),
            _PARALLELISM,
            DRY_RUN,
            Parameter("file_format", "string", "parquet, orc or avro; each file's own by default", is_for_call=False),
        ),
        ("added_files_count bigint", "changed_partition_count bigint"),
    ),
    Procedure(
        "snapshot",
        "Make a table over the files of another, which are read and never deleted.",
        (
            Parameter(
                "source_table",
                "string",
                "A table of Spark's own catalog, or parquet.`/a/folder`",
                is_required=True,
                option="SOURCE",
            ),
            _TABLE,
            Parameter("location", "string", "Where the new table keeps its own files"),
            _PROPERTIES,
            _PARALLELISM,
            _IGNORE_MISSING,
            DRY_RUN,
        ),
        ("imported_files_count bigint",),
    ),
    Procedure(
        "migrate",
        "Turn a table of Spark's own catalog into one of the lake, over its files.",
        (
            Parameter("table", "string", "A table of Spark's own catalog: db.events", is_required=True),
            _PROPERTIES,
            Parameter("drop_backup", "boolean", "Keep no name for the old table", default="false"),
            Parameter("backup_table_name", "string", "The old table's name; <name>_BACKUP_ by default"),
            _PARALLELISM,
            _IGNORE_MISSING,
            DRY_RUN,
        ),
        ("migrated_files_count bigint",),
    ),
    Procedure(
        "rewrite_table_path",
        "Write a table's metadata for another location, and list the files to copy.",
        (
            _TABLE,
            Parameter(
                "source_prefix", "string", "What all paths of the table start with", is_required=True, option="SOURCE"
            ),
            Parameter(
                "target_prefix", "string", "What they start with after the copy", is_required=True, option="TARGET"
            ),
            Parameter("start_version", "string", "The metadata file that was copied before: only what came after it"),
            Parameter("end_version", "string", "The metadata file to copy; the current one by default"),
            Parameter("staging_location", "string", "Where new metadata is kept before it is copied"),
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
        "Make few delete files, or deletion vectors, of many.",
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
            Parameter("use_caching", "boolean", "For Iceberg Java", is_for_terminal=False, changes_nothing=True),
            Parameter("spec_id", "int", "Only manifests of one partition spec"),
            Parameter("sort_by", "array<string>", "A partition field that comes first", option="sort-by"),
            _BRANCH,
            DRY_RUN,
        ),
        ("rewritten_manifests_count int", "added_manifests_count int"),
    ),
    Procedure(
        "convert_equality_deletes",
        "Make position deletes, or deletion vectors, of equality deletes.",
        (_TABLE, _BRANCH, DRY_RUN),
        ("converted_delete_files_count int", "added_delete_files_count int", "deleted_rows_count bigint"),
    ),
    Procedure(
        "remove_dangling_deletes",
        "Remove delete files that apply to no data file any more.",
        (_TABLE, _BRANCH, DRY_RUN),
        ("removed_delete_files_count int",),
    ),
    Procedure(
        "optimize",
        "Do whatever is worth doing.",
        (
            _TABLE,
            Parameter("budget_bytes", "bigint", "Rewrite at most so many bytes"),
            Parameter("budget_minutes", "double", "Begin nothing after so many minutes"),
            DRY_RUN,
        ),
        ("procedure string", "reason string", "result string"),
    ),
)

PROCEDURES: Final[Mapping[str, Procedure]] = {procedure.name: procedure for procedure in _ALL}
