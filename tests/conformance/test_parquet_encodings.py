"""Every encoding of Parquet reads equal to plain values: files of Apache Iceberg's own test suite."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_file import read_columns
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.schema import Schema
from frazil.spec.types import BINARY, BOOLEAN, DOUBLE, FLOAT, INT, LONG, STRING, UUID, NestedField, Type
from frazil.storage.local import LocalStorage
from tests.conftest import FIXTURES

TYPES: dict[str, Type] = {
    "binary": BINARY,
    "boolean": BOOLEAN,
    "double": DOUBLE,
    "float": FLOAT,
    "int32": INT,
    "int64": LONG,
    "string": STRING,
    "uuid": UUID,
}
FOLDER = FIXTURES / "parquet-encodings"
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*.parquet"))


def read(path: Path) -> pa.Table:
    kind = TYPES[path.stem.removesuffix("_with_nulls")]
    # The files have no ids; columns are numbered by position.
    schema = Schema((NestedField(1, "data", kind),))
    file = DataFile(str(path), FileFormat.PARQUET, -1, path.stat().st_size)
    return pa.Table.from_batches(read_columns(LocalStorage(), file, schema, ReadRules(schema)))


def test_every_type_has_sample_files(fixtures_dir: Path) -> None:
    assert {Path(one).stem.removesuffix("_with_nulls") for one in FILES} == set(TYPES)
    assert len(FILES) > 40


@pytest.mark.parametrize("name", FILES)
def test_encoded_file_equals_its_plain_twin(name: str, fixtures_dir: Path) -> None:
    path = fixtures_dir / "parquet-encodings" / name
    found, plain = read(path), read(path.parent.parent / "PLAIN" / path.name)
    assert found.num_rows == 1000
    assert found.column(0).combine_chunks().equals(plain.column(0).combine_chunks())
    has_nulls = path.stem.endswith("_with_nulls")
    assert (found.column(0).null_count > 0) == has_nulls
