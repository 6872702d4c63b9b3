"""Every implementation reads what every other makes: values, not only counts.

`make test-interop` runs the matrix and writes docs/evidence/interop.md from what was seen. A combination that a
peer gets wrong or refuses is listed in `KNOWN` with the reason and whose it is; it is run all the same, and a peer
that has learnt it is noticed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop.interop_cases import CASES, CannotDo, Case
from tests.interop.interop_page import record
from tests.interop.java_runtime import has_java

pytest.importorskip("duckdb_extension_iceberg", reason="peers are installed by make test-interop")

from tests.interop import interop_peers as peers

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.extended]

_TIME = "Spark had no time type when Java's integration was made: theirs"
KNOWN: dict[tuple[str, str, int], str] = {
    **{("Java", "time", version): _TIME for version in (1, 2, 3)},
    **{("PyIceberg", "equality deletes", version): "PyIceberg reads no equality deletes: theirs" for version in (2, 3)},
    ("frazil on Spark", "nanoseconds", 3): "Spark has microseconds: what is smaller is cut off",
    ("DuckDB", "nanoseconds", 3): "it has no nanoseconds with a zone: theirs",
    ("Java", "nanoseconds", 3): "Spark has no nanoseconds, and Java's integration refuses the table: theirs",
}
"""By consumer, case and version: why it does not read the table, and whose bug that is."""


def combinations() -> list[Any]:
    return [
        pytest.param(case, version, producer, id=f"{case.name}-v{version}-{producer.name}")
        for case in CASES
        for version in case.versions
        for producer in peers.PRODUCERS
    ]


@pytest.mark.parametrize("case, version, producer", combinations())
def test_every_consumer_finds_the_rows(case: Case, version: int, producer: Any, tmp_path: Path, session: Any) -> None:
    section, labels = f"Tables made by {producer.name}", {"table": case.name, "version": f"v{version}"}
    try:
        made = producer(tmp_path / "producer", session)
        expected = peers.comparable(case.make(made, version))
    except CannotDo as reason:
        record(section, labels, dict.fromkeys(peers.CONSUMERS, f"not made: {reason}"))
        pytest.skip(str(reason))
    location = made.metadata_location()
    seen: dict[str, str] = {}
    for name, read in peers.CONSUMERS.items():
        if name == "Java" and not has_java():
            seen[name] = "not run: the Java runtime could not be had"
            continue
        try:
            found = peers.comparable(read(location, case.ref, session))
            seen[name] = "✓" if found == expected else "✗ other rows"
        except Exception as error:
            seen[name] = f"✗ {type(error).__name__}: {str(error).splitlines()[0][:150]}"
    known = {name: KNOWN.get((name, case.name, version)) for name in seen}
    told = {name: f"✗ {known[name]}" if said[0] == "✗" and known[name] else said for name, said in seen.items()}
    record(section, labels, told)
    wrong = {
        name: said
        for name, said in seen.items()
        if not said.startswith("not run") and (said == "✓") == (known[name] is not None)
    }
    assert not wrong, f"expected otherwise: {wrong}"
