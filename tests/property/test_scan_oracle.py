"""Scans against a model: random histories of appends, deletes and schema changes, every snapshot compared."""

from __future__ import annotations

import random
import time

import pytest

from frazil.datafile.read_task import read_task, view_table
from frazil.expr.bind import bind
from frazil.expr.evaluate_row import evaluate_row
from frazil.expr.extract import parse_predicate
from frazil.table.scan import scan_table
from tests.support.file_writers import table_to_rows
from tests.support.scan_model import FORMATS, SCHEMA, Model, same_rows
from tests.support.tables import TableBuilder

ALL = ["*", "_file", "_pos", "_row_id", "_last_updated_sequence_number"]
STEPS = 5


def make_model(seed: int, version: int, formats: tuple[str, ...]) -> Model:
    rng = random.Random(f"{seed}-{version}-{formats}")
    partition_by = rng.choice([[], ["part"], ["part"]])
    return Model(TableBuilder(SCHEMA, partition_by=partition_by, format_version=version), rng, formats)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("seed", range(1))
def test_every_snapshot_reads_as_the_model(seed: int, version: int, file_format: str) -> None:
    model = make_model(seed, version, (file_format,))
    model.append()
    for _ in range(STEPS):
        model.step()
        loaded = model.table.load()
        scan = scan_table(loaded, columns=ALL)
        table = scan.to_arrow()
        table.validate(full=True)
        assert same_rows(table_to_rows(table, scan.schema), model.rows())
        assert scan_table(loaded).count() == len(model.rows())


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("seed", range(1))
def test_filters_keep_exactly_the_matching_rows(seed: int, version: int) -> None:
    model = make_model(seed, version, FORMATS)
    for _ in range(STEPS):
        model.append() if not model.files else model.step()
    loaded = model.table.load()
    schema = model.table.schema
    texts = [
        "id > 3",
        "id <= 5 or text is null",
        "part = 1 and id > 2",
        "text = 'a'",
        "text != 'b'",
        "text in ('a', 'prefix-long-enough-to-be-cut')",
        "startswith(text, 'prefix')",
        "not (part = 0)",
    ]
    if schema.find_field("num") is not None:
        texts += ["num < 0", "num is not null and num != 1"]
    if schema.find_field("ratio") is not None:
        texts += ["isnan(ratio)", "ratio >= 0", "ratio = 0"]
    if schema.find_field("info.a") is not None:
        texts += ["info.a is null", "info.a = 1", "info.a > 0 or info.b = 'a'"]
    for text in texts:
        predicate = bind(schema, parse_predicate(text))
        expected = [row for row in model.rows() if evaluate_row(predicate, row)]
        scan = scan_table(loaded, text, columns=ALL)
        assert same_rows(table_to_rows(scan.to_arrow(), scan.schema), expected), text
        assert scan_table(loaded, text).count() == len(expected), text


@pytest.mark.extended
@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("seed", range(1))
def test_file_splits_hold_each_row_once(seed: int, file_format: str) -> None:
    model = make_model(seed, 3, (file_format,))
    for _ in range(STEPS):
        model.append() if not model.files else model.step()
    loaded = model.table.load()
    scan = scan_table(loaded, columns=ALL)
    view = view_table(loaded.metadata)
    for size in (150, 700):
        rows = []
        for task in scan.plan().tasks:
            for start in range(0, task.data_file.file_size_in_bytes, size):
                length = min(size, task.data_file.file_size_in_bytes - start)
                for batch in read_task(task.part(start, length), view, scan.schema, loaded.storage, batch_rows=3):
                    assert 0 < batch.num_rows <= 3
                    rows += table_to_rows(batch, scan.schema)
        assert same_rows(rows, model.rows())


@pytest.mark.slow
def test_many_more_histories_read_as_the_model(fuzz_seconds: float) -> None:
    end = time.monotonic() + 10 * fuzz_seconds
    seed = 100
    while time.monotonic() < end:
        rng = random.Random(seed)
        test_every_snapshot_reads_as_the_model(seed, rng.choice([1, 2, 3]), rng.choice(FORMATS))
        test_filters_keep_exactly_the_matching_rows(seed, rng.choice([2, 3]))
        test_file_splits_hold_each_row_once(seed, rng.choice(FORMATS))
        seed += 1
