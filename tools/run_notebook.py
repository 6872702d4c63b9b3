"""Run notebooks/quickstart.ipynb, and hold what it prints against what is stored.

    tools/run_notebook.py --write    store what each cell printed, and write docs/quickstart.md from the notebook
    tools/run_notebook.py --check    fail where a cell raises, or prints something else than what is stored

Cells run one after the other in this process, as in a kernel. Ids of snapshots, sizes and folders differ from run to
run and are left out when outputs are compared.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "notebooks" / "quickstart.ipynb"
PAGE = ROOT / "docs" / "quickstart.md"
_CHANGING = re.compile(r"\d{15,}|\d[\d,]* bytes|file:/\S+|/tmp/\S+")


def main() -> int:
    """Run the notebook as asked."""
    if sys.argv[1:] not in (["--write"], ["--check"]):
        print(__doc__)
        return 2
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    stored = json.dumps([cell.get("outputs") for cell in notebook["cells"]])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _run(notebook["cells"])
        os.chdir(ROOT)
    page = notebook_page(notebook)
    if sys.argv[1] == "--write":
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
        PAGE.write_text(page, "utf-8")
        return 0
    before = [cell.get("outputs") for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]]
    assert stored == json.dumps(before)
    wrong = [
        f"Cell {at} printed\n{output_text(cell['outputs'])}\nbut the notebook has\n{output_text(before[at])}"
        for at, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code" and settled(output_text(cell["outputs"])) != settled(output_text(before[at]))
    ]
    print("\n\n".join(wrong) or "The notebook prints what it holds.")
    return 1 if wrong else 0


def notebook_page(notebook: dict[str, Any]) -> str:
    """Return a notebook as a page: its texts, its code, and what each cell printed."""
    parts = ["<!-- Made from notebooks/quickstart.ipynb by tools/run_notebook.py; do not edit this page. -->"]
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source.replace("](../docs/", "]("))
            continue
        parts.append(f"```python\n{source}\n```")
        printed = output_text(cell["outputs"])
        if printed:
            parts.append(f"```text\n{printed}\n```")
    return "\n\n".join(parts) + "\n"


def _run(cells: list[dict[str, Any]]) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        number += 1
        cell["execution_count"] = number
        cell["outputs"] = cell_outputs("".join(cell["source"]), names, number)


def cell_outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run a cell; its last expression is shown, unless it is None or a statement of SQL that answers nothing."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last is not None:
            assert isinstance(last, ast.Expr)
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = re.sub(r"\n\n+$", "\n", printed.getvalue())
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None and "pyspark" not in type(value).__module__ and type(value).__name__ != "Lake":
        outputs.append(
            {
                "data": {"text/plain": repr(value).splitlines(keepends=True)},
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def output_text(outputs: list[dict[str, Any]]) -> str:
    """Return what a cell printed, as one text."""
    found = ["".join(one["text"] if "text" in one else one["data"]["text/plain"]) for one in outputs]
    return "\n".join(one.rstrip("\n") for one in found)


def settled(text: str) -> str:
    """Return a text without what differs from run to run."""
    return _CHANGING.sub("…", text)


if __name__ == "__main__":
    sys.exit(main())
