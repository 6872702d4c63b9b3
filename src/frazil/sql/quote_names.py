"""Names as SQL writes them: in backticks where they are not plain words."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLAIN = re.compile(r"[^\W\d]\w*")


def quote(part: str) -> str:
    """Return a part of a name as terms and types write it: in backticks where it is not a plain word."""
    return part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`"


def quote_path(path: Sequence[str]) -> str:
    """Return a nested name with its parts quoted where they need it."""
    return ".".join(quote(part) for part in path)
