"""Writer schemas of Avro containers, parsed, checked and flattened. Avro specification: "Schema Declaration".

Fields are read by id, so names do not matter. A schema becomes a tree of `AvroType` in which named types are resolved
and a union with null, the only union that the format allows ("Avro", Data Type Mappings), is a flag of the other
type. `flatten` then returns the tree's leaves. A record that is not optional has no bytes of its own, so its fields
can replace it: the bytes of a row are the bytes of its leaves, one after the other. This turns `data_file` and
`partition` into plain top-level columns.

Schemas come from untrusted files: depth, size and recursion are bounded, and array items of no bytes, which could make
a reader loop, are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from frazil.codec.avro_container import AvroOrigin
from frazil.spec.frozen_map import FrozenMap

_MAX_DEPTH = 32
_MAX_NODES = 50_000
_MAX_FIXED_BYTES = 1 << 20
_MAX_KNOWN_BYTES = 64 << 10
_INT_MAX = 2**31 - 1

_MIN_SIZES: Mapping[str, int] = FrozenMap(
    {"null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1}
)


@dataclass(frozen=True, slots=True)
class AvroType:
    """One node of a writer schema.

    `kind` is the Avro name, with two simplifications: an enum is the int it is stored as, and a union
    with null is its other branch with `is_optional` set. `items` are an array's items or a map's values.
    `min_size` is the fewest bytes that a value takes, `weight` the number of nodes in the tree.
    """

    kind: str
    is_optional: bool = False
    null_branch: int = 0
    size: int = 0
    items: AvroType | None = None
    fields: tuple[AvroField, ...] = ()
    logical: str | None = None
    precision: int = 0
    scale: int = 0
    adjusts_to_utc: bool = False
    min_size: int = 0
    weight: int = 1


@dataclass(frozen=True, slots=True)
class AvroField:
    """One field of a record; the id is None if the writer gave none."""

    name: str
    field_id: int | None
    avro_type: AvroType


@dataclass(frozen=True, slots=True)
class Leaf:
    """A separate part of a row, and the ids of the fields that lead to it."""

    path: tuple[int | None, ...]
    name: str
    avro_type: AvroType


class _SchemaRefusal(Exception):
    """A reason to refuse a schema; `parse_schema` adds the file."""


def parse_schema(text: bytes, origin: AvroOrigin) -> AvroType:
    """Return the record type that a container's `avro.schema` describes."""
    try:
        return _parse_known(text) if len(text) <= _MAX_KNOWN_BYTES else _parse(text)
    except _SchemaRefusal as problem:
        raise origin.fail(str(problem)) from None


def _parse(text: bytes) -> AvroType:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _SchemaRefusal(f"its schema is not JSON ({str(error)[:80]})") from None
    root = _Parser().parse(document, namespace="", depth=0)
    if root.kind != "record" or root.is_optional:
        raise _SchemaRefusal(f"its schema is of type {root.kind}, not a record")
    return root


_parse_known = lru_cache(maxsize=32)(_parse)
"""The manifests of a table share a few schemas; parsing one takes longer than decoding a dozen entries."""


