"""Names as SQL writes them. Spark's parser replaces variables in them too: see `spark/jvm/exact_sql.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLAIN = re.compile(r"[^\W\d]\w*")


def quote(name: str) -> str:
    """Return a part of a name so that a parser takes it for one name, whatever is in it: `null` too."""
    return "`" + name.replace("`", "``") + "`"


def quote_if_needed(name: str) -> str:
    """Return a part of a name as people read it, and as frazil's own parsers do: plain words are not quoted."""
    return name if _PLAIN.fullmatch(name) else quote(name)


def quote_path(path: Sequence[str]) -> str:
    """Return a nested name with its parts quoted where they need it."""
    return ".".join(quote_if_needed(name) for name in path)
