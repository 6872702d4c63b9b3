"""A scan as a dataset of Arrow's: other libraries ask it for columns and rows, and only those files are read.

DuckDB, Polars and DataFusion know `pyarrow.dataset.Dataset` and hand down to it the columns they need and what of a
filter they can say in Arrow's words. Here that becomes a narrower scan: files are pruned by the predicate
(`expr/columns/arrow_filter.py`), rows are tested exactly, batches come as they are asked for.

Arrow's own C++ does not know such a dataset. What would ask it there, past the methods below, finds one file whose
opening is refused with an error, and never an empty table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn, cast

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from frazil.datafile.read_file import DEFAULT_BATCH_ROWS
from frazil.errors import FieldNotFoundError, UnsupportedError
from frazil.expr.columns.arrow_filter import Meaning, push_filter
from frazil.expr.predicates import all_of
from frazil.spec.reserved_columns import CHANGE_COLUMNS, is_reserved_id
from frazil.spec.schema import Schema
from frazil.table.scan import Scan


class ScanDataset(pads.UnionDataset):  # type: ignore[misc]
    """The rows of a scan, as a dataset that pushes columns and filters down. Make with `Scan.to_dataset`."""

    def __init__(self, scan: Scan, meaning: Meaning = Meaning.ARROW) -> None:
        self._scan = scan
        self._meaning = meaning
        self._arrow_schema = scan.arrow_schema
        form = pads.IpcFileFormat()
        refused = pads.FileSystemDataset(
            [form.make_fragment("rows", pafs.PyFileSystem(_NoFiles()))], self._arrow_schema, form
        )
        super().__init__(self._arrow_schema, [refused])

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "Cannot pickle a dataset of a scan", hint="Open the lake where the rows are needed, and scan there."
        )

    def __repr__(self) -> str:
        return f"ScanDataset({self._scan.table.name!r})"

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._arrow_schema

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | dict[str, Any] | None = None,
        filter: Any | None = None,  # noqa: A002
        batch_size: int = DEFAULT_BATCH_ROWS,
        **_options: object,
    ) -> ScanScanner:
        """Ask for columns and rows; how Arrow would read files is of no concern here."""
        return ScanScanner(self._scan, self._arrow_schema, self._meaning, columns, filter, batch_size)

    def fragments(self, filter: Any | None = None) -> Iterator[ScanDataset]:  # noqa: A002
        """Yield the parts of the dataset; it is one."""
        return iter([self])

    get_fragments = fragments

    def filter(self, expression: Any) -> ScanDataset:
        """Return the dataset with a filter that comes before all others."""
        scan, rest = _narrowed(self._scan, expression, self._meaning)
        if rest is not None:
            raise UnsupportedError(
                f"Cannot filter the dataset by {expression}: it has parts that cannot be translated",
                hint="Give the filter to scanner(), to_batches() or to_table().",
            )
        return ScanDataset(scan, self._meaning)

    def replace_schema(self, schema: pa.Schema) -> ScanDataset:
        """Return the dataset, if the schema is the one it has."""
        if not schema.equals(self._arrow_schema):
            raise UnsupportedError("Cannot give a scan's dataset another schema", hint="Choose columns of the scan.")
        return self

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches."""
        return self.scanner(**options).to_batches()

    def to_table(self, **options: Any) -> pa.Table:
        """Return the rows."""
        return self.scanner(**options).to_table()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """Return the first rows."""
        return self.scanner(**options).head(num_rows)

    def count_rows(self, filter: Any | None = None, **options: Any) -> int:  # noqa: A002
        """Return how many rows there are, from metadata where it tells."""
        return self.scanner(filter=filter, **options).count_rows()

    def take(self, indices: Any, **options: Any) -> pa.Table:
        """Return rows by their positions."""
        return self.to_table(**options).take(indices)

    def sort_by(self, sorting: Any, **options: Any) -> pads.InMemoryDataset:
        """Return the rows in an order, in memory."""
        return pads.InMemoryDataset(self.to_table(**options).sort_by(sorting))

    def join(self, right_dataset: Any, keys: Any, *arguments: Any, **options: Any) -> pads.InMemoryDataset:
        """Return a join with another dataset, in memory."""
        return pads.InMemoryDataset(self.to_table().join(right_dataset.to_table(), keys, *arguments, **options))

    def join_asof(self, right_dataset: Any, *arguments: Any, **options: Any) -> pads.InMemoryDataset:
        """Return an as-of join with another dataset, in memory."""
        return pads.InMemoryDataset(self.to_table().join_asof(right_dataset.to_table(), *arguments, **options))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rows over by Arrow's C stream."""
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)


