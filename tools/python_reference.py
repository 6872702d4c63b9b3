"""Write docs/python.md: what users call from Python, with signatures and docstrings as they are in the code.

`--write` writes the page anew, `--check` fails where it is not what the code says.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import frazil
from frazil.catalog.purge import PurgeReport
from frazil.commit.expired_files import ExpiredFiles
from frazil.errors import FrazilError
from frazil.maintenance.add_files import AddFilesResult
from frazil.maintenance.adopt_results import MigrateTableResult, SnapshotTableResult
from frazil.maintenance.adopt_table import SourceTable
from frazil.maintenance.convert_equality_deletes import ConvertEqualityDeletesResult
from frazil.maintenance.expire_snapshots import ExpireSnapshotsResult
from frazil.maintenance.optimize import OptimizeResult
from frazil.maintenance.orphan_files import OrphanFilesResult
from frazil.maintenance.report import Problem, Report
from frazil.maintenance.rewrite_data_files import RewriteDataFilesResult
from frazil.maintenance.rewrite_manifests import RewriteManifestsResult
from frazil.maintenance.rewrite_position_deletes import RewritePositionDeletesResult
from frazil.maintenance.rewrite_table_path import RewriteTablePathResult
from frazil.metadata_tables.tables import METADATA_TABLES
from frazil.scan.plan import Plan
from frazil.scan.tasks import DeleteTask, FileScanTask, TaskGroup
from frazil.spec.partition_evolution import PartitionSpecUpdate
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.table.difference import Difference
from frazil.table.follow import Follow
from frazil.table.history import History, HistoryLine
from frazil.table.lake import LakeTransaction
from frazil.table.maintain import Maintain
from frazil.table.merge_builder import MatchedClause, MergeBuilder, NotMatchedClause, OwnClause
from frazil.table.query_result import QueryResult
from frazil.table.table import TransactionContext

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "python.md"
HEAD = """# Python

Made from the docstrings by `tools/python_reference.py`; do not edit this page.

```python
import frazil
```

Names below are in `frazil`, or are what its functions return. A `Name` is text such as `db.events`, or a tuple of its
parts; a `PointInTime` is a `datetime`, text such as `2026-06-01T00:00:00Z`, or milliseconds. Every error is a
`frazil.FrazilError`; the tree is at the end. What needs a Spark session uses, in this order: that of the DataFrame it
is given, the one the lake is attached to, the active one, `lake.spark`, which is made on first need.
"""
MAX_LINE = 110
SECTIONS: tuple[tuple[str, str, Any], ...] = (
    ("Opening a lake", "", (frazil.connect, frazil.session, frazil.attach, frazil.detach)),
    ("Clients of Spark Connect", "", (frazil.register_source, frazil.LakeAddress)),
    ("Lake", "lake", frazil.Lake),
    ("Results of queries", "result", QueryResult),
    ("Transactions over several tables", "tx", LakeTransaction),
    ("Table", "t", frazil.Table),
    ("Transactions of one table", "", TransactionContext),
    ("History", "history", (History, HistoryLine)),
    ("Differences of snapshots", "difference", Difference),
    ("Following a table", "follow", Follow),
    ("Changing a schema", "u", SchemaUpdate),
    ("Changing partitions", "u", PartitionSpecUpdate),
    ("Merging", "t.merge(…)", (MergeBuilder, MatchedClause, NotMatchedClause, OwnClause)),
    ("Scan", "scan", frazil.Scan),
    ("Conditions", "col(…)", (frazil.col, frazil.Column, frazil.Condition)),
    ("Plan", "plan", Plan),
    ("Tasks of a plan", "task", (FileScanTask, DeleteTask, TaskGroup)),
    ("Maintenance", "t.maintain", Maintain),
    (
        "Results of maintenance",
        "result",
        (
            OptimizeResult,
            RewriteDataFilesResult,
            RewritePositionDeletesResult,
            ConvertEqualityDeletesResult,
            RewriteManifestsResult,
            ExpireSnapshotsResult,
            ExpiredFiles,
            OrphanFilesResult,
            RewriteTablePathResult,
            AddFilesResult,
            SnapshotTableResult,
            MigrateTableResult,
            SourceTable,
            PurgeReport,
        ),
    ),
    ("View", "view", frazil.View),
    ("Report", "report", Report),
    ("Problem", "problem", Problem),
)


def reference_page() -> str:
    """Return the page."""
    parts = [HEAD]
    for title, handle, things in SECTIONS:
        parts.append(f"## {title}\n")
        for thing in things if isinstance(things, tuple) else (things,):
            if inspect.isclass(thing):
                parts += _describe_class(thing, handle)
            else:
                parts.append(_describe(f"frazil.{thing.__name__}", thing))
    parts.append(_metadata_tables())
    parts.append("## Errors\n\n```\n" + "\n".join(_error_tree(FrazilError, "")) + "\n```\n")
    return "\n".join(parts)


def _describe_class(kind: type, handle: str) -> Iterator[str]:
    yield f"**`{kind.__name__}`** {_text(kind)}\n"
    properties = []
    for name, value in members(kind):
        if isinstance(value, property | cached_property):
            function = value.fget if isinstance(value, property) else value.func
            properties.append(f"| `{handle}.{name}` | {' '.join(_text(function).split())} |")
    for name, annotation in fields_of(kind).items():
        properties.append(f"| `{handle}.{name}` | `{_type(annotation)}` |".replace(" | None", " or None"))
    if properties:
        yield "| property | |\n|---|---|\n" + "\n".join(properties) + "\n"
    for name, value in members(kind):
        if inspect.isfunction(value):
            yield _describe(f"{handle}.{name}", value)


def fields_of(kind: type) -> dict[str, Any]:
    """Return the fields of a value that users see, with their types."""
    own = vars(kind)
    notes = own.get("__annotations__", {})
    return {k: v for k, v in notes.items() if not k.startswith("_") and not isinstance(own.get(k), property)}


def members(kind: type) -> list[tuple[str, Any]]:
    """Return what a class offers, its own and its bases', in the order of the code."""
    found: dict[str, Any] = {}
    for base in [kind, *kind.__mro__[1:]]:
        if base.__module__.startswith("frazil"):
            for name, value in vars(base).items():
                if not name.startswith("_"):
                    found.setdefault(name, value)
    return list(found.items())


