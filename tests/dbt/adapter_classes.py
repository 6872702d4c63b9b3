"""Which classes of dbt-tests-adapter are no tests of lakes, and which fail, each with its reason."""

from __future__ import annotations

from typing import Final

OF_OTHERS: Final = {
    "catalog_integrations": "dbt-spark has no catalog integrations",
    "functions": "dbt-spark has no functions",
    "grants": "dbt-spark grants on Databricks alone",
    "materialized_view": "dbt-spark has no materialized views",
    "python_model": "dbt-spark sends Python models to a cluster of Databricks",
}
"""Folders of what dbt-spark does not do by its method `session`, whatever the table's format."""

_ABSTRACT: Final = "it is to be inherited, and has no project of its own"
LEFT_OUT: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "BaseArrayUtils",
            "BaseCachingTest",
            "BaseConstraintsColumnsEqual",
            "BaseContractSqlHeader",
            "BaseCurrentTimestamp",
            "BaseDataTypeMacro",
            "BaseUtils",
            "StoreTestFailuresBase",
        ),
        _ABSTRACT,
    ),
    **dict.fromkeys(
        ("BaseClonePossible", "BaseCloneNotPossible", "BaseCloneSameSourceAndTarget", "BaseCloneSameTargetAndState"),
        "dbt-spark clones tables of Databricks alone",
    ),
    **dict.fromkeys(
        ("BaseDebugPostgres", "BaseDebugInvalidProjectPostgres", "BasePostgresColumnTypes"), "of PostgreSQL alone"
    ),
    "BaseSameAliasDifferentDatabases": "Spark's databases are its schemas",
    "BaseDropSchemaNamed": "of PostgreSQL's schemas",
    "BaseSeedSpecificFormats": "dbt-spark's own work over its 20,000 rows takes many minutes: it grows by their square",
}
"""Classes that do not run."""

