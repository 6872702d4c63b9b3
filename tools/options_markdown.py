"""What becomes of every option, property, setting and argument of the jar, as a page: `docs/options.md`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frazil.jar import options as o
from frazil.jar.surface import PROCEDURES, SAME_ANSWER
from frazil.spec.properties import COLUMN_PROPERTIES, TABLE_PROPERTIES, VIEW_PROPERTIES
from frazil.spec.property_kinds import ColumnProperty, Property
from frazil.spec.unused_properties import NOT_HONOURED, REFUSED

_HEAD = """\
# Every option, honoured or answered

Made from `src/frazil/jar/options.py`, `properties.py` and `jar_surface.py` by
`python -m tests.architecture.options_page --write`; do not edit this page.

What Iceberg's jar (1.12) takes, and what becomes of it here:

- **honoured**: it does what it says.
- **same**: it asks how something is done, and changes no answer.
- **refused**: an error says why.
- **warned**: it does nothing; one warning names it, with the reason.
- **kept**: a property that does nothing here, and stays for other engines. `frazil doctor` names it.

A misspelt option or setting and a wrong value are errors that name what is allowed. An option of something else is
named in the same warning, and so is one that nobody knows; it is an error where rows would be wrong without it. Names
are read in upper or lower case. Precedence: option of the read or write, then setting of the session, then
property of the table. The last column is the test that shows it.

Warnings are Python's, in the process that has the lake. Clients of Spark Connect and of the Thrift server do not see
them: they are in the log of the server. Errors reach every client.
"""
_READ = "`spark.read.option(…)`, and in SQL `FROM lake.db.t WITH (…)`."
_SOURCE = "Of `frazil.register_source`, beside the read options; refused elsewhere."
_FEED = """\
`spark.read` and `spark.readStream` with `readChangeFeed`, `CHANGES FROM … WITH (…)` ([streaming.md](streaming.md))."""
_STREAM = """\
`spark.readStream.option(…)`; also `branch`, `split-size` and `file-open-cost`. What names a state or an end is
refused."""
_SINK = """\
`df.writeStream.option(…)`, beside the write options. With `start` they are checked when the query is started, with
`toTable` when its first batch comes: Spark does not show them before."""
_SETTING = "`spark.conf.set(…)`, `SET`. Reads, writes and streams look at them."
_PROPERTIES = "## Properties of tables and views\n\nDefaults and values: [properties.md](properties.md).\n\n"
_PROCEDURES = """\
## Arguments of procedures

Of `CALL lake.system.…`. An argument that is not listed is an error that names those there are.

"""

_REWRITES = """\
## Options of rewrites

`options => map(…)` of `rewrite_data_files`; those of sizes, groups and progress are of `rewrite_position_delete_files`
too. Others are errors.

"""


def options_markdown(tests: Mapping[tuple[str, str], str], rewrites: Mapping[str, str]) -> str:
    """Return the page; `shown` has the test of each row, by the section and the name.

    `rewrites` are the options of rewrites of files, with what is to be known of those that change no answer.
    """
    parts = [_HEAD]
    for key, title, intro, options in (
        ("read", o.READ_HEADING, _READ, o.READ),
        ("source", "Options of Spark's Python sources", _SOURCE, o.SOURCE),
        ("feed", o.CHANGE_FEED_HEADING, _FEED, o.CHANGE_FEED),
        ("stream", o.STREAM_READ_HEADING, _STREAM, o.STREAM_READ),
        ("write", o.WRITE_HEADING, "`df.writeTo(…).option(…)`, `df.write.option(…)`.", o.WRITE),
        ("sink", o.STREAM_WRITE_HEADING, _SINK, o.STREAM_WRITE),
        ("foreign", "Options of others", "Of Spark's own files, Delta and Hudi.", o.FOREIGN),
        ("setting", o.SETTINGS_HEADING, _SETTING, o.SETTINGS),
    ):
        rows = [
            (option.name, option.value_type.allowed, option.answer, option.note, tests.get((key, option.name), ""))
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
            option.name,
            "refused" if option.name in REFUSED else "kept" if option.name in NOT_HONOURED else "honoured",
            str({**NOT_HONOURED, **REFUSED}.get(option.name, option.meaning)),
            tests.get(("property", option.name), ""),
        )
        for option in listed
    ]
    parts.append(_PROPERTIES + _table(("property", "answer", "", "test"), properties))
    arguments = [
        (
            row,
            "same" if (name, argument) in SAME_ANSWER else "honoured",
            SAME_ANSWER.get((name, argument), ""),
            tests.get(("procedure", row), ""),
        )
        for name, known in PROCEDURES.items()
        for argument in known
        for row in (f"{name}({argument})",)
    ]
    parts.append(_PROCEDURES + _table(("procedure and argument", "answer", "", "test"), arguments))
    of_rewrites = [
        (name, "same" if note else "honoured", note, tests.get(("rewrite", name), ""))
        for name, note in rewrites.items()
    ]
    parts.append(_REWRITES + _table(("option", "answer", "", "test"), of_rewrites))
    return "\n".join(parts)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for first, *rest in rows:
        cells = [f"`{first}`", *rest[:-1], f"`{rest[-1]}`" if rest[-1] else ""]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
