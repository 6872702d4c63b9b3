"""Change feeds against a model: random histories of appends, deletes and schema changes, windows compared."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from frazil.expr.bind import bind
from frazil.expr.evaluate_row import evaluate_row
from frazil.expr.extract import parse_predicate
from frazil.loaded import LoadedTable
from frazil.scan.changelog import Changelog
from frazil.table.scan import Scan, scan_table
from tests.support.changelog_model import Feed
from tests.support.file_writers import table_to_rows
from tests.support.scan_model import FORMATS, SCHEMA, Model, same_rows
from tests.support.tables import TableBuilder

STEPS = 5


def make_feed(seed: int, version: int, formats: tuple[str, ...]) -> Feed:
    rng = random.Random(f"changes-{seed}-{version}-{formats}")
    partition_by = rng.choice([[], ["part"], ["part"]])
    model = Model(TableBuilder(SCHEMA, partition_by=partition_by, format_version=version), rng, formats)
    feed = Feed(model)
    model.append()
    feed.watch()
    for _ in range(STEPS):
        model.step()
        feed.watch()
    return feed


def changes(loaded: LoadedTable, window: Changelog, predicate: str | None = None) -> Scan:
    return replace(scan_table(loaded, predicate, columns=["*", "_file", "_pos"]), changelog=window)


@pytest.mark.extended
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("seed", range(1))
def test_every_change_window_equals_the_difference_of_its_snapshots(seed: int, version: int, file_format: str) -> None:
    feed = make_feed(seed, version, (file_format,))
    loaded, schema = feed.model.table.load(), feed.model.table.schema
    ids: list[int | None] = [None, *(one for one, _ in feed.states)]
    for at, after in enumerate(ids[:-1]):
        for to in ids[at + 1 :: 2]:
            scan = changes(loaded, Changelog(after, to))
            expected = feed.changes(schema, after, to)
            table = scan.to_arrow()
            table.validate(full=True)
            assert same_rows(table_to_rows(table, scan.schema), expected), (after, to)
            assert scan.count() == len(expected), (after, to)


@pytest.mark.parametrize("version", [2, 3])
def test_filters_keep_matching_changes(version: int) -> None:
    feed = make_feed(9, version, FORMATS)
    loaded, schema = feed.model.table.load(), feed.model.table.schema
    everything = feed.changes(schema)
    for text in ("id > 3", "part = 1", "text = 'a' or part is null", "startswith(text, 'prefix')", "not (part = 0)"):
        predicate = bind(schema, parse_predicate(text))
        scan = changes(loaded, Changelog(), text)
        expected = [row for row in everything if evaluate_row(predicate, row)]
        assert same_rows(table_to_rows(scan.to_arrow(), scan.schema), expected), text
        assert scan.count() == len(expected), text
