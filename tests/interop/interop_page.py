"""What runs beside other implementations saw, for the pages interop, sql-differences and jar-pages of docs/evidence.

`python -m tests.interop.interop_page` writes the pages from the file that FRAZIL_INTEROP_SEEN names.
"""

from __future__ import annotations

import json
import os
import tomllib
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from tests.interop.jar_blocks import BLOCKS, RUN, Block
from tests.interop.jar_blocks import KINDS as BLOCK_KINDS
from tests.interop.java_runtime import PACKAGE
from tests.interop.rust_client import SOURCE
from tests.interop.sql_on_java import KINDS

SEEN = os.environ.get("FRAZIL_INTEROP_SEEN")
"""A file to which each test adds a line; none is kept where it is not named."""
ROOT = Path(__file__).resolve().parent.parent.parent


def record(section: str, labels: dict[str, str], seen: dict[str, str]) -> None:
    """Keep a line of a section's table: what it is about, and what each implementation made of it."""
    _keep({"section": section, "labels": labels, "seen": seen})


def record_sql(cases: int, differences: list[dict[str, str]], refused: list[dict[str, str]]) -> None:
    """Keep how many SQL cases ran through the jar, which differed, and which steps of the public pages it refused."""
    _keep({"cases": cases, "differences": differences, "refused": refused})


def record_pages(*, with_the_jar: bool) -> None:
    """Keep that the blocks of Iceberg's pages ran here, or through the jar too."""
    _keep({"pages": with_the_jar})


def _keep(line: dict[str, Any]) -> None:
    if SEEN is not None:
        with Path(SEEN).open("a") as file:
            file.write(json.dumps(line) + "\n")


def versions() -> str:
    """Return the versions of those that took part."""
    listed = ", ".join(f"{name} {installed(name)}" for name in ("pyiceberg", "duckdb", "pyspark", "pyarrow"))
    rust = tomllib.loads((SOURCE / "Cargo.toml").read_text())["dependencies"]["iceberg"].lstrip("=")
    return f"{listed}, {PACKAGE.split(':')[1]} {PACKAGE.split(':')[2]}, iceberg-rust {rust}"


def interop_page(lines: list[dict[str, Any]]) -> str:
    """Return the page: a table for each section, and the reasons below."""
    text = [
        "# Who reads what",
        "",
        "Made by `make test-interop` from what it saw: ✓ where every value was equal, ✗ with the reason and whose it",
        "is, *not made* where the producer cannot make such a table, *not run* where an implementation was absent or",
        "has no part in it.",
        f"Versions: {versions()}.",
    ]
    # What was looked at twice counts as it was seen last.
    newest = {(line["section"], *line["labels"].items()): line for line in lines}
    for section in sorted(dict.fromkeys(key[0] for key in newest), key=_place):
        text += ["", f"## {section}", "", *_section([line for key, line in newest.items() if key[0] == section])]
    return "\n".join(text) + "\n"


def _place(section: str) -> int:
    """Return where a section stands: tables first, in the order in which they were made."""
    return 0 if section.startswith("Tables made by") else 1


def _section(lines: list[dict[str, Any]]) -> list[str]:
    labels = list(dict.fromkeys(name for line in lines for name in line["labels"]))
    peers = list(dict.fromkeys(name for line in lines for name in line["seen"]))
    text = [f"| {' | '.join([*labels, *peers])} |", "|---" * (len(labels) + len(peers)) + "|"]
    reasons: dict[str, int] = {}
    for line in lines:
        cells = [line["labels"].get(name, "") for name in labels]
        for name in peers:
            said = line["seen"].get(name, "not run")
            # "✓", "✗ and why", "not run: why", or a number.
            mark, _, reason = said.partition(": ") if said.startswith("not ") else said.partition(" ")
            if reason:
                mark += f" [{reasons.setdefault(reason, len(reasons) + 1)}]"
            cells.append(mark)
        text.append(f"| {' | '.join(cells)} |")
    text += [""] if reasons else []
    return text + [f"[{number}] {reason}  " for reason, number in reasons.items()]


