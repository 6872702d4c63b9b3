"""Lexers and regular expressions: twice the text costs about twice the time, whatever the text.

Every pattern that a module of the package compiles is found by itself, and is pumped: for each of its loops, the text
that leads there, the loop's own characters many times over, and an end that does not match. Processor's time is
compared, and only once it is worth comparing, so that a busy machine fails nothing.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from re import _constants as opcodes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import frazil
from frazil.errors import FrazilError
from frazil.expr.extract import parse_predicate
from frazil.spec.parse_type import parse_schema, parse_type
from frazil.spec.sorting import parse_sort_term
from frazil.sql.for_spark import changes_as_options, evolution_as_option, script_for_spark
from frazil.table.parse_name import parse_name
from frazil.text.tokens import cut_tokens

_WORTH_COMPARING = 0.03
_FAR_TOO_LONG = 3.0
_MOST_PIECES = 1 << 14
_LIMIT = 3.0
"""Twice the text may take three times as long; where each character costs the text so far, it is four."""


def _seconds(call: Callable[[str], object], text: str) -> float:
    # What other tests left on the heap is no part of it.
    gc.disable()
    try:
        start = time.process_time()
        call(text)
        return time.process_time() - start
    finally:
        gc.enable()


def grows_faster(call: Callable[[str], object], make: Callable[[int], str]) -> bool:
    """Return whether the time of a call grows faster than its text; stops as soon as that is known."""
    size, before = 16, 0.0
    while size <= _MOST_PIECES:
        text = make(size)
        spent = _seconds(call, text)
        if before > _WORTH_COMPARING:
            if spent <= _LIMIT * before:
                return False
            # Something may have come between: what is slow is slow again.
            again = min(spent, *(_seconds(call, text) for _ in range(3)))
            half = make(size // 2)
            return again > _LIMIT * max(before, *(_seconds(call, half) for _ in range(3)))
        if spent > _FAR_TOO_LONG:
            return True
        before = spent
        size *= 2
    return False


# Patterns


def _patterns() -> Iterator[tuple[str, re.Pattern[Any], frozenset[str]]]:
    """Yield each pattern of a module with its name, and the methods of it that the module calls."""
    seen: set[re.Pattern[Any]] = set()
    for module in pkgutil.walk_packages(frazil.__path__, "frazil."):
        if module.name.endswith("__main__"):
            continue
        loaded = importlib.import_module(module.name)
        source = inspect.getsource(loaded)
        for name, value in vars(loaded).items():
            found = value.values() if isinstance(value, dict) else [value]
            for one in found:
                if isinstance(one, re.Pattern) and one not in seen:
                    seen.add(one)
                    called = re.findall(rf"\b{name}(?:\[\w+\])?\.(\w+)\(", source)
                    ways = {way if way in ("match", "fullmatch") else "search" for way in called}
                    yield f"{module.name}.{name}", one, frozenset(ways or {"match", "fullmatch"})


def _sample(item: tuple[Any, Any]) -> str:
    """Return a text that one node of a parsed pattern matches."""
    kind, value = item
    if kind is opcodes.LITERAL:
        return chr(value)
    if kind is opcodes.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    if kind is opcodes.ANY:
        return "a"
    if kind is opcodes.IN:
        return next((one for one in "a1 '\"`-$./([:\\\n" if _is_in(one, value)), chr(_first_of(value)))
    if kind in (opcodes.MAX_REPEAT, opcodes.MIN_REPEAT, opcodes.POSSESSIVE_REPEAT):
        least, _, inner = value
        return _text(inner) * max(int(least), 1)
    if kind is opcodes.SUBPATTERN:
        return _text(value[3])
    if kind is opcodes.BRANCH:
        return _text(value[1][0])
    if kind is opcodes.ATOMIC_GROUP:
        return _text(value)
    return ""


def _text(items: Any) -> str:
    return "".join([_sample(one) for one in items])


def _is_in(character: str, members: Any) -> bool:
    made = parser.SubPattern(parser.State(), [(opcodes.IN, members)])
    return re._compiler.compile(made).match(character) is not None  # type: ignore[attr-defined]


def _first_of(members: Any) -> int:
    for kind, value in members:
        if kind is opcodes.LITERAL:
            return int(value)
        if kind is opcodes.RANGE:
            return int(value[0])
    return ord("\x01")


def _loops(items: Any, before: str) -> Iterator[tuple[str, str]]:
    """Yield for each loop of a pattern what comes before it, and what it repeats."""
    for item in items:
        kind, value = item
        if kind in (opcodes.MAX_REPEAT, opcodes.MIN_REPEAT, opcodes.POSSESSIVE_REPEAT):
            _, most, inner = value
            if most == opcodes.MAXREPEAT:
                branches = inner[0][1][1] if inner and inner[0][0] is opcodes.BRANCH else [inner]
                if inner and inner[0][0] is opcodes.SUBPATTERN and inner[0][1][3][0][0] is opcodes.BRANCH:
                    branches = inner[0][1][3][0][1][1]
                for branch in branches:
                    yield before, _text(branch) or "a"
            yield from _loops(inner, before)
            before += _sample(item)
        elif kind is opcodes.SUBPATTERN:
            yield from _loops(value[3], before)
            before += _sample(item)
        elif kind is opcodes.BRANCH:
            for branch in value[1]:
                yield from _loops(branch, before)
            before += _sample(item)
        else:
            before += _sample(item)


_FOUND = list(_patterns())


def test_all_regular_expressions_of_the_package_are_found() -> None:
    assert len(_FOUND) > 60


@pytest.mark.parametrize(("name", "pattern", "ways"), _FOUND, ids=[f"{name}" for name, _, _ in _FOUND])
def test_regular_expressions_take_linear_time(name: str, pattern: re.Pattern[Any], ways: frozenset[str]) -> None:
    parsed = parser.parse(pattern.pattern, pattern.flags)
    for before, pump in sorted(set(_loops(parsed, ""))):
        for end in ("\x00", "\x00\n'"):

            def make(size: int, before: str = before, pump: str = pump, end: str = end) -> str:
                return before + pump * size + end

            for way in sorted(ways):
                call = getattr(pattern, way)
                if isinstance(pattern.pattern, bytes):
                    call = _on_bytes(call)
                assert not grows_faster(call, make), f"{way}: {before!r} and then many {pump!r}"


def _on_bytes(call: Callable[[bytes], object]) -> Callable[[str], object]:
    return lambda text: call(text.encode())


# Lexers and parsers

_PIECES = {
    "dollars": lambda size: " ".join(f"$x{at}$" for at in range(size)),
    "dollar words": lambda size: "$x" * size,
    "comments": lambda size: "/**/" * size + "x",
    "open comments": lambda size: "/*" * size,
    "comment edges": lambda size: "/*/" * size,
    "line comments": lambda size: "--\n" * size + "x",
    "quotes": lambda size: "'" * (2 * size + 1),
    "names": lambda size: "`" * (2 * size + 1),
    "raw": lambda size: "r'" * size,
    "digits": lambda size: "1" * size + "x",
    "points": lambda size: "1." * size,
    "exponents": lambda size: "1e" * size,
    "spaces": lambda size: "1:" + " " * size,
    "numbered": lambda size: "struct<1: " + "a " * size,
    "colons": lambda size: "a:" * size,
    "columns": lambda size: ", ".join(f"c{at} int" for at in range(size)),
    "tests": lambda size: " and ".join(f"c{at} = {at}" for at in range(size)),
    "open brackets": lambda size: "struct<a:" * size,
    "brackets": lambda size: "(" * size,
    "dots": lambda size: "a." * size,
    "backslashes": lambda size: "'" + "\\" * (2 * size + 1),
    "hex": lambda size: "x'" + "0" * size,
    "minus": lambda size: "-" * size,
    "transforms": lambda size: ", ".join(f"bucket(4, c{at})" for at in range(size)),
}

_READERS: dict[str, Callable[[str], object]] = {
    "sql/tokens": lambda text: list(cut_tokens(text)),
    "expr/parse": parse_predicate,
    "spec/parse_type": parse_type,
    "spec/parse_schema": parse_schema,
    "spec/transform_terms": parse_sort_term,
    "lake/parse_name": parse_name,
    "sql/for_spark": lambda text: script_for_spark(evolution_as_option(text), lambda one: False),
    "sql/changes_as_options": lambda text: changes_as_options(text, lambda one: True),
}


@pytest.mark.parametrize("reader", _READERS)
@pytest.mark.parametrize("piece", _PIECES)
def test_doubling_a_text_about_doubles_its_time(reader: str, piece: str) -> None:
    def read(text: str) -> None:
        try:
            _READERS[reader](text)
        except FrazilError:
            pass

    assert not grows_faster(read, _PIECES[piece])
