"""Files listed by a DataFrame, such as the inventory of a store, for `maintenance/orphan_files.py`.

The columns are those of Iceberg Java's `file_list_view`: `file_path` and `last_modified`. Rows are fetched one
partition at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame

from frazil.errors import InvalidRequestError
from frazil.spark.own_columns import F

COLUMNS = ("file_path", "last_modified")


def listed_files(frame: DataFrame) -> Iterator[tuple[str, int]]:
    """Yield the path of each file and its modification time in milliseconds since 1970."""
    names = {column.lower() for column in frame.columns}
    missing = [column for column in COLUMNS if column not in names]
    if missing:
        raise InvalidRequestError(
            f"Cannot read the files of a view: it has no column {missing[0]!r}",
            hint=f"Its columns must be {' and '.join(COLUMNS)}; they are {', '.join(frame.columns)}.",
        )
    path, when = F.col(COLUMNS[0]).cast("string"), F.unix_millis(F.col(COLUMNS[1]).cast("timestamp"))
    for number, row in enumerate(frame.select(path, when).toLocalIterator()):
        if row[0] is None or row[1] is None:
            raise InvalidRequestError(
                f"Cannot read the files of a view: row {number + 1} has no path or no modification time"
            )
        yield row[0], row[1]
