"""How Spark writes the tasks it was given: with a file open for each partition, or sorted by them."""

from __future__ import annotations

import pytest

from frazil.jar.options import WRITE
from frazil.spark.write.distribute import write_settings
from frazil.spec.types import LONG, STRING
from tests.support.builders import field, schema
from tests.support.written_files import target

SETTING = "spark.sql.maxConcurrentOutputFileWriters"
TABLE = schema(field(1, "id", LONG), field(2, "kind", STRING))


@pytest.mark.parametrize("way", ["write.spark.fanout.enabled", "fanout-enabled"])
def test_fanout_follows_write_options_and_table_properties(way: str) -> None:
    """An option takes the place of the property for one write."""
    sets = next(([one.name for one in option.sets] for option in WRITE if option.name == way), [way])
    assert sets == ["write.spark.fanout.enabled"]

    def most(fans_out: str, *sort_by: str) -> int:
        place = target(TABLE, partition_by=["kind"], sort_by=sort_by, properties=dict.fromkeys(sets, fans_out))
        return int(write_settings(place)[SETTING])

    assert most("false") == 0
    assert most("true") > 1_000_000
    assert most("true", "id asc") == 0, "rows of a sorted table stay in order"
