"""Add annotations that Arrow cannot set to a Parquet footer that it wrote. Specification: "Parquet" (Appendix A).

The format requires the annotations VARIANT, GEOMETRY and GEOGRAPHY. Arrow writes such columns as plain groups and
binaries, so the annotation is added to the schema in the footer before it is written to the file. A footer is a
structure in Thrift's compact protocol:

    FileMetaData    1 version (i32), 2 schema (list of SchemaElement), ... the rest is not read
    SchemaElement   1 type ... 9 field_id (i32), 10 logicalType (LogicalType)
    LogicalType     a union: 16 VARIANT, 17 GEOMETRY, 18 GEOGRAPHY

Fields are written in the order of their numbers, so the annotation would be the last field of an element without one:
it is inserted immediately before the element's end. Nothing else changes, and no offset in a footer points into the
footer itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from frazil.codec.varint import encode_varint, encode_zigzag
from frazil.datafile.bad_bytes import BadBytes
from frazil.datafile.thrift_compact import (
    BINARY,
    BYTE,
    I32,
    LIST,
    STOP,
    STRUCT,
    CompactReader,
    field_head,
)
from frazil.errors import UnsupportedError
from frazil.spec.types import DEFAULT_CRS, EDGE_ALGORITHMS, GeographyType, GeometryType, Type, VariantType

MAGIC = b"PAR1"
TAIL_BYTES = 8
"""The length of the footer and the magic, after it."""

_FIELD_ID, _LOGICAL_TYPE = 9, 10


def needs_annotation(data_type: Type) -> bool:
    """Return whether a type has an annotation that Arrow does not write."""
    return isinstance(data_type, VariantType | GeometryType | GeographyType)


def annotate_footer(tail: bytes, kinds: Mapping[int, Type]) -> bytes:
    """Return the end of a file, including its footer, with annotations of the columns with these field ids."""
    footer_bytes = int.from_bytes(tail[-TAIL_BYTES:-4], "little")
    if tail[-4:] != MAGIC or footer_bytes + TAIL_BYTES > len(tail):
        raise _unexpected_footer("it does not end with a footer")
    start = len(tail) - TAIL_BYTES - footer_bytes
    try:
        footer = _annotate(tail[start : start + footer_bytes], kinds)
    except BadBytes as error:
        raise _unexpected_footer(str(error)) from error
    except IndexError:
        raise _unexpected_footer("its footer is truncated") from None
    return tail[:start] + footer + len(footer).to_bytes(4, "little") + MAGIC


def _annotate(footer: bytes, kinds: Mapping[int, Type]) -> bytes:
    reader = CompactReader(footer)
    number, wire = reader.field(0)
    if (number, wire) != (1, I32):
        raise _unexpected_footer("its footer does not begin with a version")
    reader.skip(wire)
    number, wire = reader.field(number)
    if (number, wire) != (2, LIST):
        raise _unexpected_footer("its footer has no schema")
    count, element = reader.list_head()
    if element != STRUCT:
        raise _unexpected_footer("its schema is not a list of elements")
    pieces: list[bytes] = []
    written = 0
    remaining = dict(kinds)
    for _ in range(count):
        field_id, last = _read_element(reader)
        data_type = None if field_id is None else remaining.pop(field_id, None)
        if data_type is None:
            continue
        if last != _FIELD_ID:
            raise _unexpected_footer(f"the column of field id {field_id} already has an annotation")
        end = reader.at - 1
        pieces += (footer[written:end], field_head(last, _LOGICAL_TYPE, STRUCT), _logical_type(data_type))
        written = end
    if remaining:
        raise _unexpected_footer(f"it has no column of field id {min(remaining)}")
    return b"".join((*pieces, footer[written:]))


def _read_element(reader: CompactReader) -> tuple[int | None, int]:
    """Read a schema element; return its field id and the number of its last field."""
    field_id = None
    last = 0
    while True:
        number, wire = reader.field(last)
        if wire == STOP:
            return field_id, last
        last = number
        if number == _FIELD_ID and wire == I32:
            field_id = reader.integer()
        else:
            reader.skip(wire)


def _logical_type(data_type: Type) -> bytes:
    if isinstance(data_type, VariantType):
        # The version of the variant encoding, a byte.
        return _union(16, field_head(0, 1, BYTE) + b"\x01")
    if isinstance(data_type, GeometryType):
        return _union(17, b"" if data_type.crs == DEFAULT_CRS else _text_field(0, 1, data_type.crs))
    if isinstance(data_type, GeographyType):
        crs = b"" if data_type.crs == DEFAULT_CRS else _text_field(0, 1, data_type.crs)
        algorithm = encode_zigzag(EDGE_ALGORITHMS.index(data_type.algorithm))
        return _union(18, crs + field_head(1 if crs else 0, 2, I32) + algorithm)
    raise UnsupportedError(f"Cannot write a Parquet file: {data_type} has no annotation")


def _union(number: int, content: bytes) -> bytes:
    """Return a union with a structure as its member."""
    return field_head(0, number, STRUCT) + content + bytes((STOP, STOP))


def _text_field(before: int, number: int, text: str) -> bytes:
    data = text.encode()
    return field_head(before, number, BINARY) + encode_varint(len(data)) + data


def _unexpected_footer(reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"Cannot annotate the Parquet file: {reason}",
        hint="This version of pyarrow writes footers in an unexpected form; install a supported version.",
    )
