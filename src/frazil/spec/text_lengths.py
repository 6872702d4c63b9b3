"""Lengths of text, which Spark's `char(n)` and `varchar(n)` have and the format does not: they are `string`.

Iceberg Java takes them so too: no value is refused for its length, and none is padded. A warning says so.
"""

from __future__ import annotations

import warnings

from frazil.spec.options import PROJECT


def warn_of_lengths() -> None:
    """Say, once in a process, that lengths are not kept."""
    warnings.warn(
        "char(n) and varchar(n) are string in a lake: the format has no lengths, so that no text is refused or padded. "
        f"See docs/sql.md#tables of {PROJECT}",
        stacklevel=1,
    )
