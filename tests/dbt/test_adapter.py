"""dbt-tests-adapter on lakes: the classes are dbt's, the file format is Iceberg's."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_incremental import BaseIncremental
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]


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


class TestSimpleMaterializations(OnLakes, BaseSimpleMaterializations):  # type: ignore[misc]
    pass


class TestSingularTests(OnLakes, BaseSingularTests):  # type: ignore[misc]
    pass


class TestSingularTestsEphemeral(OnLakes, BaseSingularTestsEphemeral):  # type: ignore[misc]
    pass


class TestEmpty(OnLakes, BaseEmpty):  # type: ignore[misc]
    pass


class TestEphemeral(OnLakes, BaseEphemeral):  # type: ignore[misc]
    pass


class TestIncremental(OnLakes, BaseIncremental):  # type: ignore[misc]
    pass


class TestGenericTests(OnLakes, BaseGenericTests):  # type: ignore[misc]
    pass


class TestSnapshotCheckCols(OnLakes, BaseSnapshotCheckCols):  # type: ignore[misc]
    pass


class TestSnapshotTimestamp(OnLakes, BaseSnapshotTimestamp):  # type: ignore[misc]
    pass


class TestAdapterMethod(OnLakes, BaseAdapterMethod):  # type: ignore[misc]
    pass
