"""The list of properties as a page, `docs/properties.md`. A test compares the page with this table."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from frazil.spec.properties import (
    COLUMN_PROPERTIES,
    DAY_MS,
    GB,
    KB,
    MB,
    MINUTE_MS,
    RESERVED_PROPERTIES,
    RETIRED_PROPERTIES,
    SECOND_MS,
    TABLE_PROPERTIES,
    VIEW_PROPERTIES,
)
from frazil.spec.property_kinds import LONG_MAX, ColumnProperty, Property, Whole
from frazil.spec.unused_properties import NOT_HONOURED, REFUSED

_HEAD = """\
# Table and view properties

Made from `src/frazil/spec/properties.py`; do not edit this page.

Values are text. A value is checked when something uses it, and an error names the property, the value and
what is allowed. Words are read in upper or lower case. Properties that are not listed are kept and ignored; a name that
is a listed one but for a letter or two is refused where it is set.
A star stands for a column's full name, with dots between a struct and its fields. The last column says whether frazil
does what the property asks for; what it does not heed is kept for engines that do. Options of Spark's readers and
writers, settings of the session and properties of a lake are in [configuration.md](configuration.md).
"""

_RESERVED = """\
## Reserved

These names stand for the table's own state. They are never stored; `format-version` chooses the version when
a table is created or upgraded, and the others are ignored.
"""

_RETIRED = """\
## Retired

A table that relies on one of these cannot be written until the property that replaces it is set.
"""


def properties_markdown() -> str:
    """Return the page that lists every property."""
    families = {
        title: list(group)
        for title, group in groupby(COLUMN_PROPERTIES.values(), lambda column_property: column_property.section)
    }
    pages = [_HEAD]
    for title, group in groupby(TABLE_PROPERTIES.values(), lambda prop: prop.section):
        pages.append(f"## {title}\n\n{_table([*group, *families.get(title, [])])}")
    pages.append(f"## Views\n\n{_table(VIEW_PROPERTIES.values())}")
    pages.append(_RESERVED + "\n" + "\n".join(f"- `{name}`" for name in sorted(RESERVED_PROPERTIES)) + "\n")
    pages.append(_RETIRED + "\n" + "\n".join(f"- `{old}`: use `{new}`" for old, new in RETIRED_PROPERTIES.items()))
    return "\n".join(pages) + "\n"


def _table(listed: Iterable[Property[Any] | ColumnProperty[Any]]) -> str:
    rows = ["| property | type | default | allowed | meaning | honoured |", "|---|---|---|---|---|---|"]
    for prop in listed:
        cells = (
            f"`{prop.name}`",
            prop.value_type.title,
            _default(prop),
            prop.value_type.allowed,
            prop.meaning,
            _honoured(prop.name),
        )
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _honoured(name: str) -> str:
    if name in REFUSED:
        return f"refused: {REFUSED[name]}"
    return f"no: {NOT_HONOURED[name]}" if name in NOT_HONOURED else "yes"


def _default(prop: Property[Any] | ColumnProperty[Any]) -> str:
    if prop.default_note is not None:
        return prop.default_note
    if isinstance(prop, Property) and prop.falls_back_to is not None:
        return f"that of `{prop.falls_back_to.name}`"
    value = prop.default
    if value is None or value == ():
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if value == LONG_MAX:
        return f"{value} (forever)"
    unit = prop.value_type.unit if isinstance(prop.value_type, Whole) else ""
    return f"{value}{_rounded(value, unit)}"


def _rounded(value: Any, unit: str) -> str:
    """Return a number again in the largest unit that leaves it whole, in brackets."""
    steps = {
        "bytes": ((GB, "GB"), (MB, "MB"), (KB, "KB")),
        "ms": ((DAY_MS, "days"), (MINUTE_MS, "min"), (SECOND_MS, "s")),
    }.get(unit, ())
    for size, name in steps:
        if value >= size and value % size == 0:
            return f" ({value // size} {name})"
    return ""


if __name__ == "__main__":
    (Path(__file__).parents[1] / "docs" / "properties.md").write_text(properties_markdown(), "utf-8")
