"""Predicates as JSON, as the REST protocol and the expressions specification write them.

Reads both forms: operands as `child`, `left` and `right`, and the older `term` and `value` that most
servers and clients speak. Writes the older form, which both sides of every release understand.
"""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

from frazil.codec.single_value_json import decode_json_value, encode_json_value
from frazil.errors import InvalidRequestError
from frazil.expr.bind import bind_term
from frazil.expr.predicates import (
    FALSE,
    TRUE,
    Always,
    And,
    Bound,
    BoundTransform,
    Not,
    Op,
    Or,
    Predicate,
    Reference,
    SqlTest,
    Term,
    TransformTerm,
    Unbound,
    all_of,
    any_of,
    leaf,
    not_,
)
from frazil.spec.schema import Schema
from frazil.spec.transforms import parse_transform

MAX_DEPTH = 200
"""How deep a predicate may nest: as in conditions of text, so that every later pass holds within the stack."""


def encode_predicate(predicate: Predicate) -> Any:
    """Return a predicate as a JSON value."""
    if isinstance(predicate, Always):
        return predicate.value
    if isinstance(predicate, Not):
        return {"type": "not", "child": encode_predicate(predicate.child)}
    if isinstance(predicate, And | Or):
        return _encode_pairs("and" if isinstance(predicate, And) else "or", predicate.children)
    if not isinstance(predicate, Unbound | Bound):
        raise InvalidRequestError(f"Cannot write {predicate!s} as JSON: it is not a predicate of this library")
    if isinstance(predicate, SqlTest):
        raise InvalidRequestError(
            f"Cannot write {predicate!s} as JSON: what SQL means by it depends on the column's type",
            hint="Bind it to a schema first.",
        )
    encoded: dict[str, Any] = {"type": predicate.op.value, "term": _encode_term(predicate)}
    literals = [_encode_literal(predicate, literal) for literal in predicate.literals]
    if predicate.op.is_set:
        encoded["values"] = literals
    elif literals:
        encoded["value"] = literals[0]
    return encoded


def _encode_pairs(type_name: str, children: tuple[Predicate, ...]) -> Any:
    """Return children as a balanced tree of pairs, so that its depth grows with the logarithm."""
    if len(children) == 1:
        return encode_predicate(children[0])
    middle = len(children) // 2
    return {
        "type": type_name,
        "left": _encode_pairs(type_name, children[:middle]),
        "right": _encode_pairs(type_name, children[middle:]),
    }


def _encode_term(predicate: Unbound | Bound) -> Any:
    term = predicate.term
    if isinstance(term, Reference):
        return term.name
    if isinstance(term, TransformTerm | BoundTransform):
        source = term.reference
        name = source.name if isinstance(source, Reference) else ".".join(source.path)
        return {"type": "transform", "transform": str(term.transform), "term": name}
    return ".".join(term.path)


def _encode_literal(predicate: Unbound | Bound, value: Any) -> Any:
    if isinstance(predicate, Bound):
        return encode_json_value(value, predicate.term.result_type)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal | uuid.UUID) else value


def decode_predicate(value: Any, schema: Schema | None = None) -> Predicate:
    """Return the predicate in a JSON value, unbound; a schema gives literals their types."""
    return _decode(value, schema, 0)


def _decode(value: Any, schema: Schema | None, depth: int) -> Predicate:
    if depth > MAX_DEPTH:
        raise _fail(f"it is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise _fail(f"expected an object with a type, found {_shown(value)}")
    type_name = value["type"].lower().replace("_", "-")
    if type_name in ("true", "false"):
        return TRUE if type_name == "true" else FALSE
    if type_name == "literal" and isinstance(value.get("value"), bool):
        return TRUE if value["value"] else FALSE
    if type_name == "not":
        return not_(_decode(_part(value, "child"), schema, depth + 1))
    if type_name in ("and", "or"):
        sides = [_decode(_part(value, side), schema, depth + 1) for side in ("left", "right")]
        return all_of(*sides) if type_name == "and" else any_of(*sides)
    try:
        op = Op(type_name)
    except ValueError:
        raise _fail(f"unknown type {value['type']!r}") from None
    return _decode_leaf(op, value, schema)


def _decode_leaf(op: Op, value: dict[str, Any], schema: Schema | None) -> Predicate:
    operand = "child" if op.is_unary or op.is_set else "left"
    term = _decode_term(value["term"] if "term" in value else _part(value, operand), schema)
    if op.is_unary:
        return leaf(op, term)
    if op.is_set:
        literals = _decode_literals(_part(value, "values"))
    else:
        literals = [_decode_literal(value["value"] if "value" in value else _part(value, "right"))]
    if schema is not None:
        result_type = bind_term(schema, term).result_type
        literals = [decode_json_value(literal, result_type) for literal in literals]
    return leaf(op, term, *literals)


def _decode_literals(values: Any) -> list[Any]:
    if isinstance(values, dict) and values.get("type") == "literals":
        values = _part(values, "values")
    if not isinstance(values, list):
        raise _fail(f"expected a list of literals, found {_shown(values)}")
    return [_decode_literal(value) for value in values]


def _decode_literal(value: Any) -> Any:
    if isinstance(value, dict) and value.get("type") == "literal":
        value = _part(value, "value")
    if not isinstance(value, bool | int | float | str):
        raise _fail(f"expected a literal, found {_shown(value)}")
    return value


def _decode_term(term: Any, schema: Schema | None) -> Term:
    if isinstance(term, str):
        return Reference(term)
    type_name = term.get("type") if isinstance(term, dict) else None
    if type_name == "reference":
        return _decode_reference(term, schema)
    if type_name == "transform":
        source = _decode_term(_part(term, "term"), schema)
        return _transform_term(str(_part(term, "transform")), source)
    if type_name == "apply":
        return _decode_apply(term, schema)
    raise _fail(f"expected a column or a transform, found {_shown(term)}")


def _decode_reference(term: dict[str, Any], schema: Schema | None) -> Reference:
    if isinstance(term.get("id"), int):
        if schema is None:
            raise _fail(f"field id {term['id']} needs a schema")
        return Reference(schema.name_of(term["id"]))
    name = term.get("name", term.get("term"))
    if not isinstance(name, str):
        raise _fail(f"expected a reference with a name or an id, found {_shown(term)}")
    return Reference(name)


def _decode_apply(term: dict[str, Any], schema: Schema | None) -> Term:
    function, arguments = _part(term, "function"), _part(term, "arguments")
    if isinstance(function, dict):
        function = _part(function, "identifier")
    name = function[-1] if isinstance(function, list) and function else function
    if not isinstance(name, str) or not isinstance(arguments, list) or not 1 <= len(arguments) <= 2:
        raise _fail(f"expected a transform's call, found {_shown(term)}")
    source = _decode_term(arguments[-1], schema)
    if len(arguments) == 1:
        return _transform_term(name, source)
    return _transform_term(f"{name}[{_decode_literal(arguments[0])}]", source)


def _transform_term(text: str, source: Term) -> Term:
    if not isinstance(source, Reference):
        raise _fail("a transform of a transform cannot be evaluated")
    return TransformTerm(parse_transform(text), source)


def _part(value: dict[str, Any], name: str) -> Any:
    if name not in value:
        raise _fail(f"{name!r} is missing from {_shown(value)}")
    return value[name]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _fail(reason: str) -> InvalidRequestError:
    return InvalidRequestError(f"Cannot read the predicate: {reason}")
