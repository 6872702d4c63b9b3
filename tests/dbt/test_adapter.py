"""dbt-tests-adapter on lakes: the classes are dbt's, the file format is Iceberg's.

`docs/dbt.md` says which of dbt's classes are left out, and why.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

CLASSES = {
    "aliases.test_aliases": ["BaseAliases", "BaseSameAliasDifferentSchemas"],
    "basic.test_adapter_methods": ["BaseAdapterMethod"],
    "basic.test_base": ["BaseSimpleMaterializations"],
    "basic.test_empty": ["BaseEmpty"],
    "basic.test_ephemeral": ["BaseEphemeral"],
    "basic.test_generic_tests": ["BaseGenericTests"],
    "basic.test_incremental": ["BaseIncremental", "BaseIncrementalBadStrategy", "BaseIncrementalNotSchemaChange"],
    "basic.test_singular_tests": ["BaseSingularTests"],
    "basic.test_singular_tests_ephemeral": ["BaseSingularTestsEphemeral"],
    "basic.test_snapshot_check_cols": ["BaseSnapshotCheckCols"],
    "basic.test_snapshot_timestamp": ["BaseSnapshotTimestamp"],
    "basic.test_table_materialization": ["BaseTableMaterialization"],
    "basic.test_validate_connection": ["BaseValidateConnection"],
    "caching.test_caching": ["BaseCachingLowercaseModel", "BaseCachingSelectedSchemaOnly", "BaseNoPopulateCache"],
    "dbt_show.test_dbt_show": ["BaseShowLimit", "BaseShowSqlHeader"],
    "empty.test_empty": ["BaseTestEmpty"],
    "incremental.test_incremental_merge_exclude_columns": ["BaseMergeExcludeColumns"],
    "incremental.test_incremental_on_schema_change": ["BaseIncrementalOnSchemaChange"],
    "incremental.test_incremental_unique_id": ["BaseIncrementalUniqueKey"],
    "simple_snapshot.new_record_check_mode": ["BaseSnapshotNewRecordCheckMode"],
    "store_test_failures_tests.basic": ["StoreTestFailuresAsGeneric"],
}
"""Modules of dbt-tests-adapter, and the classes of each that run here."""


class OnLakes:
    """What projects say to have Iceberg tables."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        iceberg = {"+file_format": "iceberg"}
        return {
            "models": {**iceberg, "+incremental_strategy": "merge"},
            "seeds": iceberg,
            "snapshots": iceberg,
            "flags": {"send_anonymous_usage_stats": False},
        }


for _module, _names in CLASSES.items():
    for _name in _names:
        _base = getattr(import_module(f"dbt.tests.adapter.{_module}"), _name)
        _own = f"Test{_name.removeprefix('Base')}"
        globals()[_own] = type(_own, (OnLakes, _base), {"__module__": __name__})