def _describe(name: str, function: Any) -> str:
    """Return a function's signature, on one line where it fits, and its docstring."""
    signature = inspect.signature(function)
    arguments: list[str] = []
    for one in signature.parameters.values():
        if one.name == "self":
            continue
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not any(text.startswith("*") for text in arguments):
            arguments.append("*")
        arguments.append(_argument(one))
    returns = signature.return_annotation
    tail = "" if returns is inspect.Signature.empty else f" -> {_type(returns)}"
    text = f"{name}({', '.join(arguments)}){tail}"
    if len(text) > MAX_LINE:
        text = f"{name}(\n" + "".join(f"    {one},\n" for one in arguments) + f"){tail}"
    return f"```python\n{text}\n```\n\n{_text(function)}\n"


def _argument(one: inspect.Parameter) -> str:
    kind = one.kind
    stars = "*" if kind is inspect.Parameter.VAR_POSITIONAL else "**" if kind is inspect.Parameter.VAR_KEYWORD else ""
    text = f"{stars}{one.name}: {_type(one.annotation)}"
    return text if one.default is inspect.Parameter.empty else f"{text} = {_value(one.default)}"


def _value(value: Any) -> str:
    """Return a default as code has it; of constants of other kinds their name."""
    return str(value.name) if isinstance(value, Enum) else repr(value)


def _type(annotation: Any) -> str:
    """Return an annotation without modules."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return re.sub(r"\b(?:frazil|collections|datetime|typing)(?:\.\w+)*\.(?=[A-Z])", "", text)


def _text(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def _metadata_tables() -> str:
    names = ", ".join(f"`{name}`" for name in METADATA_TABLES)
    return (
        "## Metadata tables\n\n```python\n"
        "t.inspect.snapshots(*, snapshot_id=None, as_of_ms=None, ref=None, columns=None) -> pyarrow.Table\n```\n\n"
        f"And the others: {names}.\n"
    )


def _error_tree(kind: type[Any], margin: str) -> Iterator[str]:
    first = (inspect.getdoc(kind) or "").splitlines()
    yield f"{margin}{kind.__name__:<{40 - len(margin)}}{first[0] if first else ''}".rstrip()
    for below in sorted(kind.__subclasses__(), key=lambda one: one.__name__):
        # Where an error has two parents it stands below the first.
        if below.__module__ == "frazil.errors" and below.__bases__[0] is kind:
            yield from _error_tree(below, margin + "  ")


def main() -> int:
    """Write or check the page."""
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(reference_page(), "utf-8")
        return 0
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text("utf-8") == reference_page():
            return 0
        print("docs/python.md is old; write it: tools/python_reference.py --write")
        return 1
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
