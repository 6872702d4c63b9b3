"""What every module looks like: its size, its docstring, its name, what it may raise and read."""

from __future__ import annotations

import ast
import re

from tests.architecture.source_files import source_files

MAX_LINES = 700
BANNED_NAMES = re.compile(r"(^|_)(utils?|helpers?|common|misc)($|_)")
BANNED_RAISES = {
    "ArithmeticError", "AssertionError", "BaseException", "Exception", "FileExistsError", "FileNotFoundError",
    "IOError", "KeyError", "LookupError", "OSError", "RuntimeError", "UnicodeDecodeError", "ValueError",
}  # fmt: skip
"""Only frazil's own errors leave the package. TypeError stays for a Python protocol used wrongly, IndexError and the
like for a module that catches them itself."""


def test_no_file_is_longer_than_700_lines() -> None:
    lengths = {file.name: len(file.text.splitlines()) for file in source_files()}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_every_module_has_a_docstring() -> None:
    assert [file.name for file in source_files() if not ast.get_docstring(file.tree)] == []


def test_init_files_only_re_export() -> None:
    wrong = []
    for file in source_files():
        if not file.name.endswith("__init__.py"):
            continue
        for node in file.tree.body:
            is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_all = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
            is_own_import = isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "frazil"
            is_late = file.name == "__init__.py" and is_late_export(node)
            if not (is_docstring or is_all or is_own_import or is_late):
                wrong.append(f"{file.place(node)}: {ast.unparse(node)}")
    assert wrong == []


def is_late_export(node: ast.stmt) -> bool:
    """Return whether a statement only serves names that the package imports on first use."""
    if isinstance(node, ast.ImportFrom):
        return node.module in ("importlib", "typing")
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "_ON_FIRST_USE"
    return isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__dir__")


def test_no_module_name_is_a_catch_all() -> None:
    parts = {file.name: re.split(r"[/.]", file.name) for file in source_files()}
    assert [name for name, words in parts.items() if any(BANNED_NAMES.search(word) for word in words)] == []


def test_names_follow_the_house_rules() -> None:
    wrong = []
    for file in source_files():
        for node in ast.walk(file.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and re.match("_?get_", node.name):
                wrong.append(f"{file.place(node)}: {node.name}()")
            if isinstance(node, ast.ClassDef) and re.search(r"^_?Iceberg|Impl$|Manager$", node.name):
                wrong.append(f"{file.place(node)}: class {node.name}")
    assert wrong == []


def test_no_builtin_exceptions_are_raised() -> None:
    wrong = []
    for file in source_files():
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Raise) and node.exc is not None:
                raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                if isinstance(raised, ast.Name) and raised.id in BANNED_RAISES:
                    wrong.append(f"{file.place(node)}: {ast.unparse(node)}")
    assert wrong == []


def test_only_the_cli_reads_environment_variables() -> None:
    wrong = []
    for file in source_files():
        if file.room == "cli":
            continue
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv", "os.environb"):
                wrong.append(file.place(node))
    assert wrong == []


def test_spec_does_not_depend_on_encodings_or_arrow() -> None:
    banned = {"pyarrow", "numpy", "pandas", "json", "msgspec", "io", "os", "pathlib", "zstandard", "sqlite3", "gzip"}
    wrong = []
    for file in source_files():
        if file.room != "spec":
            continue
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            else:
                continue
            wrong += [f"{file.place(node)} imports {one}" for one in modules if one.split(".")[0] in banned]
    assert wrong == []
