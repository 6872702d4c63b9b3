"""Numbers with a point in queries that run in this process: doubles, but decimals where one is compared with a decimal.

To Spark they are decimals, which become doubles beside a double. DataFusion makes decimals with 15 places or more of
both sides where a decimal meets a double, with 7 where it meets a float, and 34.56 is 34.560000000000004 then: rows
would be missing from the answer, and NaN is an error. Its plan shows that, by types and by digits that nobody wrote, so
which numbers are to be decimals is found by trying. The same is done with parameters, which are what they were given as
or else the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

_ODD_DECIMAL = re.compile(r"Decimal\d+\([^()]*, ?15\)|AS Decimal\d+\(\d+, ?7\)")
_DECIMAL = re.compile(r"Decimal\d+\(-?([\d.]+),")
_DOUBLE_DIGITS = 17
_MAX_PLANS = 60


def choose_decimals(
    run: Callable[[frozenset[int]], Any], points: frozenset[int], *, prefers_decimals: bool = False
) -> tuple[Any, frozenset[int]]:
    """Return the plan of a query, and which of its numbers with a point are decimals in it.

    `run` plans the query, given those that are. Where it makes no difference, none is or, with `prefers_decimals`, all.
    """
    none: frozenset[int] = frozenset()
    starts = (points, none) if prefers_decimals else (none, points)
    best, best_chosen = run(starts[0]), starts[0]
    least = _odd_decimals(best) if points else 0
    changes = [none, *islice(_runs(sorted(points)), _MAX_PLANS)]
    for start in starts:
        chosen, fewest = start, None
        for change in changes:
            if least == 0:
                break
            try:
                made = run(chosen ^ change)
                count = _odd_decimals(made)
            except Exception:  # there is a plan already
                continue
            if fewest is None or count < fewest:
                chosen, fewest = chosen ^ change, count
            if count < least:
                best, best_chosen, least = made, chosen, count
    return best, best_chosen


def _runs(points: list[int]) -> Iterator[frozenset[int]]:
    """Yield numbers that follow each other, short runs first: those of `between` and `in` change together."""
    for length in range(1, len(points) + 1):
        for start in range(len(points) - length + 1):
            yield frozenset(points[start : start + length])


def _odd_decimals(plan: Any) -> int:
    text = plan.optimized_logical_plan().display_indent()
    digits = [found.replace(".", "").strip("0") for found in _DECIMAL.findall(text)]
    return len(_ODD_DECIMAL.findall(text)) + sum(len(found) >= _DOUBLE_DIGITS for found in digits)
