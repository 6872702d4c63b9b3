"""docs/evidence/dbt-tests.md: what came of every class of dbt's adapter tests, on frazil and with the jar.

`python -m tests.dbt.dbt_page frazil.xml jar.xml` writes it from the reports that pytest made of both (`--junitxml`).
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

from tests.dbt.adapter_classes import FAILING, LEFT_OUT, OF_OTHERS, OF_THE_JAR

ROOT = Path(__file__).resolve().parent.parent.parent
PASSED, FAILED = "passed", "failed"


def read_report(path: Path) -> dict[str, dict[str, str]]:
    """Return the outcomes of a report, by class and test. What is known to fail has failed; clearing up is no test."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("classname", "").rpartition(".")[2].removeprefix("Test")
        if "test_adapter" not in case.get("classname", ""):
            continue
        bad = [one for one in case if one.tag in {"failure", "error", "skipped"}]
        if all("on teardown" in one.get("message", "") for one in bad):
            found[name].setdefault(case.get("name", ""), PASSED)
        else:
            found[name][case.get("name", "")] = FAILED
    found.pop("test_adapter", None)
    return dict(found)


def page(ours: dict[str, dict[str, str]], theirs: dict[str, dict[str, str]]) -> str:
    """Return the page."""
    tests = {(name, test) for seen in (ours, theirs) for name, own in seen.items() for test in own}
    on_the_jar = {one for one in tests if theirs.get(one[0], {}).get(one[1]) == PASSED}
    here = {one for one in tests if ours.get(one[0], {}).get(one[1]) == PASSED}
    text = [
        "# dbt's tests of adapters, class by class",
        "",
        f"`make test-dbt` runs the classes of dbt-tests-adapter {version('dbt-tests-adapter')}, unchanged, on",
        f"dbt-spark {version('dbt-spark')} and dbt-core {version('dbt-core')}, method `session`, with",
        "`+file_format: iceberg`: on frazil, and on Spark 4.1 with Iceberg's jar and its JDBC catalog.",
        f"Of {len(tests)} tests {len(on_the_jar)} pass with the jar and {len(here)} here;",
        f"{len(on_the_jar - here)} pass with the jar alone, {len(here - on_the_jar)} here alone.",
        "",
        "| class | the jar | frazil | why not |",
        "|---|---|---|---|",
    ]
    for name in sorted({name for name, _ in tests}):
        known = {**FAILING, **OF_THE_JAR}
        why = dict.fromkeys(reason for key, reason in known.items() if key.partition(".")[0] == name)
        text.append(f"| {name} | {_counts(theirs.get(name))} | {_counts(ours.get(name))} | {'; '.join(why)} |")
    text += ["", "## Not run", "", "| class or folder | why |", "|---|---|"]
    text += [f"| `{name}` | {why} |" for name, why in {**OF_OTHERS, **LEFT_OUT}.items()]
    return "\n".join(text) + "\n"


def _counts(seen: dict[str, str] | None) -> str:
    if seen is None:
        return "not run"
    passed = list(seen.values()).count(PASSED)
    return "✓" if passed == len(seen) else f"{passed} of {len(seen)}"


if __name__ == "__main__":
    frazil, jar = (read_report(Path(one)) for one in sys.argv[1:3])
    (ROOT / "docs" / "evidence" / "dbt-tests.md").write_text(page(frazil, jar))
