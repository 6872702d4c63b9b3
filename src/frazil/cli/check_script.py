"""What a script or a configuration for Iceberg's jar names, and what becomes of it here. Nothing is run.

Python is read as Python: calls of `config`, `option`, `options`, `tableProperty`, and SQL in texts. Other files
(`spark-defaults.conf`, shell scripts, SQL) are read line by line. What is found is looked up in `spec/options.py`,
`spec/jar_surface.py` and the list of properties, as the library itself does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from frazil.errors import InvalidRequestError
from frazil.spec import jar_surface
from frazil.spec.options import READ_OPTIONS, WRITE_OPTIONS, OptionList, find_setting
from frazil.spec.properties_markdown import NOT_HONOURED

Level = Literal["fine", "change", "nothing", "error"]
LEVELS: dict[Level, str] = {
    "fine": "works as it is",
    "change": "to change",
    "nothing": "does nothing here, and a warning says so",
    "error": "will not work",
}
_FATES: dict[jar_surface.Fate, Level] = {"same": "fine", "change": "change", "cannot": "error"}
_ANSWERS: dict[str, Level] = {"honoured": "fine", "warned": "nothing", "refused": "error"}
_SETTING = re.compile(r"(spark\.sql\.iceberg\.[\w.-]+)[\s=:,'\"]+([\w.-]+)?")
_CALL = re.compile(r"\bcall\s+(?:[\w`]+\.)?system\.(\w+)\s*\(", re.IGNORECASE)
_ARGUMENT = re.compile(r"\b(\w{1,128})\s{0,32}=>")
_PROPERTY = re.compile(r"['\"]((?:write|read|commit|history|engine|encryption|compatibility|gc)\.[\w.-]+)['\"]\s*[=,]")
_READERS, _WRITERS = {"read", "readStream"}, {"write", "writeTo", "writeStream", "mergeInto"}
_TABLES = {"table", "toTable", "writeTo", "saveAsTable", "insertInto"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a file names."""

    file: str
    line: int
    level: Level
    what: str
    becomes: str


def check_file(path: str) -> list[Finding]:
    """Return what a file names of the jar's, in the order of its lines."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"Cannot read {path}: {error}") from error
    found = [*_lines(path, text)]
    if path.endswith(".py"):
        try:
            found += _python(path, ast.parse(text))
        except SyntaxError as error:
            raise InvalidRequestError(f"Cannot read {path} as Python: {error}") from error
    return sorted(set(found), key=lambda one: (one.line, one.what))


def _lines(path: str, text: str) -> Iterator[Finding]:
    for index, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#") and not path.endswith(".sql"):
            continue
        taken = False
        for pattern in jar_surface.PATTERNS:
            match = re.search(pattern.text, line)
            if match is not None and not (taken and pattern in jar_surface.SETTINGS):
                taken = taken or pattern in jar_surface.SETTINGS
                yield Finding(path, index, _FATES[pattern.fate], match.group(0).strip()[:80], pattern.becomes)
        for match in _SETTING.finditer(line):
            yield _setting(path, index, match.group(1), match.group(2))
        for match in _PROPERTY.finditer(line):
            reason = NOT_HONOURED.get(match.group(1))
            if reason is not None:
                yield Finding(path, index, "nothing", match.group(1), f"kept on the table: {reason}")
    for match in _CALL.finditer(text):
        yield from _call(
            path, text.count("\n", 0, match.start()) + 1, match.group(1).lower(), _inside(text, match.end())
        )


def _inside(text: str, start: int) -> str:
    """Return the arguments of a call, up to its bracket."""
    depth = 1
    for index in range(start, min(len(text), start + 5000)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return text[start:index]
    return ""


def _call(path: str, line: int, name: str, inside: str) -> Iterator[Finding]:
    known = jar_surface.PROCEDURES.get(name)
    if known is None:
        yield Finding(path, line, "error", f"CALL system.{name}", f"no such procedure of the jar's: {_names()}")
        return
    flat = re.sub(r"\([^()]*\)", "", inside)
    unknown = [one for one in _ARGUMENT.findall(flat) if one.lower() not in known]
    if unknown:
        yield Finding(path, line, "error", f"CALL system.{name}({unknown[0]})", f"arguments are: {', '.join(known)}")
    else:
        yield Finding(path, line, "fine", f"CALL system.{name}", "the same")


def _names() -> str:
    return ", ".join(sorted(jar_surface.PROCEDURES))


def _setting(path: str, line: int, name: str, value: str | None) -> Finding:
    option = find_setting(name)
    if option is None:
        return Finding(path, line, "nothing", name, "not known")
    if option.answer == "honoured" and value is not None and option.kind.parse(value) is None:
        return Finding(path, line, "error", f"{name}={value}", f"set it to {option.kind.allowed}")
    level = "fine" if value is not None and value.lower() in option.fine else _ANSWERS[option.answer]
    return Finding(path, line, level, name, option.note)


def _python(path: str, tree: ast.Module) -> Iterator[Finding]:
    inner = {id(node.func.value) for node in ast.walk(tree) if _is_method(node)}  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        # Whole chains: spark.read.option(…).table(…), from its last call.
        if _is_method(node) and id(node) not in inner:
            yield from _chain(path, node)


def _is_method(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def _chain(path: str, last: ast.AST) -> Iterator[Finding]:
    names: set[str] = set()
    texts: set[str] = set()
    options: list[tuple[int, str, str | None]] = []
    node: ast.AST = last
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
            node = node.value
            continue
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "option" and len(node.args) == 2:
                options.append((node.lineno, _text(node.args[0]) or "", _text(node.args[1])))
            elif node.func.attr == "options":
                options += [
                    (node.lineno, keyword.arg, _text(keyword.value))
                    for keyword in node.keywords
                    if keyword.arg is not None
                ]
                options += _of_dict(node)
        texts |= {text for one in node.args if (text := _text(one)) is not None}
        node = node.func
    list_of = WRITE_OPTIONS if names & _WRITERS else READ_OPTIONS if names & _READERS else None
    is_table = "iceberg" in texts or bool(names & _TABLES)
    if list_of is not None and is_table:
        for line, name, value in options:
            if name and not ("readStream" in names or "writeStream" in names):
                yield _option(path, line, list_of, name, value)


def _of_dict(node: ast.Call) -> Iterator[tuple[int, str, str | None]]:
    for keyword in node.keywords:
        if keyword.arg is None and isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                if key is not None and (name := _text(key)) is not None:
                    yield key.lineno, name, _text(value)


def _text(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Constant):
        return None
    return str(node.value).lower() if isinstance(node.value, bool) else str(node.value)


def _option(path: str, line: int, options: OptionList, name: str, value: str | None) -> Finding:
    option = options.find(name)
    what = f"option {name}"
    if option is None:
        try:
            options.check_name(name)
        except InvalidRequestError as error:
            return Finding(path, line, "error", what, str(error.hint or error))
        return Finding(path, line, "nothing", what, "not known")
    if value is not None and value.lower() in option.fine:
        return Finding(path, line, "fine", what, option.note)
    if option.answer == "honoured" and value is not None and option.kind.parse(value.strip()) is None:
        return Finding(path, line, "error", f"{what}={value}", f"set it to {option.kind.allowed}")
    return Finding(path, line, _ANSWERS[option.answer], what, option.note)
