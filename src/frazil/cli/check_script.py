"""Find what a script or a configuration uses of Iceberg's jar, and what frazil does with it. Nothing is run.

Python is parsed as Python: calls of `config`, `option`, `options`, `tableProperty`, and SQL in strings. Other files
(`spark-defaults.conf`, shell scripts, SQL) are read line by line. Each use is looked up in `jar/options.py`,
`jar/surface.py` and the lists of properties and procedures, as by the library itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from frazil.errors import FrazilError, InvalidRequestError
from frazil.jar import surface as jar_surface
from frazil.jar.options import (
    CHANGE_FEED_OPTIONS,
    READ_OPTIONS,
    STREAM_FEED_OPTIONS,
    STREAM_READ_OPTIONS,
    STREAM_WRITE_OPTIONS,
    WRITE_OPTIONS,
    OptionList,
    check_setting_name,
    find_setting,
)
from frazil.maintenance.procedures import PROCEDURES
from frazil.spec.properties import check_properties, check_retired, check_spelling
from frazil.spec.unused_properties import NOT_HONOURED, REFUSED

Level = Literal["fine", "change", "nothing", "error"]
LEVELS: dict[Level, str] = {
    "fine": "works unchanged",
    "change": "must change",
    "nothing": "has no effect, with a warning",
    "error": "will not work",
}
_FATES: dict[jar_surface.Fate, Level] = {"same": "fine", "change": "change", "cannot": "error"}
_ANSWERS: dict[str, Level] = {"honoured": "fine", "same": "fine", "warned": "nothing", "refused": "error"}
_SETTING = re.compile(r"(spark\.sql\.iceberg\.[\w.-]+)[\s=:,'\"]+([\w.-]+)?")
_CALL = re.compile(r"\bcall\s+(?:[\w`]+\.)?system\.(\w+)\s*\(", re.IGNORECASE)
_ARGUMENT = re.compile(r"\b(\w{1,128})\s{0,32}=>")
_PROPERTY = re.compile(
    r"['\"]((?:write|read|commit|history|engine|encryption|compatibility|gc)\.[\w.-]+)['\"]\s*[=,:]"
    r"(?:\s*['\"]([\w.-]+)['\"])?"
)
_MAP = re.compile(r"\boptions\s*=>\s*map\s*\(([^()]{0,5000})\)", re.IGNORECASE)
_PAIR = re.compile(r"['\"]([^'\"]{1,128})['\"]\s*,\s*(?:['\"]([\w.+-]{0,128})['\"])?")
_STRATEGY = re.compile(r"\b(?:strategy|sort_order)\s*=>\s*['\"]\s*(\w+)", re.IGNORECASE)
_WRITERS = {"write", "writeTo", "mergeInto"}
_TABLES = {"table", "toTable", "writeTo", "saveAsTable", "insertInto", "mergeInto", "changes"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One use in a file."""

    file: str
    line: int
    level: Level
    what: str
    becomes: str


