"""The page docs/procedures.md: every procedure with what it takes and answers, from `procedures.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from frazil.maintenance.procedures import PROCEDURES, Parameter, Procedure

_HEAD = """# Procedures

Written by `tools/procedures_markdown.py` from what the code declares.

`CALL lake.system.<procedure>(…)` takes arguments by position or by name, in this order; Spark evaluates and converts
them. The same procedures are methods of `t.maintain` where `frazil maintain` has them. `SHOW PROCEDURES IN lake.system`
lists them, `DESCRIBE PROCEDURE lake.system.<procedure>` shows their parameters. [maintenance.md](maintenance.md) says
when to use which.
"""


def procedures_markdown() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *(line for procedure in PROCEDURES.values() for line in _section(procedure))])


def _section(procedure: Procedure) -> Iterator[str]:
    yield f"## `{procedure.name}`\n"
    places = ["`CALL`"]
    if procedure.is_for_terminal:
        places += ["`t.maintain`" if procedure.name not in ("snapshot", "migrate") else "the lake's verbs", "terminal"]
    yield f"{procedure.doc} ({', '.join(places)})\n"
    yield "| parameter | type | |"
    yield "|---|---|---|"
    for parameter in procedure.call_parameters:
        required = " (required)" if parameter.is_required else ""
        yield f"| `{parameter.name}`{required} | `{parameter.type}` | {_doc(parameter)} |"
    yield ""
    columns = ", ".join(f"`{column}`" for column in procedure.columns)
    more = ", ".join(f"`{dry_column}`" for dry_column in procedure.dry_columns)
    yield f"Answers {columns}{f'; with `dry_run` also {more}' if more else ''}.\n"


def _doc(parameter: Parameter) -> str:
    sentences = [parameter.doc]
    if parameter.default is not None:
        sentences.append(f"`{parameter.default}` by default")
    if parameter.verb is not None:
        sentences.append(f"`{parameter.verb}` in Python")
    if parameter.is_ignored:
        sentences.append("changes nothing")
    return "; ".join(sentences)


if __name__ == "__main__":
    (Path(__file__).parents[1] / "docs" / "procedures.md").write_text(procedures_markdown(), "utf-8")
