"""The Arrow types that may be written as a primitive type, and their casts. Used by `match_columns.py`.

A cast is offered only if the type of the data guarantees that each value is preserved or, if its times are finer than
the table's, if Arrow checks each value. A value that does not fit is an error that names the column.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_arrays import is_binary, is_text
from frazil.codec.arrow_schema import to_arrow_type
from frazil.errors import SchemaMismatchError
from frazil.spec import types as ft
from frazil.spec.type_promotion import is_promotion_allowed

Convert = Callable[[Any], Any]

_WRAPPERS: dict[str, tuple[type[ft.Type], ...]] = {
    "arrow.uuid": (ft.UuidType,),
    "arrow.json": (ft.StringType,),
    "geoarrow.wkb": (ft.GeometryType, ft.GeographyType),
}
"""Extension types that hold values of the format, by name."""


def find_cast(data_type: ft.Type, source: pa.DataType, path: str, *, format_version: int) -> Convert | None:
    """Return the conversion from an Arrow type to a primitive type, or None if values could be lost."""
    if isinstance(source, pa.BaseExtensionType):
        if not isinstance(data_type, _WRAPPERS.get(source.extension_name, ())):
            return None
        return _after(lambda array: array.storage, data_type, source.storage_type, path, format_version)
    if pa.types.is_dictionary(source):
        return _after(lambda array: array.dictionary_decode(), data_type, source.value_type, path, format_version)
    if pa.types.is_run_end_encoded(source):
        return _after(pc.run_end_decode, data_type, source.value_type, path, format_version)
    if isinstance(data_type, ft.UuidType) and is_text(source):
        return _uuids_of_text(path)
    accepts = _ACCEPTED.get(type(data_type))
    if accepts is None or not accepts(source, data_type):
        is_promoted = pa.types.is_date(source) and is_promotion_allowed(
            ft.DATE, data_type, format_version=format_version
        )
        if not is_promoted:
            return None
    return _cast(data_type, source, path)


def _after(first: Convert, data_type: ft.Type, source: pa.DataType, path: str, format_version: int) -> Convert | None:
    then = find_cast(data_type, source, path, format_version=format_version)
    return None if then is None else lambda array: then(first(array))


def _cast(data_type: ft.Type, source: pa.DataType, path: str) -> Convert:
    target = to_arrow_type(data_type)
    storage = target.storage_type if isinstance(target, pa.BaseExtensionType) else target

    def convert(array: Any) -> Any:
        if source != storage:
            try:
                array = array.cast(storage)
            except pa.ArrowException as error:
                raise SchemaMismatchError(
                    f"Cannot write the column {path!r}: a value of type {source} does not fit {data_type}: {error}"
                ) from error
        return array if storage is target else pa.ExtensionArray.from_storage(target, array)

    return convert


def _uuids_of_text(path: str) -> Convert:
    """Return the conversion of uuids from text, the form used by engines without the type."""

    def convert(array: Any) -> Any:
        try:
            values = [None if value is None else uuid.UUID(value).bytes for value in array.to_pylist()]
        except ValueError as error:
            raise SchemaMismatchError(
                f"Cannot write the column {path!r}: a value of type {array.type} does not fit uuid: {error}"
            ) from error
        return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(values, pa.binary(16)))

    return convert


def _one_of(*accepted: pa.DataType) -> Callable[[pa.DataType, Any], bool]:
    return lambda source, data_type: source in accepted


def _is_bytes(source: pa.DataType) -> bool:
    return is_binary(source) or bool(pa.types.is_fixed_size_binary(source))


def _is_narrower_decimal(source: pa.DataType, data_type: ft.DecimalType) -> bool:
    return bool(
        pa.types.is_decimal(source)
        and source.scale <= data_type.scale
        and source.precision - source.scale <= data_type.precision - data_type.scale
    )


_SMALL = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())
_ACCEPTED: dict[type[ft.Type], Callable[[pa.DataType, Any], bool]] = {
    ft.BooleanType: _one_of(pa.bool_()),
    ft.IntType: _one_of(*_SMALL),
    ft.LongType: _one_of(*_SMALL, pa.int64(), pa.uint32()),
    ft.FloatType: _one_of(pa.float16(), pa.float32()),
    ft.DoubleType: _one_of(pa.float16(), pa.float32(), pa.float64()),
    ft.DecimalType: _is_narrower_decimal,
    ft.DateType: lambda source, data_type: pa.types.is_date(source),
    ft.TimeType: lambda source, data_type: pa.types.is_time(source),
    ft.TimestampType: lambda source, data_type: pa.types.is_timestamp(source) and source.tz is None,
    ft.TimestampNsType: lambda source, data_type: pa.types.is_timestamp(source) and source.tz is None,
    ft.TimestamptzType: lambda source, data_type: pa.types.is_timestamp(source) and source.tz is not None,
    ft.TimestamptzNsType: lambda source, data_type: pa.types.is_timestamp(source) and source.tz is not None,
    ft.StringType: lambda source, data_type: is_text(source),
    ft.BinaryType: lambda source, data_type: _is_bytes(source),
    ft.GeometryType: lambda source, data_type: is_binary(source),
    ft.GeographyType: lambda source, data_type: is_binary(source),
    # Some libraries have only bytes of variable length; a value of another length is refused.
    ft.UuidType: lambda source, data_type: source == pa.binary(16) or is_binary(source),
    ft.FixedType: lambda source, data_type: source == pa.binary(data_type.length) or is_binary(source),
    ft.UnknownType: lambda source, data_type: pa.types.is_null(source),
}
