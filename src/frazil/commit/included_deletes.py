"""Check that the first deletion vector of a data file includes its position deletes. Specification: "Deletion Vectors".

Readers ignore the position delete files of a data file that has a vector. On a table upgraded from version 2 such files
may still be live, so the writer of a file's first vector reads them and includes their positions. A vector without them
would bring deleted rows back; it is refused here, immediately before the commit, whoever wrote it. A file that already
has a vector needs no check, since its position delete files no longer apply.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.commit.change_files import DeleteKey
from frazil.commit.may_hold_partition import may_hold_partition
from frazil.commit.write_manifests import ManifestWriter
from frazil.errors import InvalidRequestError
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.columns.stats_masks import to_mask
from frazil.scan.delete_index import DELETE_FIELDS, DeleteIndex
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.partition_key import partition_key_of

_DATA_FIELDS = ("status", "sequence_number", "file_path", "partition", "record_count")


def check_deletes_included(
    writer: ManifestWriter,
    base: Sequence[ManifestFile],
    vectors: Sequence[DataFile],
    included: Collection[DeleteKey],
) -> None:
    """Refuse first vectors of data files with live position delete files that are not declared as included.

    `vectors` are those of data files without one, `included` the delete files whose positions they hold.
    """
    if not vectors:
        return
    remaining = list(_position_deletes(writer, base, included))
    if not remaining:
        return
    index = DeleteIndex(remaining, writer.loaded.metadata)
    for files in _data_files(writer, base, vectors):
        for path, numbers in zip(files.column("file_path").to_pylist(), index.deletes_for(files), strict=True):
            if numbers:
                missing = index.task(numbers[0]).data_file.file_path
                raise InvalidRequestError(
                    f"Cannot add a deletion vector for data file {path!r}: it does not include the positions that "
                    f"{missing!r} deletes, so readers would return those rows again",
                    hint="Put all position deletes of the data file into its first vector, and declare their files as "
                    "included or removed.",
                    heading="Deletion Vectors",
                )


def _position_deletes(
    writer: ManifestWriter, base: Sequence[ManifestFile], included: Collection[DeleteKey]
) -> Iterator[ManifestColumns]:
    """Yield the live position delete files that are not included."""
    included_paths = pa.array(sorted({path for path, _ in included}), pa.string())
    for manifest in base:
        if manifest.content is not ManifestContent.DELETES or not manifest.has_live_files:
            continue
        files = writer.read(manifest, DELETE_FIELDS)
        mask = live_mask(files)
        mask &= to_mask(pc.equal(files.column("content"), FileContent.POSITION_DELETES.value))
        mask &= ~to_mask(pc.equal(files.column("file_format"), FileFormat.PUFFIN.value))
        mask &= ~to_mask(pc.is_in(files.column("file_path"), value_set=included_paths))
        if mask.any():
            yield replace(files, table=files.table.filter(pa.array(mask)))


def _data_files(
    writer: ManifestWriter, base: Sequence[ManifestFile], vectors: Sequence[DataFile]
) -> Iterator[ManifestColumns]:
    """Yield the live data files that vectors refer to, with their sequence numbers."""
    targets = pa.array(sorted({vector.referenced_data_file or "" for vector in vectors}), pa.string())
    keys = {partition_key_of(vector) for vector in vectors}
    for manifest in base:
        if manifest.content is not ManifestContent.DATA or not manifest.has_live_files:
            continue
        own = {key for key in keys if key[0] == manifest.partition_spec_id}
        if not own or not may_hold_partition(manifest, writer.partition_of(manifest)[1], own):
            continue
        files = writer.read(manifest, _DATA_FIELDS)
        mask = live_mask(files) & to_mask(pc.is_in(files.column("file_path"), value_set=targets))
        if mask.any():
            yield replace(files, table=files.table.filter(pa.array(mask)))
