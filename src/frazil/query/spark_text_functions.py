"""Text functions that were tested to have Spark's meaning in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from frazil.query.spark_casts import NEEDS_SPARK, cast, coerce
from frazil.query.spark_registry import (
    MANY,
    literal_text,
    of_type,
    register,
    register_cast,
    register_simple,
    whole_number,
)
from frazil.query.spark_types import (
    BINARY,
    BOOLEAN,
    INT,
    STRING,
    NotTranslatable,
    Typed,
    call,
    cast_to,
    choose,
    combine,
    fail,
    paren,
    repeated,
)

register_simple("contains", "contains", BOOLEAN, STRING, STRING)
register_simple("startswith", "starts_with", BOOLEAN, STRING, STRING)
register_simple("endswith", "ends_with", BOOLEAN, STRING, STRING)
register_cast("octet_length", "strlen", INT, STRING)


def _lengths() -> None:
    @register("length char_length character_length len", 1)
    def length(arguments: Sequence[Typed]) -> Typed:
        value = of_type(arguments[0], STRING, BINARY)
        name = "octet_length" if value.type == BINARY else "length"
        return combine(cast_to(call(name, value.copy_tree()), INT), INT, [value])


_lengths()


_SUPPLEMENTARY = r"\x{1C80}-\x{1C8F}\x{A7C0}-\x{A7FF}\x{10000}-\x{1EFFF}"
"""Letters that versions of Unicode after 13 map differently, and the scripts beyond the basic plane."""
_OTHER_UPPER = (
    r"\x{DF}\x{149}\x{19B}\x{1F0}\x{264}\x{390}\x{3B0}\x{587}\x{1E96}-\x{1E9A}\x{1F50}-\x{1FFF}\x{FB00}-\x{FB17}"
)
_OTHER_LOWER = r"\x{130}\x{3A3}"


def _case_of_letters(names: str, duckdb: str, others: str) -> None:
    """Register upper or lower, except for letters that only Spark maps to several letters, or depending on context."""

    @register(names, 1)
    def scalar(arguments: Sequence[Typed]) -> Typed:
        value = of_type(arguments[0], STRING)
        has_others = call("regexp_matches", repeated(value), exp.Literal.string(f"[{others}{_SUPPLEMENTARY}]"))
        refusal = fail(f"Cannot compute {duckdb} of a letter that engines map differently: {NEEDS_SPARK}")
        tree = choose([(has_others, refusal)], call(duckdb, value.copy_tree()))
        return combine(tree, STRING, [value], can_fail=True)


_case_of_letters("upper ucase", "upper", _OTHER_UPPER)
_case_of_letters("lower lcase", "lower", _OTHER_LOWER)


def trimmed(value: Typed, characters: Typed | None, position: str) -> Typed:
    """Return TRIM; without characters Spark and this translation remove only spaces."""
    value = of_type(value, STRING)
    name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}.get(position.upper())
    text = " " if characters is None else literal_text(characters)
    if name is None or not text or not text.isascii():
        raise NotTranslatable(f"TRIM of the characters {text!r}")
    return combine(call(name, value.copy_tree(), exp.Literal.string(text)), STRING, [value])


for _name, _position in (("ltrim", "LEADING"), ("rtrim", "TRAILING"), ("btrim", "BOTH")):
    register(_name, 1)(lambda arguments, position=_position: trimmed(arguments[0], None, position))  # type: ignore[misc]


@register("concat", 1, MANY)
def _concat(arguments: Sequence[Typed]) -> Typed:
    values = [cast(value, STRING) if value.type != STRING else value for value in arguments]
    tree = paren(values[0].copy_tree())
    for value in values[1:]:
        tree = exp.DPipe(this=tree, expression=paren(value.copy_tree()), safe=True)
    return combine(exp.Paren(this=tree), STRING, values)


@register("concat_ws", 2, MANY)
def _concat_ws(arguments: Sequence[Typed]) -> Typed:
    values = [of_type(arguments[0], STRING), *(coerce(value, STRING) for value in arguments[1:])]
    return combine(call("concat_ws", *(value.copy_tree() for value in values)), STRING, values)


@register("replace", 2, 3)
def _replace(arguments: Sequence[Typed]) -> Typed:
    values = [of_type(value, STRING) for value in arguments]
    trees = [value.copy_tree() for value in values] + [exp.Literal.string("")] * (3 - len(values))
    return combine(call("replace", *trees), STRING, values)


for _name in ("left", "right"):

    @register(_name, 2)
    def _end(arguments: Sequence[Typed], name: str = _name) -> Typed:
        value, length = of_type(arguments[0], STRING), whole_number(arguments[1], 0)
        return combine(call(name, value.copy_tree(), exp.Literal.number(length)), STRING, [value])


@register("substring substr", 2, 3)
def _substring(arguments: Sequence[Typed]) -> Typed:
    value, start = of_type(arguments[0], STRING), whole_number(arguments[1], 0)
    lengths = [exp.Literal.number(whole_number(length, 0)) for length in arguments[2:]]
    # Spark's positions start at 1, and 0 is treated as 1.
    tree = call("substring", value.copy_tree(), exp.Literal.number(max(start, 1)), *lengths)
    return combine(tree, STRING, [value])


@register("instr", 2)
def _instr(arguments: Sequence[Typed]) -> Typed:
    values = [of_type(value, STRING) for value in arguments]
    return combine(cast_to(call("instr", *(value.copy_tree() for value in values)), INT), INT, values)


@register("locate position", 2)
def _locate(arguments: Sequence[Typed]) -> Typed:
    return _instr(arguments[::-1])


for _name in ("lpad", "rpad"):

    @register(_name, 2, 3)
    def _pad(arguments: Sequence[Typed], name: str = _name) -> Typed:
        value, length = of_type(arguments[0], STRING), whole_number(arguments[1], 0)
        padding = literal_text(arguments[2]) if len(arguments) > 2 else " "
        if not padding or length > MANY:
            raise NotTranslatable("the padding is empty or long")
        tree = call(name, value.copy_tree(), exp.Literal.number(length), exp.Literal.string(padding))
        return combine(tree, STRING, [value])


@register("repeat", 2)
def _repeat(arguments: Sequence[Typed]) -> Typed:
    value, times = of_type(arguments[0], STRING), whole_number(arguments[1], 0)
    if times > MANY:
        raise NotTranslatable(f"more than {MANY} times")
    return combine(call("repeat", value.copy_tree(), exp.Literal.number(times)), STRING, [value])


register_simple("md5", "md5", STRING, STRING)


@register("sha2", 2)
def _sha2(arguments: Sequence[Typed]) -> Typed:
    if whole_number(arguments[1], 0) not in {0, 256}:
        raise NotTranslatable("only 256 bits agree")
    value = of_type(arguments[0], STRING)
    return combine(call("sha256", value.copy_tree()), STRING, [value])
