"""The layering rule: imports go down only, with no exceptions, and Spark stays in its room."""

from __future__ import annotations

import ast
import logging
import re
import tomllib
from typing import Any

from importlinter.cli import lint_imports

from tests.architecture.source_files import ROOT, imports_in, is_under, source_files

TYPES_FOR_EDITORS = ("DataFrame", "SparkSession")
"""Types of PySpark's that signatures outside its room may name: type checkers load them, and nothing else does."""
PYPROJECT = ROOT / "pyproject.toml"
LATE_IMPORTS = {"botocore", "datafusion", "duckdb", "psycopg"}
"""Packages so slow to import that a function may import them when it needs them."""

LATE_MODULES = {
    "frazil.codec.wkt": "geometries need numpy, and every catalog needs the rest of the codec",
    "frazil.storage.object_stores": "most lakes are in one store or none",
    "frazil.rest.open_rest": "HTTP takes its time to load, and only services need it",
    "frazil.rest.settings": "the same",
    "frazil.catalog.hive.open_hive": "the same",
    "frazil.catalog.hive": "the same",
    "frazil.catalog.glue.open_glue": "the same",
    "frazil.catalog.glue": "the same",
    "frazil.table.local_sql.run_sql": "only queries need DuckDB and what leads to it",
    "frazil.query.limits": "the same",
    "frazil.table.adopt": "few lakes adopt tables of others",
    "frazil.table.local_sql.statements": "only statements that change tables need sqlglot",
    "frazil.table.local_sql.statement_run": "the same",
    "frazil.query.spark_dialect": "only Spark's dialect needs sqlglot",
    "frazil.query.spark_types": "the same",
    "frazil.query.spark_casts": "scopes and casts need each other",
    "frazil.table.local_sql.query_sources": "it needs Arrow's datasets",
    "frazil.table.scan_dataset": "the same",
    "frazil.testing.spark": "tests without Spark need no PySpark",
}
"""Modules that a function imports when it needs them, and why. The terminal does so with all: help is there at once."""


def contracts() -> list[dict[str, Any]]:
    config = tomllib.loads(PYPROJECT.read_text("utf-8"))
    found: list[dict[str, Any]] = config["tool"]["importlinter"]["contracts"]
    return found


def test_import_contracts_hold() -> None:
    loggers = [one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger)]
    before = [logger.disabled for logger in loggers]
    assert lint_imports(config_filename=str(PYPROJECT), no_cache=True) == 0
    # It has switched off the logs of others, which tests after this one read.
    for logger, was_disabled in zip(loggers, before, strict=True):
        logger.disabled = was_disabled


def test_import_contracts_have_no_exceptions() -> None:
    text = PYPROJECT.read_text("utf-8")
    config = text[text.index("[tool.importlinter]") :]
    for word in ("ignore_imports", "exhaustive_ignores", "allow_indirect_imports"):
        assert word not in config
    assert {contract["id"] for contract in contracts()} == {"layers", "spark-layers", "no-jvm"}


def test_only_the_top_level_package_uses_type_checking_imports() -> None:
    wrong = []
    for file in source_files():
        for node in ast.walk(file.tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and file.name != "__init__.py":
                wrong += [f"{file.place(one)} imports {module}" for one, module in imports_in(node)
                          if is_under(module, "frazil")]  # fmt: skip
    assert wrong == []


def test_contract_layers_match_the_architecture_page() -> None:
    (layers,) = (contract["layers"] for contract in contracts() if contract["id"] == "layers")
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    drawn = re.search(r"```layers\n(.*?)```", page, re.DOTALL)
    assert drawn is not None
    assert [re.sub(r"[()]", "", layer) for layer in layers] == drawn.group(1).strip().splitlines()


def for_type_checkers(tree: ast.AST) -> set[ast.AST]:
    """Return the imports of PySpark's types that are not there when the module runs."""
    blocks = [one for one in ast.walk(tree) if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    return {
        node
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        and node.module == "pyspark.sql"
        and all(one.name in TYPES_FOR_EDITORS for one in node.names)
    }


def test_only_the_spark_package_imports_pyspark() -> None:
    wrong = [
        f"{file.place(node)} imports {module}"
        for file in source_files()
        if file.room != "spark"
        for node, module in imports_in(file.tree)
        if (is_under(module, "pyspark") or is_under(module, "py4j")) and node not in for_type_checkers(file.tree)
    ]
    assert wrong == []


def test_imports_are_at_the_top_of_the_module() -> None:
    wrong = []
    for file in source_files():
        functions = [node for node in ast.walk(file.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for function in functions:
            for node, module in imports_in(function):
                is_late = module.split(".", maxsplit=1)[0] in LATE_IMPORTS or module in LATE_MODULES
                loads_spark = file.room in ("verbs", "table", "sessions") and is_under(module, "frazil.spark")
                is_command = file.room == "cli" and is_under(module, "frazil")
                if not is_late and not loads_spark and not is_command and file.name != "__init__.py":
                    wrong.append(f"{file.place(node)} imports {module} inside {function.name}()")
    assert wrong == []


def test_frazil_modules_are_imported_statically() -> None:
    wrong = [
        f"{file.place(node)} imports {ast.unparse(argument)}"
        for file in source_files()
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__"))
        for argument in node.args[:1]
        if "frazil" in ast.unparse(argument)
    ]
    assert wrong == []


def test_slow_packages_are_not_imported_at_module_level() -> None:
    wrong = [
        f"{file.place(node)} imports {module}"
        for file in source_files()
        for statement in file.tree.body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for node, module in imports_in(statement)
        if module.split(".", maxsplit=1)[0] in LATE_IMPORTS
    ]
    assert wrong == []
