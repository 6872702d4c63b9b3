"""What becomes of every option, property, setting and argument of the jar, as a page: `docs/options.md`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frazil.spec import options as o
from frazil.spec.jar_surface import PROCEDURES, SAME_ANSWER
from frazil.spec.properties import COLUMN_PROPERTIES, TABLE_PROPERTIES, VIEW_PROPERTIES
from frazil.spec.properties_markdown import NOT_HONOURED
from frazil.spec.property_kinds import ColumnProperty, Property

_HEAD = """\
# Every option, honoured or answered

Made from `src/frazil/spec/options.py`, `properties.py` and `jar_surface.py` by `python -m tests.options_page --write`;
do not edit this page.

What Iceberg's jar (1.12) takes, and what becomes of it here:

- **honoured**: it does what it says.
- **refused**: an error says why.
- **warned**: it does nothing; one warning names it, with the reason.
- **kept**: a property that does nothing here, and stays for other engines. `frazil doctor` names it.

A misspelt option and a wrong value are errors that name what is allowed. An option that nobody knows is named in the
same warning. Names are read in upper or lower case. What a read or write says counts before what the session says, and
that before the table's property. The last column is the test that shows it.
"""
_PROPERTIES = "## Properties of tables and views\n\nDefaults and values: [properties.md](properties.md).\n\n"
_PROCEDURES = """\
## Arguments of procedures

Of `CALL lake.system.…`. An argument that is not listed is an error that names those there are.

"""


def options_markdown(shown: Mapping[tuple[str, str], str]) -> str:
    """Return the page; `shown` has the test of each row, by the section and the name."""
    parts = [_HEAD]
    for key, title, intro, options in (
        ("read", "Read options", "`spark.read.option(…)`, and in SQL `FROM lake.db.t WITH (…)`.", o.READ),
        ("stream", "Options of streams that read", "`spark.readStream.option(…)`.", o.STREAM_READ),
        ("write", "Write options", "`df.writeTo(…).option(…)`, `df.write.option(…)`.", o.WRITE),
        ("sink", "Options of streams that write", "`df.writeStream.option(…)`.", o.STREAM_WRITE),
        ("foreign", "Options of others", "Of Spark's own files, Delta and Hudi.", o.FOREIGN),
        ("setting", "Settings of the session", "`spark.conf.set(…)`, `SET`.", o.SETTINGS),
    ):
        rows = [
            (option.name, option.kind.allowed, option.answer, option.note, shown.get((key, option.name), ""))
            for option in options
        ]
        parts.append(f"## {title}\n\n{intro}\n\n" + _table(("option", "allowed", "answer", "", "test"), rows))
    listed: tuple[Property[object] | ColumnProperty[object], ...] = (
        *TABLE_PROPERTIES.values(),
        *COLUMN_PROPERTIES.values(),
        *VIEW_PROPERTIES.values(),
    )
    properties = [
        (
            one.name,
            "kept" if one.name in NOT_HONOURED else "honoured",
            str(NOT_HONOURED.get(one.name, one.meaning)),
            shown.get(("property", one.name), ""),
        )
        for one in listed
    ]
    parts.append(_PROPERTIES + _table(("property", "answer", "", "test"), properties))
    arguments = [
        (row, "honoured", SAME_ANSWER.get((name, argument), ""), shown.get(("procedure", row), ""))
        for name, known in PROCEDURES.items()
        for argument in known
        for row in (f"{name}({argument})",)
    ]
    parts.append(_PROCEDURES + _table(("procedure and argument", "answer", "", "test"), arguments))
    return "\n".join(parts)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for first, *rest in rows:
        cells = [f"`{first}`", *rest[:-1], f"`{rest[-1]}`" if rest[-1] else ""]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
