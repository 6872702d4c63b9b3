"""The warning about `char(n)` and `varchar(n)`, which become `string`, since Iceberg has no text lengths.

Iceberg Java treats them in the same way: values are neither refused for their length nor padded.
"""

from __future__ import annotations

import warnings

from frazil.jar.options import PROJECT


def warn_of_lengths() -> None:
    """Warn that text lengths are not enforced."""
    warnings.warn(
        "char(n) and varchar(n) are string in a lake: the format has no text lengths, so nothing is refused or padded. "
        f"See docs/sql.md#tables of {PROJECT}",
        stacklevel=1,
    )
