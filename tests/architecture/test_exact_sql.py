"""Only one module hands text to Spark's parser, which replaces variables in it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOM = Path(__file__).parents[2] / "src" / "frazil"
DOOR = {"exact_sql.py"}
PARSING = {"expr", "selectExpr", "sqlParser", "parseExpression", "parsePlan", "parseQuery"}
BY_TEXT = {"filter", "where"}


def _texts(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        first = node.args[0] if node.args else None
        is_constant = isinstance(first, ast.Constant)
        if node.func.attr in PARSING and not is_constant:
            found.append(f"{node.lineno}: {node.func.attr}")
        if node.func.attr in BY_TEXT and isinstance(first, ast.JoinedStr | ast.BinOp) and _is_text(first):
            found.append(f"{node.lineno}: {node.func.attr}")
    return found


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod) and (_is_text(node.left) or _is_text(node.right))
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_only_one_module_passes_text_to_the_spark_parser() -> None:
    found = {
        path.name: texts
        for room in ("spark", "lake")
        for path in sorted((ROOM / room).rglob("*.py"))
        if path.name not in DOOR and (texts := _texts(ast.parse(path.read_text())))
    }
    # `private_names.py` is below `exact_sql.py`, and columns of `row_positions.py` are constants.
    assert set(found) <= {"private_names.py", "row_positions.py"}, found
