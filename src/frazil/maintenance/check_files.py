"""Check that data files, delete files and deletion vectors exist and agree with their manifest entries.

Part of `maintenance/check_table.py`. For a data or delete file the size is compared. For a deletion vector, the blob is
read and decoded, which verifies its checksum and number of positions, and the footer of its Puffin file is compared
with the entry, since a vector that was replaced by another one is intact and still wrong. With rows,
`maintenance/check_rows.py` reads each file completely. Specification: "Deletion Vectors", "Data File Fields".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.codec.deletion_vector import describe_deletion_vector, read_deletion_vector
from frazil.codec.manifest_avro import ManifestColumns, iter_entries
from frazil.codec.puffin import PuffinFooter, read_puffin_footer
from frazil.datafile.read_task import TableView
from frazil.errors import CorruptTableError, FrazilError, InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.maintenance.check_manifest import REPAIR, unreadable
from frazil.maintenance.check_rows import check_rows
from frazil.maintenance.report import Problem
from frazil.spec.data_file import DataFile
from frazil.spec.puffin import DELETION_VECTOR_V1
from frazil.storage.base import Storage

_NAMES: Final = ("data file", "position delete file", "equality delete file")


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files to check together: one data or delete file, or the deletion vectors of one Puffin file."""

    files: tuple[DataFile, ...]
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class CheckedGroup:
    """The result for a group: problems, and the last position of each readable vector."""

    group: FileGroup
    problems: tuple[Problem, ...]
    last_positions: tuple[tuple[str, int], ...] = ()
    """The data file of a vector, and the highest position in the vector."""


def groups_of(live: ManifestColumns, chosen: npt.NDArray[np.bool_], snapshot_id: int) -> Iterator[FileGroup]:
    """Yield the selected live files of a manifest, with vectors of one Puffin file together."""
    if not chosen.any():
        return
    files = live if chosen.all() else replace(live, table=live.table.filter(pa.array(chosen)))
    vectors: dict[str, list[DataFile]] = {}
    for entry in iter_entries(files):
        file = entry.data_file
        if file.is_deletion_vector:
            vectors.setdefault(file.file_path, []).append(file)
        else:
            yield FileGroup((file,), snapshot_id)
    for group in vectors.values():
        yield FileGroup(tuple(group), snapshot_id)


def check_group(loaded: LoadedTable, group: FileGroup, view: TableView | None) -> CheckedGroup:
    """Check the files of a group and, with a view of the table, their rows. Never raises on bad files."""
    first = group.files[0]
    what = "Puffin file" if first.is_deletion_vector else _NAMES[first.content]
    try:
        size = loaded.storage.size(first.file_path)
    except FrazilError as error:
        return CheckedGroup(group, (unreadable(error, what, first.file_path, group.snapshot_id),))
    problems = [
        Problem(
            "wrong-size",
            f"the {what} has {size:,} bytes, but its entry says {file.file_size_in_bytes:,}",
            REPAIR,
            file.file_path,
            group.snapshot_id,
        )
        for file in group.files[:1]
        if file.file_size_in_bytes not in (size, -1)
    ]
    if first.is_deletion_vector:
        vector_problems, last = _check_vectors(loaded.storage, group, size)
        return CheckedGroup(group, (*problems, *vector_problems), last)
    if view is not None:
        try:
            findings = list(check_rows(loaded.storage, first, view, loaded.metadata))
        except FrazilError as error:
            problems.append(unreadable(error, what, first.file_path, group.snapshot_id))
        else:
            problems += [
                Problem(
                    finding.code,
                    finding.what,
                    finding.to_do,
                    first.file_path,
                    group.snapshot_id,
                    is_warning=finding.is_warning,
                )
                for finding in findings
            ]
    return CheckedGroup(group, tuple(problems))


def _check_vectors(storage: Storage, group: FileGroup, size: int) -> tuple[list[Problem], tuple[tuple[str, int], ...]]:
    path = group.files[0].file_path
    problems: list[Problem] = []
    last: list[tuple[str, int]] = []

    def read_range(offset: int, length: int) -> bytes:
        return storage.read_range(path, offset, length)

    def report(what: str) -> None:
        problems.append(Problem("wrong-deletion-vector", what, _VECTOR_TO_DO, path, group.snapshot_id))

    footer: PuffinFooter | None = None
    try:
        footer = read_puffin_footer(read_range, size)
    except FrazilError as error:
        problems.append(unreadable(error, "Puffin file", path, group.snapshot_id))
    for file in group.files:
        target = file.referenced_data_file
        if target is None or file.content_offset is None or file.content_size_in_bytes is None:
            continue  # reported for its manifest
        try:
            vector = read_deletion_vector(
                read_range, file.content_offset, file.content_size_in_bytes, record_count=file.record_count
            )
        except CorruptTableError as error:
            report(f"the deletion vector of {target} is corrupt: {error.message}")
            continue
        except FrazilError as error:
            problems.append(unreadable(error, f"deletion vector of {target}", path, group.snapshot_id))
            continue
        if vector.last is not None:
            last.append((target, vector.last))
        if footer is not None:
            for what in _footer_differs(file, footer):
                report(what)
    return problems, tuple(last)


_VECTOR_TO_DO: Final = (
    "Restore the Puffin file from a backup, or roll back to a snapshot from before it was written: reads may now "
    "miss rows, or return deleted rows."
)


def _footer_differs(file: DataFile, footer: PuffinFooter) -> Iterator[str]:
    """Yield the differences between the blob at an entry's offset, by the file's footer, and the entry."""
    blobs = [blob for blob in footer.blobs if blob.offset == file.content_offset and blob.type == DELETION_VECTOR_V1]
    if not blobs:
        yield f"the Puffin file has no deletion vector at offset {file.content_offset}"
        return
    try:
        stored = describe_deletion_vector(blobs[0])
    except (CorruptTableError, InvalidRequestError) as error:
        yield error.message
        return
    if stored.referenced_data_file != file.referenced_data_file:
        yield (
            f"the deletion vector at offset {file.content_offset} is for {stored.referenced_data_file}, but its "
            f"entry says {file.referenced_data_file}"
        )
    if stored.content_size_in_bytes != file.content_size_in_bytes:
        yield (
            f"the deletion vector of {file.referenced_data_file} has {stored.content_size_in_bytes} bytes, but its "
            f"entry says {file.content_size_in_bytes}"
        )
    if stored.cardinality != file.record_count:
        yield (
            f"the deletion vector of {file.referenced_data_file} has {stored.cardinality} positions by its footer, but "
            f"its entry says {file.record_count}"
        )