def check_file(path: str) -> list[Finding]:
    """Return the uses of the jar's features in a file, in the order of its lines."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise InvalidRequestError(f"Cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"Cannot read {path}: it is not UTF-8 text") from error
    findings = [*_lines(path, text)]
    if path.endswith(".py"):
        try:
            findings += _python(path, ast.parse(text))
        except SyntaxError as error:
            raise InvalidRequestError(f"Cannot read {path} as Python: {error}") from error
    return sorted(set(findings), key=lambda finding: (finding.line, finding.what))


def _lines(path: str, text: str) -> Iterator[Finding]:
    for index, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#") and not path.endswith(".sql"):
            continue
        has_setting = False
        for pattern in jar_surface.PATTERNS:
            match = re.search(pattern.text, line)
            if match is not None and not (has_setting and pattern in jar_surface.SETTINGS):
                has_setting = has_setting or pattern in jar_surface.SETTINGS
                yield Finding(path, index, _FATES[pattern.fate], match.group(0).strip()[:80], pattern.becomes)
        for match in _SETTING.finditer(line):
            yield _setting(path, index, match.group(1), match.group(2))
        for match in _PROPERTY.finditer(line):
            yield from _property(path, index, match.group(1), match.group(2))
    for match in _CALL.finditer(text):
        yield from _call(
            path, text.count("\n", 0, match.start()) + 1, match.group(1).lower(), _inside(text, match.end())
        )


def _inside(text: str, start: int) -> str:
    """Return the arguments of a call, up to its closing bracket."""
    depth = 1
    for index in range(start, min(len(text), start + 5000)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return text[start:index]
    return ""


def _property(path: str, line: int, name: str, value: str | None) -> Iterator[Finding]:
    if name in NOT_HONOURED:
        yield Finding(path, line, "nothing", name, f"stored on the table: {NOT_HONOURED[name]}")
    elif name in REFUSED:
        yield Finding(path, line, "error", name, REFUSED[name])
    try:
        check_retired({name: ""})
        check_spelling(name)
        if value is not None:
            check_properties({name: value})
    except FrazilError as error:
        yield Finding(path, line, "error", name, str(error.hint or error))


def _call(path: str, line: int, name: str, inside: str) -> Iterator[Finding]:
    procedure = PROCEDURES.get(name)
    what = f"CALL system.{name}"
    if procedure is None:
        yield Finding(path, line, "error", what, f"no such procedure; choose from: {', '.join(sorted(PROCEDURES))}")
        return
    flat = re.sub(r"\([^()]*\)", "", inside)
    arguments = [parameter.name for parameter in procedure.call_parameters]
    unknown = [argument for argument in _ARGUMENT.findall(flat) if argument.lower() not in arguments]
    if unknown:
        yield Finding(path, line, "error", f"{what}({unknown[0]})", f"arguments are: {', '.join(arguments)}")
        return
    try:
        _check_options_of(name, inside)
    except InvalidRequestError as error:
        yield Finding(path, line, "error", f"{what}(options)", str(error))
        return
    yield Finding(path, line, "fine", what, "the same" if name in jar_surface.PROCEDURES else "specific to frazil")


def _check_options_of(procedure: str, inside: str) -> None:
    """Refuse unknown options of a rewrite, and invalid values, if they are literals."""
    option_map = _MAP.search(inside)
    if option_map is None:
        return
    # This imports Arrow, which nothing else here needs.
    from frazil.maintenance.rewrite_options import SIZE_OPTIONS, OptionReader, read_data_options, read_sizes

    options = {name: value or None for name, value in _PAIR.findall(option_map.group(1))}
    target = 512 << 20
    if procedure == "rewrite_data_files":
        named = " ".join(_STRATEGY.findall(inside)).lower()
        strategy = "zorder" if "zorder" in named else "sort" if named and "binpack" not in named else "binpack"
        read_data_options(options, target, strategy=strategy)
    elif procedure == "rewrite_position_delete_files":
        read_sizes(OptionReader(procedure, options, SIZE_OPTIONS), procedure, target)


def _setting(path: str, line: int, name: str, value: str | None) -> Finding:
    option = find_setting(name)
    if option is None:
        try:
            check_setting_name(name)
        except InvalidRequestError as error:
            return Finding(path, line, "error", name, str(error.hint or error))
        return Finding(path, line, "nothing", name, "unknown")
    if value is not None and option.value_type.parse(value) is None:
        return Finding(path, line, "error", f"{name}={value}", f"set it to {option.value_type.allowed}")
    level = "fine" if value is not None and value.lower() in option.fine else _ANSWERS[option.answer]
    return Finding(path, line, level, name, option.note)


def _python(path: str, tree: ast.Module) -> Iterator[Finding]:
    inner = {id(node.func.value) for node in ast.walk(tree) if _is_method(node)}  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        # Take whole chains, such as spark.read.option(…).table(…), from their last call.
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
        texts |= {text for argument in node.args if (text := _text(argument)) is not None}
        node = node.func
    is_table = "iceberg" in texts or bool(names & _TABLES)
    is_feed = any(name.lower() == "readchangefeed" and value == "true" for _, name, value in options)
    known_options = _options_of(names, is_feed=is_feed or "changes" in names)
    if known_options is not None and is_table:
        for line, name, value in options:
            if name:
                yield _option(path, line, known_options, name, value)


def _options_of(names: set[str], *, is_feed: bool) -> OptionList | None:
    """Return the options that a chain of calls accepts, by how it begins."""
    if "writeStream" in names:
        return STREAM_WRITE_OPTIONS
    if names & _WRITERS:
        return WRITE_OPTIONS
    if "readStream" in names:
        return STREAM_FEED_OPTIONS if is_feed else STREAM_READ_OPTIONS
    if "read" in names:
        return CHANGE_FEED_OPTIONS if is_feed else READ_OPTIONS
    return None


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
        return Finding(path, line, "nothing", what, "unknown")
    if value is not None and value.lower() in option.fine:
        return Finding(path, line, "fine", what, option.note)
    if option.answer != "refused" and value is not None and option.value_type.parse(value.strip()) is None:
        return Finding(path, line, "error", f"{what}={value}", f"set it to {option.value_type.allowed}")
    return Finding(path, line, _ANSWERS[option.answer], what, option.note)
