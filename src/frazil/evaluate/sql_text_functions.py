"""More functions of Spark SQL over Arrow columns: of text, hashes of it, and patterns."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.evaluate import sql_types as t
from frazil.evaluate.compile_expression import FUNCTIONS, Compiled, Compiler, Rows, Values
from frazil.evaluate.sql_functions import each, like_regex, of_kinds

_MOST_CHARACTERS = 1 << 24
_SHA2 = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}


def _concat_ws(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    if not arguments or any(argument.data_type not in (t.STRING, t.NULL) for argument in arguments):
        raise t.left_to_spark("concat_ws is known for text here")
    separator, *parts = (compiler.cast(argument, t.STRING) for argument in arguments)

    def run(rows: Rows) -> Values:
        if not parts:
            found = separator.run(rows)
            return pc.if_else(pc.is_valid(found), "", found)
        texts = [compiled.array(rows) for compiled in parts]
        # Arrow leaves out rows of which all texts are null: of those the first is empty.
        is_missing = reduce(pc.and_, [values.is_null() for values in texts])
        texts[0] = pc.if_else(is_missing, "", texts[0])
        return pc.binary_join_element_wise(*texts, separator.run(rows), null_handling="skip")

    return Compiled(t.STRING, run, any(compiled.may_fail for compiled in (separator, *parts)))


def _repeat(text: str, count: int) -> str:
    if len(text) * count > _MOST_CHARACTERS:
        raise t.left_to_spark(f"repeat makes a text of more than {_MOST_CHARACTERS} characters")
    return text * max(count, 0)


def _translate(text: str, old: str, new: str) -> str:
    if "\0" in new:
        raise t.left_to_spark("translate to the character 0 is not supported")
    found: dict[int, str] = {}
    for offset, char in enumerate(old):
        found.setdefault(ord(char), new[offset] if offset < len(new) else "")
    return text.translate(found)


def _substring_index(text: str, mark: str, count: int) -> str:
    if not mark or count == 0:
        return ""
    if count > 0:
        offset = -1
        for _ in range(min(count, len(text) + 1)):
            offset = text.find(mark, offset + 1)
            if offset < 0:
                return text
        return text[:offset]
    offset = len(text) - len(mark) + 1
    for _ in range(min(-count, len(text) + 1)):
        offset = text.rfind(mark, 0, offset - 1 + len(mark)) if offset > 0 else -1
        if offset < 0:
            return text
    return text[offset + len(mark) :]


# Hashes


def _of_bytes(operation: Callable[..., Any], result: pa.DataType = t.STRING) -> Callable[..., Compiled]:
    """Return a function of bytes, or of text in UTF-8."""

    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        if len(arguments) != 1 or arguments[0].data_type not in (t.STRING, t.BINARY):
            raise t.left_to_spark("hashes are known for text and bytes here")
        child = arguments[0]
        run = each(lambda value: operation(value.encode() if isinstance(value, str) else value), result)
        return Compiled(result, lambda rows: run(child.run(rows)), child.may_fail)

    return build


def _sha2(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    literal = arguments[1].literal if len(arguments) == 2 else None
    if literal is None or literal.value not in _SHA2:
        raise t.left_to_spark(f"the bits of sha2 are one of {', '.join(map(str, _SHA2))} here")
    algorithm = _SHA2[literal.value]
    return _of_bytes(lambda data: algorithm(data).hexdigest())(compiler, arguments[:1])


def _hex(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    if len(arguments) == 1 and t.is_integer(arguments[0].data_type):
        child = compiler.cast(arguments[0], t.LONG)
        run = each(lambda value: f"{value & 0xFFFFFFFFFFFFFFFF:X}", t.STRING)
        return Compiled(t.STRING, lambda rows: run(child.run(rows)), child.may_fail)
    return _of_bytes(lambda data: data.hex().upper())(compiler, arguments)


# Patterns


def _ilike(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    texts = [None if argument.literal is None else argument.literal.value for argument in arguments[1:]]
    if any(not isinstance(text, str) or not text.isascii() for text in texts):
        raise t.left_to_spark("the pattern of ilike is a literal of ASCII characters here")
    regex = like_regex(str(texts[0]).lower(), str(texts[1]) if len(texts) > 1 else "\\")
    child = FUNCTIONS["lower"](compiler, arguments[:1])
    return Compiled(t.BOOLEAN, lambda rows: pc.match_substring_regex(child.run(rows), regex), child.may_fail)


def _rlike(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    literal = arguments[1].literal if len(arguments) == 2 else None
    if literal is None or not isinstance(literal.value, str) or arguments[0].data_type not in (t.STRING, t.NULL):
        raise t.left_to_spark("rlike is known for text and a literal pattern here")
    child = compiler.cast(arguments[0], t.STRING)
    regex = _shared_regex(literal.value)
    return Compiled(t.BOOLEAN, lambda rows: pc.match_substring_regex(child.run(rows), regex), child.may_fail)


_CLASS = r"\[\^?(?:[A-Za-z0-9 _.,:;@/]-[A-Za-z0-9]|[A-Za-z0-9 _.,:;@/#%+*?!=<>'|()]|\\[dw.\-\[\]\\^$])+-?\]"
_PIECE = re.compile(
    rf"""
    (?P<repeat>[*+?]\?? | \{{\d{{1,3}}(?:,\d{{0,3}})?\}}\??)
  | (?P<same>[A-Za-z0-9 _@,:;<>=!~%&\#'"/-] | \\[dDwW.*+?()\[\]{{}}|^$\\/-] | {_CLASS} | \(\?: | [()|])
  | (?P<dot>\.)
  | (?P<first>\A\^)
  | (?P<last>\$\Z)
    """,
    re.VERBOSE,
)
_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_OTHERS = {"dot": f"[^{_LINE_ENDS}]", "first": r"\A", "last": rf"(?:\r\n|[{_LINE_ENDS}])?\z"}


def _shared_regex(pattern: str) -> str:
    """Return a pattern of Java's for Arrow, which means the same there; refuse what may mean something else."""
    made: list[str] = []
    kinds: list[str] = ["begin"]
    offset = 0
    while (match := _PIECE.match(pattern, offset)) is not None and offset < len(pattern):
        kinds.append("begin" if match.group() in ("(", "(?:", "|") else str(match.lastgroup))
        made.append(_OTHERS.get(kinds[-1], match.group()))
        offset = match.end()
    # Java knows more about what follows a repetition; and an end of line that is two characters, before `$`, is one.
    is_repeated = any(
        kinds[index - 1] in ("repeat", "begin", "first") for index, mark in enumerate(kinds) if mark == "repeat"
    )
    has_others = kinds[-1] == "last" and any(mark in pattern for mark in ("[^", "\\D", "\\W"))
    if offset < len(pattern) or is_repeated or has_others:
        raise t.left_to_spark(f"the pattern {pattern!r} has something that is not supported")
    regex = "".join(made)
    try:
        pc.match_substring_regex(pa.array([""]), regex)
    except pa.ArrowInvalid as problem:
        raise t.left_to_spark(f"the pattern {pattern!r} is not supported") from problem
    return regex


_TEXT_AND_COUNT = (t.STRING, t.INT)
_TWO_TEXTS = (t.STRING, t.STRING)
FUNCTIONS |= {
    "concat_ws": _concat_ws,
    "btrim": of_kinds(lambda values: pc.utf8_trim(values, " ")),
    "instr": of_kinds(each(lambda text, needle: text.find(needle) + 1, t.INT), t.INT, _TWO_TEXTS),
    "locate": of_kinds(each(lambda needle, text: text.find(needle) + 1, t.INT), t.INT, _TWO_TEXTS),
    "position": of_kinds(each(lambda needle, text: text.find(needle) + 1, t.INT), t.INT, _TWO_TEXTS),
    "repeat": of_kinds(each(_repeat, t.STRING), t.STRING, _TEXT_AND_COUNT),
    "translate": of_kinds(each(_translate, t.STRING), t.STRING, (t.STRING,) * 3),
    "substring_index": of_kinds(each(_substring_index, t.STRING), t.STRING, (t.STRING, t.STRING, t.INT)),
    "ascii": of_kinds(each(lambda text: ord(text[0]) if text else 0, t.INT), t.INT),
    "character_length": of_kinds(pc.utf8_length, t.INT),
    "octet_length": of_kinds(lambda values: pc.binary_length(values.cast(t.BINARY)), t.INT),
    "md5": _of_bytes(lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest()),
    "sha": _of_bytes(lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest()),
    "sha1": _of_bytes(lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest()),
    "sha2": _sha2,
    "crc32": _of_bytes(zlib.crc32, t.LONG),
    "hex": _hex,
    "ilike": _ilike,
    "rlike": _rlike,
    "regexp": _rlike,
    "regexp_like": _rlike,
}
