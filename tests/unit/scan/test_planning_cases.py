"""Planning cases as data, `tests/planning_cases/*.txt`: which files of a table a filter keeps, and why.

    table id long, ts timestamp_ntz, kind string      columns, in Spark's words
    partition by day(ts), bucket(4, id)               from here on; may be left out
    file a | partition 0, 3 | id 0..9 | kind "a".."c" | nulls kind 10 | nans x 0 | rows 10
    commit                                            the files since the last one, as one manifest
    > id >= 35 and kind = 'b'
    d, e | 1 manifest, 2 by partition, 3 by bounds    the files kept; what was left out at each step, if anything was
    residual a, d: kind = 'b'                         what rows of these files are still asked; may be left out
    ! message                                         the filter is refused instead, with a message that matches

Values are JSON, as in table metadata. A column without bounds has none stored, one without nulls or nans has that count
not stored. Lines with # are comments. Every report of a file that was planned wrongly can become such a case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frazil.codec.single_value import encode_value
from frazil.codec.single_value_json import decode_json_value
from frazil.errors import FrazilError
from frazil.scan.plan import Plan, plan_scan
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.parse_type import parse_schema
from tests.support.tables import TableBuilder

FOLDER = Path(__file__).parents[2] / "planning_cases"
PREFIX = "memory://lake/db/t/data/"


class CaseTable:
    """The table of a file of cases, as its lines describe it."""

    def __init__(self, columns: str) -> None:
        self.builder = TableBuilder(parse_schema(columns))
        self.files: list[DataFile] = []

    def partition_by(self, transforms: str) -> None:
        """Partition the files that follow by other transforms."""
        fields = re.findall(r"\w+\([^)]*\)|\w+", transforms)
        old = [field.name for field in self.builder.spec.fields if not field.transform.is_void]

        def change(update: Any) -> None:
            for name in old:
                update.remove_field(name)
            for field in fields:
                update.add_field(field)

        self.builder.update_spec(change)

    def add_file(self, text: str) -> None:
        """Add a file to the next commit."""
        name, *parts = (part.strip() for part in text.split("|"))
        fields: dict[str, Any] = {"record_count": 10}
        partition: tuple[Any, ...] = ()
        for part in parts:
            word, _, rest = part.partition(" ")
            if word == "rows":
                fields["record_count"] = int(rest)
            elif word == "partition":
                types = [field.field_type for field in self.builder.partition_type(self.builder.spec).fields]
                values = json.loads(f"[{rest}]")
                partition = tuple(decode_json_value(value, kind) for value, kind in zip(values, types, strict=True))
            elif word in ("nulls", "nans", "values"):
                column, _, count = rest.rpartition(" ")
                counts = {"nulls": "null_value_counts", "nans": "nan_value_counts", "values": "value_counts"}[word]
                fields.setdefault(counts, {})[self.builder.schema.field(column).field_id] = int(count)
            else:
                field = self.builder.schema.field(word)
                ends = [decode_json_value(json.loads(end), field.field_type) for end in rest.split("..")]
                for name_of_bound, value in zip(("lower_bounds", "upper_bounds"), ends, strict=True):
                    fields.setdefault(name_of_bound, {})[field.field_id] = encode_value(value, field.field_type)
        file = DataFile(
            PREFIX + name,
            FileFormat.PARQUET,
            file_size_in_bytes=1000,
            spec_id=self.builder.spec.spec_id,
            partition=partition,
            **fields,
        )
        self.files.append(file)

    def commit(self) -> None:
        """Commit the files since the last commit."""
        self.builder.commit(*self.files)
        self.files = []


def read_cases(path: Path) -> Iterator[tuple[int, TableBuilder, str, list[str]]]:
    """Yield the cases of a file: the line, the table as it is there, the filter and the answer."""
    table: CaseTable | None = None
    question: tuple[int, str] | None = None
    answer: list[str] = []
    for number, line in enumerate([*path.read_text("utf-8").splitlines(), "> end"], start=1):
        if line.startswith(">"):
            if question is not None:
                assert table is not None
                yield question[0], table.builder, question[1], answer
            question, answer = (number, line[1:].strip()), []
            continue
        word, _, rest = line.partition(" ")
        if line == "" or word == "#":
            continue
        if word in ("table", "partition", "file", "commit") and question is not None:
            assert table is not None
            yield question[0], table.builder, question[1], answer
            question, answer = None, []
        if word == "table":
            table = CaseTable(rest)
        elif word == "partition" and table is not None:
            table.partition_by(rest.removeprefix("by "))
        elif word == "file" and table is not None:
            table.add_file(rest)
        elif word == "commit" and table is not None:
            table.commit()
        else:
            assert question is not None, f"{path.name}:{number}: {line}"
            answer.append(line)


def kept_and_left_out(plan: Plan) -> str:
    """Return the answer of a case: the files, and what was left out at each step."""
    files = sorted(task.data_file.file_path.removeprefix(PREFIX) for task in plan.tasks)
    counts = plan.data_counts
    steps = [
        (counts.manifests_pruned, "manifest" if counts.manifests_pruned == 1 else "manifests"),
        (counts.pruned_by_partition, "by partition"),
        (counts.pruned_by_metrics, "by bounds"),
    ]
    left_out = ", ".join(f"{count} {word}" for count, word in steps if count)
    return (", ".join(files) or "none") + (f" | {left_out}" if left_out else "")


def answer_of(table: TableBuilder, text: str, expected: list[str]) -> list[str]:
    """Return the lines below a filter: as many residuals as are expected."""
    try:
        plan = plan_scan(table.load(), text)
        answer = [kept_and_left_out(plan)]
    except FrazilError as error:
        return [f"! {error}"]
    residuals = {task.data_file.file_path.removeprefix(PREFIX): str(task.residual) for task in plan.tasks}
    for line in expected[1:]:
        names = line.removeprefix("residual ").partition(": ")[0]
        answer.append(f"residual {names}: {' / '.join(sorted({residuals[file] for file in names.split(', ')}))}")
    return answer


def is_answer(expected: str, found: str) -> bool:
    """Return whether a line is what is expected: of an error, a part that matches."""
    if expected.startswith("!"):
        return found.startswith("!") and re.search(expected[1:].strip(), found) is not None
    return found == expected


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.txt")))
def test_every_case_keeps_the_expected_files(name: str) -> None:
    path = FOLDER / f"{name}.txt"
    wrong = []
    for number, table, text, expected in read_cases(path):
        found = answer_of(table, text, expected)
        if len(found) != len(expected) or not all(map(is_answer, expected, found)):
            wrong.append(f"{path.name}:{number}: {text}: {found}, not {expected}")
    assert wrong == []