class _Parser:
    """A converter of decoded JSON to types; `named` maps each type still being parsed to None."""

    def __init__(self) -> None:
        self.named: dict[str, AvroType | None] = {}
        self.nodes = 0

    def fail(self, reason: str) -> Exception:
        return _SchemaRefusal(f"its schema is not valid: {reason}")

    def parse(self, value: Any, namespace: str, depth: int) -> AvroType:
        self.nodes += 1
        if depth > _MAX_DEPTH or self.nodes > _MAX_NODES:
            raise self.fail("it is nested too deeply or has too many types")
        if isinstance(value, str):
            return self._parse_name(value, namespace)
        if isinstance(value, list):
            return self._parse_union(value, namespace, depth)
        if not isinstance(value, dict):
            raise self.fail(f"expected a type, found {_shown(value)}")
        type_name = value.get("type")
        if isinstance(type_name, dict | list):
            return self.parse(type_name, namespace, depth + 1)
        if not isinstance(type_name, str):
            raise self.fail(f"expected the name of a type, found {_shown(type_name)}")
        if type_name in ("record", "error", "enum", "fixed"):
            return self._parse_named(type_name, value, namespace, depth)
        if type_name == "array":
            items = self.parse(value.get("items"), namespace, depth + 1)
            if items.min_size == 0:
                # Such items take no bytes: a count of two bytes could announce two billion of them.
                raise self.fail("an array has items of no bytes")
            logical = _text(value, "logicalType")
            return AvroType("array", items=items, logical=logical, min_size=1, weight=1 + items.weight)
        if type_name == "map":
            items = self.parse(value.get("values"), namespace, depth + 1)
            if items.min_size == 0:
                raise self.fail("a map has values of no bytes")
            return AvroType("map", items=items, min_size=1, weight=1 + items.weight)
        base = self._parse_name(type_name, namespace)
        if base.kind not in _MIN_SIZES:
            return base
        return AvroType(
            base.kind,
            logical=_text(value, "logicalType"),
            precision=_number(value, "precision"),
            scale=_number(value, "scale"),
            adjusts_to_utc=value.get("adjust-to-utc") in (True, "true"),
            min_size=base.min_size,
        )

    def _parse_name(self, name: str, namespace: str) -> AvroType:
        size = _MIN_SIZES.get(name)
        if size is not None:
            return AvroType(name, min_size=size)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self.named:
            full = name
        defined = self.named.get(full)
        if defined is not None:
            return defined
        problem = "refers to itself" if full in self.named else "is not defined"
        raise self.fail(f"type {name[:80]!r} {problem}")

    def _parse_named(self, type_name: str, value: dict[str, Any], namespace: str, depth: int) -> AvroType:
        name = value.get("name")
        if not isinstance(name, str) or not name:
            raise self.fail(f"a {type_name} has no name")
        own_namespace = value.get("namespace")
        if "." in name:
            full = name
        else:
            own_namespace = own_namespace if isinstance(own_namespace, str) else namespace
            full = f"{own_namespace}.{name}" if own_namespace else name
        if full in self.named:
            raise self.fail(f"type {full[:80]!r} is defined twice")
        self.named[full] = None
        avro_type = self._make_named(type_name, value, full.rpartition(".")[0], depth)
        self.named[full] = avro_type
        return avro_type

    def _make_named(self, type_name: str, value: dict[str, Any], namespace: str, depth: int) -> AvroType:
        if type_name == "enum":
            return AvroType("int", min_size=1)
        if type_name == "fixed":
            size = value.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _MAX_FIXED_BYTES:
                raise self.fail(f"a fixed type has size {_shown(size)}")
            return AvroType(
                "fixed",
                size=size,
                logical=_text(value, "logicalType"),
                precision=_number(value, "precision"),
                scale=_number(value, "scale"),
                min_size=size,
            )
        parts = value.get("fields")
        if not isinstance(parts, list):
            raise self.fail(f"a record has {_shown(parts)} for its fields")
        fields = []
        for field in parts:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise self.fail(f"a field of a record is {_shown(field)}")
            fields.append(
                AvroField(
                    field["name"],
                    self._field_id(field, "field-id"),
                    self.parse(field.get("type"), namespace, depth + 1),
                )
            )
        weight = 1 + sum(field.avro_type.weight for field in fields)
        if weight > _MAX_NODES:
            # Named types can be reused: a short schema may stand for a huge one.
            raise self.fail("it has too many fields")
        return AvroType(
            "record",
            fields=tuple(fields),
            logical=_text(value, "logicalType"),
            min_size=sum(field.avro_type.min_size for field in fields),
            weight=weight,
        )

    def _parse_union(self, branches: list[Any], namespace: str, depth: int) -> AvroType:
        types = [self.parse(branch, namespace, depth + 1) for branch in branches[:3]]
        nulls = [index for index, branch in enumerate(types) if branch.kind == "null"]
        if len(types) != 2 or len(nulls) != 1:
            raise self.fail("a union is not of null and one other type")
        other = types[1 - nulls[0]]
        if other.is_optional:
            raise self.fail("a union holds a union")
        return _as_optional(other, nulls[0])

    def _field_id(self, field: dict[str, Any], key: str) -> int | None:
        value = field.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 11:
            value = int(value)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _INT_MAX:
            raise self.fail(f"field {field['name'][:80]!r} has the id {_shown(value)}")
        return value


