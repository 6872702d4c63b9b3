"""Metrics modes of columns: none, counts, truncated bounds, or full bounds.

They are values of the properties `write.metadata.metrics.default` and `write.metadata.metrics.column.*`;
`spec/metrics_config.py` determines the mode of each column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from frazil.errors import InvalidRequestError

MetricsKind: TypeAlias = Literal["none", "counts", "truncate", "full"]

_TRUNCATE = re.compile(r"truncate\(([0-9]{1,10})\)", re.ASCII)
_MAX_LENGTH = 2**31 - 1
METRICS_MODES_TEXT = "none, counts, truncate(<length>) or full"


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """The metrics to record for a column; `length` is that of truncated bounds, None for other kinds.

    The length counts Unicode code points of strings and bytes of binaries; other types are never truncated.
    """

    kind: MetricsKind
    length: int | None = None

    def __post_init__(self) -> None:
        if (self.kind == "truncate") != (self.length is not None):
            raise InvalidRequestError(f"Cannot make the metrics mode {self.kind}: only truncate has a length")
        if self.length is not None and not 1 <= self.length <= _MAX_LENGTH:
            raise InvalidRequestError(f"Cannot make the metrics mode {self}: the length must be positive")

    @property
    def has_counts(self) -> bool:
        """Whether value, null and NaN counts are recorded."""
        return self.kind != "none"

    @property
    def has_bounds(self) -> bool:
        """Whether lower and upper bounds are recorded."""
        return self.kind in ("truncate", "full")

    def __str__(self) -> str:
        return self.kind if self.length is None else f"{self.kind}({self.length})"


NONE = MetricsMode("none")
COUNTS = MetricsMode("counts")
FULL = MetricsMode("full")
TRUNCATE_16 = MetricsMode("truncate", 16)


def parse_metrics_mode(text: str) -> MetricsMode:
    """Parse a metrics mode, in upper or lower case."""
    lowered = text.lower()
    if lowered == "none":
        return NONE
    if lowered == "counts":
        return COUNTS
    if lowered == "full":
        return FULL
    match = _TRUNCATE.fullmatch(lowered)
    if match is None:
        excerpt = text if len(text) <= 60 else text[:57] + "..."
        raise InvalidRequestError(
            f"Cannot read the metrics mode {excerpt!r}: no such mode", hint=f"Use {METRICS_MODES_TEXT}."
        )
    return MetricsMode("truncate", int(match.group(1)))