class ScanScanner:
    """Columns and rows that somebody asked a `ScanDataset` for; nothing is read before they are taken."""

    def __init__(
        self,
        scan: Scan,
        schema: pa.Schema,
        meaning: Meaning,
        columns: Sequence[str] | dict[str, Any] | None,
        expression: Any | None,
        batch_rows: int,
    ) -> None:
        self._scan, self._rest = scan, None
        if isinstance(columns, dict):
            self._made: dict[str, Any] | None = columns
            columns = None
        else:
            self._made = None
        self._columns = list(schema.names if columns is None else columns)
        unknown = [name for name in self._columns if name not in schema.names]
        if unknown:
            raise FieldNotFoundError(f"Cannot find column {unknown[0]!r}: the scan shows {', '.join(schema.names)}")
        self.dataset_schema = schema
        self.batch_rows = batch_rows
        if expression is not None:
            self._scan, self._rest = _narrowed(scan, expression, meaning)

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns that were asked for."""
        if self._made is not None:
            return _made(self.dataset_schema.empty_table(), self._made).schema
        return pa.schema([self.dataset_schema.field(name) for name in self._columns])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches."""
        if not self._columns and self._made is None and self._rest is None:
            yield _rows_without_columns(self._scan.count())
            return
        # Of a filter whose columns are not told, all are read.
        names = self._names_to_read() if self._rest is None and self._made is None else ()
        scan = replace(self._scan, columns=names) if names else self._scan
        for batch in scan.to_batches(batch_rows=max(self.batch_rows, 1)):
            left = batch if self._rest is None else batch.filter(self._rest)
            if self._made is not None:
                yield from _made(pa.Table.from_batches([left]), self._made).to_batches()
            elif left.num_rows:
                yield left if left.schema.names == self._columns else left.select(self._columns)

    def _names_to_read(self) -> tuple[str, ...]:
        """Return the columns as names of a scan; of a struct that is shown in part, those of its parts."""
        output_fields, whole = {field.name: field for field in self._scan.schema.fields}, self._scan.table_schema
        names: list[str] = []
        for name in self._columns:
            nested_field = output_fields[name]
            if nested_field in CHANGE_COLUMNS:
                continue  # a change feed always has them
            if is_reserved_id(nested_field.field_id) or whole.find_field(nested_field.field_id) == nested_field:
                names.append(name)
            else:
                leaves = [
                    field for field in Schema((nested_field,)).fields_by_id.values() if field.field_type.is_primitive
                ]
                names += [whole.name_of(leaf.field_id) for leaf in leaves]
        return tuple(names)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a reader."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def scan_batches(self) -> Iterator[Any]:
        """Yield the rows in batches, each with where it is from."""
        return (pads.TaggedRecordBatch(batch, None) for batch in self.to_batches())

    def to_table(self) -> pa.Table:
        """Return the rows."""
        return pa.Table.from_batches(self.to_batches(), schema=self.projected_schema)

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        found: list[pa.RecordBatch] = []
        left = num_rows
        if left > 0:
            for batch in self.to_batches():
                found.append(batch.slice(0, left))
                left -= batch.num_rows
                if left <= 0:
                    break
        return pa.Table.from_batches(found, schema=self.projected_schema)

    def take(self, indices: Any) -> pa.Table:
        """Return rows by their positions."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """Return how many rows there are, from metadata where it tells."""
        if self._rest is None:
            return self._scan.count()
        return sum(batch.num_rows for batch in self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rows over by Arrow's C stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


class _NoFiles(pafs.FileSystemHandler):  # type: ignore[misc]
    """A file system that opens nothing, for what asks Arrow's C++ for the rows of a scan."""

    def type_name(self) -> str:
        return "frazil"

    get_type_name = type_name

    def _refuse(self, *_: object) -> NoReturn:
        raise UnsupportedError(
            "Cannot read a scan's dataset from inside Arrow",
            hint="Use its to_batches(), or hand over scan.to_reader().",
        )

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = _refuse
    get_file_info = get_file_info_selector = move = normalize_path = _refuse
    open_append_stream = open_input_file = open_input_stream = open_output_stream = _refuse


def _narrowed(scan: Scan, expression: Any, meaning: Meaning) -> tuple[Scan, Any | None]:
    """Return a scan of fewer rows, and what of the expression is left to test."""
    pushed = push_filter(expression, scan.table_schema, meaning, may_prune=scan.limit is None)
    return replace(scan, predicate=all_of(scan.predicate, pushed.predicate)), pushed.rest


def _rows_without_columns(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(count)], ["_"]).select([])


def _made(rows: pa.Table, columns: dict[str, Any]) -> pa.Table:
    return cast("pa.Table", pads.dataset(rows).to_table(columns=columns))