def _as_optional(avro_type: AvroType, null_branch: int) -> AvroType:
    return AvroType(
        avro_type.kind,
        True,
        null_branch,
        avro_type.size,
        avro_type.items,
        avro_type.fields,
        avro_type.logical,
        avro_type.precision,
        avro_type.scale,
        avro_type.adjusts_to_utc,
        1,
        avro_type.weight,
    )


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "an object"
    return "a large number" if isinstance(value, int) and abs(value) > 2**64 else repr(value)[:60]


def _text(value: dict[str, Any], key: str) -> str | None:
    text = value.get(key)
    return text if isinstance(text, str) else None


def _number(value: dict[str, Any], key: str) -> int:
    number = value.get(key, 0)
    return number if isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= 1000 else 0


def flatten(root: AvroType, origin: AvroOrigin) -> list[Leaf]:
    """Return the leaves of a record in the order of their bytes, refusing duplicate paths of ids."""
    leaves = list(_walk(root, ()))
    seen: set[tuple[int | None, ...]] = set()
    for leaf in leaves:
        if None in leaf.path:
            continue
        if leaf.path in seen:
            raise origin.fail(f"its schema has two fields with the id {leaf.path[-1]}")
        seen.add(leaf.path)
    return leaves


def _walk(record: AvroType, path: tuple[int | None, ...]) -> Iterator[Leaf]:
    for field in record.fields:
        field_path = (*path, field.field_id)
        if field.avro_type.kind == "record" and not field.avro_type.is_optional and field.avro_type.fields:
            yield from _walk(field.avro_type, field_path)
        else:
            yield Leaf(field_path, field.name, field.avro_type)


def plain_schema(leaves: list[Leaf]) -> dict[str, Any]:
    """Return a schema for the same bytes that any reader accepts, in which leaf n is the column `c<n>`.

    Leaves without bytes and logical types are omitted; every named type gets a new name.
    """
    names = iter(range(_MAX_NODES * 2))
    fields = [
        {"name": f"c{index}", "type": _plain(leaf.avro_type, names)}
        for index, leaf in enumerate(leaves)
        if has_bytes(leaf)
    ]
    return {"type": "record", "name": "row", "fields": fields}


def has_bytes(leaf: Leaf) -> bool:
    """Return whether a leaf takes any bytes; nulls, empty records and `fixed` of size 0 take none."""
    return leaf.avro_type.min_size > 0


def holds_values(avro_type: AvroType) -> bool:
    """Return whether a type has values to read, so is more than a null or an optional empty record."""
    return avro_type.min_size > 0 and not (avro_type.is_optional and _inner_size(avro_type) == 0)


def _plain(avro_type: AvroType, names: Iterator[int]) -> Any:
    if avro_type.is_optional:
        inner = AvroType(
            avro_type.kind,
            size=avro_type.size,
            items=avro_type.items,
            fields=avro_type.fields,
            min_size=_inner_size(avro_type),
            weight=avro_type.weight,
        )
        if inner.min_size == 0:
            # Only the branch number is stored, with the bytes of an int.
            return "int"
        branches = [_plain(inner, names)]
        branches.insert(avro_type.null_branch, "null")
        return branches
    if avro_type.kind == "fixed":
        return {"type": "fixed", "name": f"t{next(names)}", "size": avro_type.size}
    if avro_type.kind == "array":
        return {"type": "array", "items": _plain(_items(avro_type), names)}
    if avro_type.kind == "map":
        return {"type": "map", "values": _plain(_items(avro_type), names)}
    if avro_type.kind == "record":
        fields = [
            {"name": f"c{index}", "type": _plain(field.avro_type, names)}
            for index, field in enumerate(avro_type.fields)
            if field.avro_type.min_size > 0
        ]
        return {"type": "record", "name": f"t{next(names)}", "fields": fields}
    return avro_type.kind


def _items(avro_type: AvroType) -> AvroType:
    assert avro_type.items is not None
    return avro_type.items


def _inner_size(avro_type: AvroType) -> int:
    """Return the fewest bytes of an optional type's value, without its branch number."""
    if avro_type.kind == "record":
        return sum(field.avro_type.min_size for field in avro_type.fields)
    return avro_type.size if avro_type.kind == "fixed" else _MIN_SIZES.get(avro_type.kind, 1)
