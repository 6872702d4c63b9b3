"""The footer of Puffin files, as values. Specification: Puffin file format, "Footer Payload".

A Puffin file holds blobs (sketches of column values, deletion vectors) and ends with a footer that lists
them. `codec/puffin.py` encodes and decodes these values. The `statistics` entries of table metadata repeat
a part of them, so that planning need not open the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from frazil.errors import InvalidRequestError
from frazil.spec.frozen_map import NO_EXTRA, FrozenMap, freeze_maps, freeze_tuples

THETA_SKETCH_V1 = "apache-datasketches-theta-v1"
"""The blob type of a sketch for counting a column's distinct values."""

DELETION_VECTOR_V1 = "deletion-vector-v1"
"""The blob type of the deleted positions of one data file."""

CREATED_BY = "created-by"
"""The file property that names the application that wrote the file."""

NDV = "ndv"
"""The property of a theta sketch that holds the estimated number of distinct values."""

REFERENCED_DATA_FILE = "referenced-data-file"
"""The property of a deletion vector that holds the location of its data file."""

CARDINALITY = "cardinality"
"""The property of a deletion vector that holds its number of positions."""

CompressionCodec: TypeAlias = Literal["lz4", "zstd"]
COMPRESSION_CODECS: tuple[CompressionCodec, ...] = ("lz4", "zstd")

NO_PROPERTIES: FrozenMap[str, str] = FrozenMap()


@dataclass(frozen=True, slots=True)
class BlobMetadata:
    """One blob of a Puffin file: its origin and its location in the file.

    `compression_codec` is None for an uncompressed blob. Codecs outside `COMPRESSION_CODECS` are accepted here, so that
    the other blobs of the file stay readable.
    """

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None = None
    properties: Mapping[str, str] = NO_PROPERTIES
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, "fields")
        freeze_maps(self, "properties")
        if not self.type:
            raise InvalidRequestError("Cannot describe a blob: its type is empty", heading="BlobMetadata")
        if self.offset < 0 or self.length < 0:
            raise InvalidRequestError(
                f"Cannot describe the {self.type} blob: offset {self.offset} and length {self.length} must not be "
                "negative",
                heading="BlobMetadata",
            )

    @property
    def end(self) -> int:
        """The offset of the byte after the blob."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """The footer payload of a Puffin file: its blobs and properties."""

    blobs: tuple[BlobMetadata, ...] = ()
    properties: Mapping[str, str] = NO_PROPERTIES
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, "blobs")
        freeze_maps(self, "properties")

    @property
    def created_by(self) -> str | None:
        """The application that wrote the file, or None if unknown."""
        return self.properties.get(CREATED_BY)