def sql_page(cases: int, differences: list[dict[str, str]], refused: list[dict[str, str]]) -> str:
    """Return the page of differences in SQL."""
    text = [
        "# Where SQL differs from Iceberg's jar",
        "",
        f"Made by `make test-interop`: the {cases} cases of `tests/sql_cases`, which frazil passes on Spark, run",
        "through Iceberg's Java runtime with its JDBC catalog over SQLite. Errors are compared as error or none,",
        "answers as values.",
        f"{cases - len(differences)} cases agree; {len(differences)} differ. Versions: {versions()}.",
    ]
    for kind, title in KINDS.items():
        own = [one for one in differences if one["kind"] == kind]
        if own:
            text += ["", f"## {title}", "", "| case | statement | frazil | the jar | why |", "|---|---|---|---|---|"]
            for one in own:
                said = [_code(one["statement"]), _cell(one["frazil"]), _cell(one["jar"]), _cell(one["why"])]
                text.append(f"| {one['place']} | {' | '.join(said)} |")
    text += [
        "",
        "## The public pages",
        "",
        "The code of Iceberg's pages on first steps, DDL, writes and queries, retold in `tests/spark/pages_script.py`,",
        "runs on frazil with nothing changed but the line that attaches, and finds the same as the jar in every step",
        "that the jar takes. Steps that the jar refuses:",
        "",
        "| step | the jar | why |",
        "|---|---|---|",
    ]
    text += [f"| {_code(one['step'])} | {_cell(one['jar'])} | {_cell(one['why'])} |" for one in refused]
    return "\n".join(text) + "\n"


def pages_page(*, with_the_jar: bool) -> str:
    """Return the page on the blocks of Iceberg's pages."""
    pages = list(dict.fromkeys(key.partition("/")[0] for key in BLOCKS))
    text = [
        "# Iceberg's pages for Spark, block by block",
        "",
        "Every block of code on Iceberg's documentation pages for Spark, as it runs on frazil.",
        "`tests/interop/test_jar_pages.py` runs them over an attached lake, each from tables of its own. The pages are",
        "of Iceberg's main branch in August 2026; they are not kept here: `ICEBERG_DOCS` names a folder with them.",
        "What pages leave open (`SELECT …`, ids of snapshots, times, paths) is filled in; blocks of Scala run as the",
        "Python that says the same, call for call.",
        *_beside_the_jar(with_the_jar=with_the_jar),
        "",
        f"| page | blocks | {' | '.join(BLOCK_KINDS)} |",
        "|---" * (len(BLOCK_KINDS) + 2) + "|",
    ]
    for page in [*pages, "all"]:
        own = [one.kind for key, one in BLOCKS.items() if page in {key.partition("/")[0], "all"}]
        counts = " | ".join(str(own.count(kind)) for kind in BLOCK_KINDS)
        text.append(f"| {page} | {len(own)} | {counts} |")
    text += ["", *(f"- {kind}: {meaning}." for kind, meaning in BLOCK_KINDS.items())]
    for page in pages:
        text += ["", f"## {page}", "", "| block | here | with the jar |", "|---|---|---|"]
        for key, one in BLOCKS.items():
            of_page, *heading, number, _ = key.split("/")
            if of_page == page:
                here = ": ".join(part for part in (one.kind, _told(one)) if part)
                text.append(f"| {'/'.join(heading)} {number} | {here} | {_of_the_jar(one) if with_the_jar else ''} |")
    return "\n".join(text) + "\n"


def _beside_the_jar(*, with_the_jar: bool) -> list[str]:
    if not with_the_jar:
        return ["They were not run through the jar yet."]
    both = [one for one in BLOCKS.values() if one.kind in RUN]
    refused = sum(one.jar_refuses != "" for one in both)
    differ = sum(one.differs != "" for one in both)
    same = len(both) - refused - differ
    return [
        f"Of {len(both)} that run here, {same} do the same through {' '.join(PACKAGE.split(':')[1:])}: columns and",
        f"numbers of rows of answers, and the tables that are left. {differ} have another answer, and the jar refuses",
        f"{refused}.",
    ]


def _of_the_jar(block: Block) -> str:
    if block.kind not in RUN:
        return ""
    if block.jar_refuses:
        return f"refused: {block.jar_refuses}"
    return f"another answer: {block.differs}" if block.differs else "the same"


def _told(block: Block) -> str:
    return "; ".join(one for one in (f"`{block.lines}`" if block.lines else "", block.why) if one)


def _code(text: str) -> str:
    mark = "``" if "`" in text else "`"
    return f"{mark}{_cell(text)}{mark}"


def _cell(text: str, limit: int = 220) -> str:
    flat = " ".join(text.split()).replace("|", "\\|")
    return flat if len(flat) <= limit else f"{flat[:limit]}…"


def main() -> None:
    """Write the pages from the file of what was seen."""
    assert SEEN is not None, "set FRAZIL_INTEROP_SEEN to the file that the run wrote"
    lines = [json.loads(line) for line in Path(SEEN).read_text().splitlines()]
    (ROOT / "docs" / "evidence" / "interop.md").write_text(interop_page([line for line in lines if "section" in line]))
    for line in lines:
        if "cases" in line:
            (ROOT / "docs" / "evidence" / "sql-differences.md").write_text(sql_page(**line))
        if "pages" in line:
            (ROOT / "docs" / "evidence" / "jar-pages.md").write_text(pages_page(with_the_jar=line["pages"]))


if __name__ == "__main__":
    main()
