"""List the public names of frazil with their signatures, one line each.

Public is what `frazil` itself exports, what it returns (tables, scans, plans, transactions, maintenance, metadata
tables), the error tree, `frazil.testing`, and modules of `frazil.spec`. Other modules can be imported but may
change without notice.
`public-names.txt` holds the list; `--check` shows how it differs from the code, `--write` writes it anew.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from frazil.table.metadata_tables import MetadataTables
from frazil.table.table import TransactionTable
from tools.python_reference import SECTIONS, fields_of, members

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "public-names.txt"
PUBLIC_MODULES = (
    "frazil.errors",
    "frazil.testing.lakes",
    "frazil.testing.spark",
    "frazil.spec.data_file",
    "frazil.spec.manifest",
    "frazil.spec.name_mapping",
    "frazil.spec.partitioning",
    "frazil.spec.schema",
    "frazil.spec.snapshot",
    "frazil.spec.sorting",
    "frazil.spec.statistics",
    "frazil.spec.table_metadata",
    "frazil.spec.transforms",
    "frazil.spec.types",
    "frazil.spec.view_metadata",
)


def public_names() -> list[str]:
    """Return the lines of the list, sorted."""
    lines = [
        f"{face.__name__}.{name} = {_home(getattr(face, name))}.{name}"
        for face in map(importlib.import_module, ("frazil", "frazil.testing"))
        for name in face.__all__
    ]
    for module_name in PUBLIC_MODULES:
        # A module that is gone leaves the list shorter, which the comparison shows.
        if importlib.util.find_spec(module_name) is not None:
            lines += _describe_module(module_name)
    held = [thing for _, _, things in SECTIONS for thing in (things if isinstance(things, tuple) else (things,))]
    for kind in (*held, TransactionTable, MetadataTables):
        if inspect.isclass(kind):
            lines += _describe_members(kind)
        else:
            lines.append(f"frazil.{kind.__name__}{_signature(kind)}")
    return sorted(set(lines))


def _describe_members(kind: type) -> Iterator[str]:
    """Yield what users call on a value of a class, that of its bases too."""
    for name, member in members(kind):
        if inspect.isfunction(member):
            yield f"{kind.__name__}.{name}{_signature(member)}"
        elif isinstance(member, classmethod | staticmethod):
            yield f"{kind.__name__}.{name}{_signature(member.__func__)}"
        else:
            yield f"{kind.__name__}.{name}"
    yield from (f"{kind.__name__}.{name}" for name in fields_of(kind))


def _home(value: object) -> str:
    return str(getattr(value, "__module__", type(value).__module__))


def _describe_module(module_name: str) -> Iterator[str]:
    module = importlib.import_module(module_name)
    for name in _defined_names(Path(str(module.__file__))):
        value = getattr(module, name)
        full_name = f"{module_name}.{name}"
        if inspect.isclass(value) and value.__module__ == module_name:
            yield from _describe_class(full_name, value)
        elif inspect.isfunction(value):
            yield f"{full_name}{_signature(value)}"
        else:
            yield full_name


def _defined_names(path: Path) -> Iterator[str]:
    """Yield the names a module defines itself at its top level, imports left out."""
    for node in ast.parse(path.read_text("utf-8")).body:
        names: list[str] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        yield from (name for name in names if not name.startswith("_"))


def _describe_class(full_name: str, kind: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in kind.__bases__ if base is not object)
    yield f"class {full_name}({bases})"
    if "__init__" in vars(kind):
        yield f"{full_name}.__init__{_signature(kind.__init__)}"  # type: ignore[misc]
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod | staticmethod):
            yield f"{full_name}.{name}{_signature(member.__func__)}"
        elif inspect.isfunction(member):
            yield f"{full_name}.{name}{_signature(member)}"
        elif isinstance(member, property | cached_property):
            yield f"{full_name}.{name} (property)"
        else:
            yield f"{full_name}.{name}"


def _signature(function: object) -> str:
    """Return a signature without default values, which print differently from one Python to the next."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    shown = []
    for parameter in signature.parameters.values():
        has_default = parameter.default is not inspect.Parameter.empty
        text = str(parameter.replace(default=inspect.Parameter.empty, annotation=inspect.Parameter.empty))
        note = parameter.annotation
        if note is not inspect.Parameter.empty:
            text += f": {note if isinstance(note, str) else inspect.formatannotation(note)}"
        shown.append((parameter.kind, text + (" = ..." if has_default else "")))
    texts = []
    star_seen = False
    for kind, text in shown:
        if kind is inspect.Parameter.VAR_POSITIONAL:
            star_seen = True
        elif kind is inspect.Parameter.KEYWORD_ONLY and not star_seen:
            texts.append("*")
            star_seen = True
        texts.append(text)
    returns = signature.return_annotation
    if returns is inspect.Signature.empty:
        return f"({', '.join(texts)})"
    return f"({', '.join(texts)}) -> {returns if isinstance(returns, str) else inspect.formatannotation(returns)}"


def main() -> int:
    """Check or write the list; return the exit code."""
    parser = argparse.ArgumentParser(description="Check or write the list of public names.")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--check", action="store_true", help="show differences and fail where there are any")
    group.add_argument("--write", action="store_true", help="write the list")
    wanted = parser.parse_args()

    names = public_names()
    if wanted.write:
        LIST.write_text("\n".join(names) + "\n", "utf-8")
        print(f"{LIST.name}: {len(names)} names")
        return 0
    listed = LIST.read_text("utf-8").splitlines() if LIST.exists() else []
    differences = list(difflib.unified_diff(listed, names, LIST.name, "the code", n=0, lineterm=""))
    if differences:
        print("\n".join(differences))
        print("\nThe public names have changed. If that is meant, run `make names` and mention it in CHANGELOG.md.")
        return 1
    print(f"{LIST.name}: {len(names)} names, no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
