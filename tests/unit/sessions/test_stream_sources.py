"""Streams of tables without a query: what is noted in the table while they run."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

from frazil.catalog.memory import MemoryCatalog
from frazil.sessions.stream_options import stream_options
from frazil.sessions.stream_source import StreamSource
from frazil.sessions.stream_sources import columns_of
from frazil.streams.offsets import StreamOffset
from frazil.table.lake import Lake
from frazil.table.sql_session import FullName

GUARD = "frazil.stream.orders"


def new_source(lake: Lake) -> StreamSource:
    table = lake.table("db.t")
    options = stream_options({"stream-guard": "orders"})
    return StreamSource(FullName("lake", lake, ("db", "t")), table, options, columns_of(table.schema, options))


def test_guard_moved_by_another_query_is_warned_about() -> None:
    lake = Lake(MemoryCatalog())
    table = lake.create_table("db.t", "id bigint")
    for number in range(4):
        table.append(pa.table({"id": [number]}))
    offsets = [StreamOffset(one.snapshot_id, 1, is_done=True) for one in table.snapshots]
    one = new_source(lake)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for offset in offsets[:2]:
            one.hold(offset, is_last=True)
        # Who takes the property away gives the guard up: it is set again.
        table.remove_properties([GUARD])
        one.hold(offsets[2], is_last=True)
        assert table.refresh().properties[GUARD] == str(offsets[2].snapshot_id)
        # As after a restart: it goes on with the guard that it finds.
        one = new_source(lake)
        one.hold(offsets[1], is_last=True)
        other = new_source(lake)
        other.hold(offsets[0], is_last=True)
    with pytest.warns(UserWarning, match=r"The guard 'orders' of lake\.db\.t was moved by another query"):
        one.hold(offsets[3], is_last=True)
    assert table.refresh().properties[GUARD] == str(offsets[3].snapshot_id)