_TEXT: Final = "its models name `text`, a type of PostgreSQL's that Spark does not have"
_SEED: Final = "its project begins with a table in PostgreSQL's SQL, with columns of type `text`"
_ANSWER: Final = "it compares with what dbt has on PostgreSQL: "
_HOOK: Final = "it wants a file of SQL that an adapter brings, in that adapter's dialect"
_NO_EMPTY: Final = "dbt-core 1.10 has no `--empty` for seeds"
_CAST: Final = "it writes dates as text, which Spark refuses to store as dates"
_COMMENTS: Final = "dbt-spark's catalog has no comments; they are in the tables"
FAILING: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "BaseAliases",
            "BaseSameAliasDifferentSchemas",
            "BaseConstraintQuotedColumn",
            "BaseConstraintsRollback",
            "BaseConstraintsRuntimeDdlEnforcement",
            "BaseIncrementalConstraintsColumnsEqual",
            "BaseIncrementalConstraintsRollback",
            "BaseIncrementalConstraintsRuntimeDdlEnforcement",
            "BaseModelConstraintsRuntimeEnforcement",
            "BaseTableConstraintsColumnsEqual",
            "BaseViewConstraintsColumnsEqual",
        ),
        _TEXT,
    ),
    **dict.fromkeys(
        (
            "BaseBasicSeedTests",
            "BaseSeedConfigFullRefreshOff",
            "BaseSeedConfigFullRefreshOn",
            "BaseSeedCustomSchema",
            "BaseSeedParsing",
            "BaseSeedWithEmptyDelimiter",
            "BaseSeedWithUniqueDelimiter",
            "BaseSeedWithWrongDelimiter",
            "BaseSimpleSeedWithBOM",
        ),
        _SEED,
    ),
    **dict.fromkeys(
        ("BaseReplace", "BaseRight", "BaseSplitPart", "StoreTestFailuresAsGeneric"),
        "dbt-spark's method `session` writes an empty cell of a seed as the text `None`",
    ),
    "BaseListagg": "it asks for an order, which dbt-spark's macro passes over",
    "BaseGetIntervalsBetween": "its macro comes out as `None` in dbt-spark",
    "BaseCurrentTimestampAware.test_current_timestamp_type": "PySpark's times have no zone",
    "BaseCurrentTimestamps": _ANSWER + "types of columns",
    "BaseUnitTestQuotedReservedWordColumnNames": "it quotes a name as PostgreSQL does",
    "BaseUnitTestingTypes": "it names types as PostgreSQL does",
    "BaseTypeFloat": "dbt-spark makes seeds of floats doubles",
    "BaseTypeInt": "dbt-spark makes seeds of whole numbers `bigint`",
    "BaseSimpleSeedColumnOverride": "its seeds have columns of type `text`",
    **dict.fromkeys(
        (
            "BaseSnapshotColumnNames",
            "BaseSnapshotColumnNamesFromDbtProject",
            "BaseSnapshotDbtValidToCurrent",
            "BaseSnapshotInvalidColumnNames",
            "BaseSnapshotMultiUniqueKey",
            "BaseSnapshotNewRecordCheckMode",
            "BaseSnapshotNewRecordTimestampMode",
        ),
        "its tables are PostgreSQL's, with columns of types `varchar` and `text`",
    ),
    **dict.fromkeys(
        (
            "BaseSnapshotEphemeralHardDeletes",
            "BaseSnapshotNewColumnSpecificCheckCols",
            "BaseSnapshotNewColumnTimestampStrategy",
            "BaseSnapshotNewColumnWithDeletes",
        ),
        "it writes times as text, which Spark refuses to store as times",
    ),
    "BaseSnapshotNewRecordDbtValidToCurrent": "it names a database, which dbt-spark does not have",
    **dict.fromkeys(("BaseDocsGenerate", "BaseDocsGenReferences"), _ANSWER + "owners, and types of relations"),
    **dict.fromkeys(("BaseEphemeralMulti", "BaseEphemeralNested"), _ANSWER + "the compiled statement"),
    "BaseShowDoesNotHandleDoubleLimit": _ANSWER + "the message about a statement",
    "EmptyModelsArentRunBase": "it reads PostgreSQL's `information_schema`",
    "BaseSimpleCopyUppercase": "its profile is PostgreSQL's",
    **dict.fromkeys(
        ("BaseTableContractSqlHeader", "BaseIncrementalContractSqlHeader"), "its header is PostgreSQL's `SET`"
    ),
    **dict.fromkeys(
        ("BaseCachingLowercaseModel", "BaseCachingSelectedSchemaOnly", "BaseNoPopulateCache"),
        "it looks at names of databases; dbt-spark's relations have none",
    ),
    "BaseCachingUppercaseModel": "names keep their case, and dbt looks for `MODEL` as `model`",
    "BaseGetCatalogForSingleRelation": "dbt-spark has no catalog of a single relation",
    "CatalogRelationTypes": "it makes a materialized view, which dbt-spark cannot",
    "SimpleCopyBase.test_simple_copy_with_materialized_views": "it makes a materialized view, which Spark cannot",
    "BaseIncrementalBadStrategy": "dbt-spark refuses an unknown strategy in words of its own",
    "BaseIncrementalPredicates": "its strategy is `delete+insert`, which dbt-spark does not have",
    "BaseMicrobatch": "dbt-spark's `microbatch` wants `partition_by`, which its model does not say",
    "BaseIncrementalOnSchemaChange.test_run_incremental_append_new_columns": (
        "dbt-spark's MERGE names a column that the model has no longer"
    ),
    "BaseIncrementalOnSchemaChange.test_run_incremental_sync_all_columns": "dbt-spark drops no columns of Iceberg",
    "MetadataWithEmptyFlag": "one of its models drops columns, which dbt-spark does not",
    **dict.fromkeys(
        (
            "BasePrePostModelHooks",
            "BaseHookRefs",
            "BasePrePostModelHooksInConfig",
            "BasePrePostModelHooksInConfigWithCount",
            "BasePrePostModelHooksInConfigKwargs",
            "BasePrePostRunHooks",
        ),
        _HOOK,
    ),
    "BaseAfterRunHooks": "dbt-spark raises an error of a hook, where others count a failure",
    **dict.fromkeys(
        (
            "BaseTestEmptySeedFlag.test_seed_empty_creates_table_with_zero_rows",
            "BaseTestEmptySeedFlag.test_seed_empty_preserves_column_types",
            "BaseTestEmptySeedFlag.test_build_empty_with_seed",
        ),
        _NO_EMPTY,
    ),
    **dict.fromkeys(
        (
            "BaseIncrementalUniqueKey.test__empty_unique_key_list",
            "BaseIncrementalUniqueKey.test__one_unique_key",
            "BaseIncrementalUniqueKey.test__no_unique_keys",
            "BaseIncrementalUniqueKey.test__empty_str_unique_key",
            "BaseIncrementalUniqueKey.test__unary_unique_key_list",
            "BaseIncrementalUniqueKey.test__duplicated_unary_unique_key_list",
            "BaseIncrementalUniqueKey.test__trinary_unique_key_list",
            "BaseIncrementalUniqueKey.test__trinary_unique_key_list_no_update",
        ),
        _CAST,
    ),
    **dict.fromkeys(
        ("BasePersistDocs", "BasePersistDocsColumnMissing.test_missing_column", "BasePersistDocsCommentOnQuotedColumn"),
        _COMMENTS,
    ),
}
"""Classes, or tests of them, that fail, for reasons of dbt-spark's or Spark's."""

_VIEWS: Final = "with the jar dbt does not know views: `SHOW TABLE EXTENDED` has none"
_CASCADE: Final = "the jar's `DROP SCHEMA … CASCADE` refuses schemas that have tables"
OF_THE_JAR: Final[dict[str, str]] = {
    "BaseSimpleSnapshot.test_new_column_captured_by_snapshot": "it adds a column with a default, which the jar refuses",
    **dict.fromkeys(("BaseChangeRelationTypeValidator", "BaseEphemeral", "BaseSimpleMaterializations"), _VIEWS),
    **dict.fromkeys(("BaseAdapterMethod", "BaseSimpleSeedEnabledViaConfig"), _CASCADE),
}
"""Classes that fail with the jar alone."""
