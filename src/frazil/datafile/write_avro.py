"""Write Avro data files. Specification: "Avro" (Appendix A).

The columnar encoder of manifests (`codec/avro_encode.py`) writes them, one container block at a time. Field ids are in
the file's schema. The table's schema is stored as JSON under `iceberg.schema`, as in Iceberg Java.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_schema, to_arrow_type
from frazil.codec.avro_codecs import compressor
from frazil.codec.avro_container import (
    CODEC_KEY,
    SCHEMA_KEY,
    SYNC_SIZE,
    AvroOrigin,
    encode_header,
)
from frazil.codec.avro_encode import encode_blocks
from frazil.codec.avro_schema import parse_schema
from frazil.codec.avro_types import decimal_bytes, encode_avro_schema
from frazil.codec.json_text import encode_json
from frazil.codec.partition_arrow import to_avro_form
from frazil.codec.schema_json import encode_schema
from frazil.codec.varint import encode_zigzag
from frazil.datafile.format_writer import (
    Convert,
    FileLayout,
    FormatWriter,
    WriteFormat,
    arrow_errors,
    find_reshape,
    reshape_table,
)
from frazil.spec import properties as known
from frazil.spec.data_file import FileFormat
from frazil.spec.properties import read_property
from frazil.spec.schema import Schema
from frazil.spec.types import DecimalType, ListType, MapType, NestedField, StructType, Type
from frazil.storage.new_file import NewFile

TABLE_SCHEMA_KEY = "iceberg.schema"


class AvroFormat(WriteFormat):
    """Avro files of one schema with a table's properties."""

    __slots__ = ("_arrow", "_header", "_reshapes", "compress", "leaves")

    file_format = FileFormat.AVRO

    def __init__(self, schema: Schema, properties: Mapping[str, str], *, is_delete: bool = False) -> None:
        super().__init__(schema)
        codec = read_property(properties, known.DELETE_AVRO_COMPRESSION if is_delete else known.AVRO_COMPRESSION)
        level = known.DELETE_AVRO_COMPRESSION_LEVEL if is_delete else known.AVRO_COMPRESSION_LEVEL
        avro_codec, self.compress = compressor(codec, read_property(properties, level))
        avro_schema = encode_json(encode_avro_schema(schema.struct, "table"))
        root = parse_schema(avro_schema, AvroOrigin("the schema of an Avro file to write", "Avro"))
        self.leaves = [field.avro_type for field in root.fields]
        self._header = {
            SCHEMA_KEY: avro_schema,
            CODEC_KEY: avro_codec.encode(),
            TABLE_SCHEMA_KEY: encode_json(encode_schema(schema)),
        }
        source = to_arrow_schema(schema)
        self._arrow = pa.schema([_avro_field(field) for field in schema.fields])
        self._reshapes = [
            find_reshape(field.field_type, source.field(index).type, self._arrow.field(index).type, _leaf_form)
            for index, field in enumerate(schema.fields)
        ]

    def open(self, file: NewFile) -> FormatWriter:
        """Start an Avro file."""
        # The marker must not occur in the data by chance. The path is unique, so its digest is too.
        sync = hashlib.blake2b(file.path.encode("utf-8", "surrogatepass"), digest_size=SYNC_SIZE).digest()
        file.write(encode_header(self._header, sync))
        return _AvroWriter(self, file, sync)

    def stored_form(self, rows: pa.Table) -> pa.Table:
        """Return rows in the form that Avro stores."""
        return reshape_table(rows, self._reshapes, self._arrow)


class _AvroWriter(FormatWriter):
    __slots__ = ("_file", "_format", "_sync")

    def __init__(self, form: AvroFormat, file: NewFile, sync: bytes) -> None:
        self._format = form
        self._file = file
        self._sync = sync

    def write(self, rows: pa.Table) -> None:
        with arrow_errors("Avro", self._file.path):
            for batch in self._format.stored_form(rows).to_batches():
                for count, content in encode_blocks(self._format.leaves, batch.columns, self._format.compress):
                    self._file.write(encode_zigzag(count) + encode_zigzag(len(content)))
                    self._file.write(content)
                    self._file.write(self._sync)

    def close(self) -> FileLayout:
        return FileLayout()

    def abandon(self) -> None:
        return


def _avro_field(field: NestedField) -> pa.Field:
    return pa.field(field.name, _avro_type(field.field_type), nullable=field.optional)


def _avro_type(data_type: Type) -> pa.DataType:
    """Return the Arrow type that the encoder accepts."""
    if isinstance(data_type, StructType):
        return pa.struct([_avro_field(field) for field in data_type.fields])
    if isinstance(data_type, ListType):
        return pa.list_(_avro_field(data_type.element_field))
    if isinstance(data_type, MapType):
        return pa.map_(_avro_field(data_type.key_field), _avro_field(data_type.value_field))
    if isinstance(data_type, DecimalType):
        return pa.binary(decimal_bytes(data_type.precision))
    plain = to_arrow_type(data_type, has_extensions=False)
    if pa.types.is_temporal(plain):
        return pa.int32() if plain.bit_width == 32 else pa.int64()
    return plain


def _leaf_form(data_type: Type, source: pa.DataType, target: pa.DataType) -> Convert | None:
    if source == target:
        return None
    if isinstance(source, pa.BaseExtensionType):
        return lambda array: array.storage
    return lambda array: to_avro_form(array, data_type)
