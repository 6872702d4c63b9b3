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
}
"""Classes that do not run."""

_TEXT: Final = "its models name `text`, a type of PostgreSQL's that Spark does not have"
FAILING: Final[dict[str, str]] = {
    "BaseAliases": _TEXT,
    "BaseSameAliasDifferentSchemas": _TEXT,
    "BaseIncrementalConstraintsColumnsEqual.test__constraints_wrong_column_data_types": _TEXT,
    "BaseIncrementalConstraintsColumnsEqual.test__constraints_wrong_column_names": _TEXT,
    "BaseIncrementalConstraintsColumnsEqual.test__constraints_wrong_column_order": _TEXT,
    "BaseIncrementalBadStrategy": "dbt-spark refuses an unknown strategy in words of its own",
}
"""Classes, or tests of them, that fail, for reasons of dbt-spark's or Spark's."""
