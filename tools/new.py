"""`make new KIND=procedure NAME=purge_logs`: begin a procedure, a property, an option, a type, a transform and so on.

Each route writes the file or the declaration, a test that fails, and the line in the docs, and prints what to do next.
"Where to begin" in CONTRIBUTING.md describes the routes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Route:
    """What a kind of change begins with.

    Texts and paths may have `{text}`, the name as it was given, `{name}`, `{NAME}` and `{Name}`.
    """

    files: Mapping[str, str]
    """New files with their text."""
    next_step: str
    """What to do after the test has failed."""
    first_test: str
    inserted: tuple[tuple[str, str, str], ...] = ()
    """Declarations: a file, the line before which they go, and the text."""
    made: tuple[tuple[str, ...], ...] = ()
    """Modules that write pages anew, with their arguments."""
    listed_in: str | None = None
    """A page with a sorted list after `Functions:` that gets the name."""


_TABLE_TEST = '''"""{{what}}"""

from __future__ import annotations

import pyarrow as pa

from frazil.testing import memory_lake


def test_{name}_{{promise}}() -> None:
    with memory_lake() as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id bigint"{{options}})
        table.append(pa.table({{"id": [1, 2, 3]}}))
        {{act}}
'''
_TODO = 'raise AssertionError("check what {text} changes")'


def _table_test(what: str, promise: str, act: str, options: str = "") -> str:
    parts = {"what": what, "promise": promise, "act": act, "options": options}
    return re.sub(r"\{\{(what|promise|act|options)\}\}", lambda match: parts[match[1]], _TABLE_TEST)


ROUTES: Mapping[str, Route] = {
    "procedure": Route(
        {
            "src/frazil/maintenance/{name}.py": '''"""The procedure `{text}`: say in one sentence what it does."""

from __future__ import annotations

from frazil.errors import UnsupportedError
from frazil.loaded import LoadedTable


def {name}(loaded: LoadedTable) -> int:
    """Return how many files were changed."""
    raise UnsupportedError(f"Cannot run {text} on {{loaded.identifier}}: it is not written yet")
''',
            "tests/unit/maintenance/test_{name}.py": _table_test(
                "The procedure `{text}`.", "reports_changed_files", "assert table.maintain.{name}() == 0"
            ),
        },
        "Write src/frazil/maintenance/{name}.py, and the method `{name}` of Maintain in src/frazil/table/maintain.py.",
        "tests/unit/maintenance/test_{name}.py",
        (
            (
                "src/frazil/maintenance/procedures.py",
                ")\n\nPROCEDURES: Final",
                '    Procedure(\n        "{text}",\n        "Say in one sentence what it does.",\n        (_TABLE, DRY_RUN),\n'
                '        ("changed_files_count int",),\n        is_for_terminal=False,\n    ),\n',
            ),
        ),
        (("tools.procedures_markdown",), ("tools.module_index", "--write")),
    ),
    "property": Route(
        {
            "tests/unit/table/test_{name}_property.py": _table_test(
                "The table property `{text}`.", "is_applied", _TODO, ', properties={{"{text}": "true"}}'
            ),
        },
        "Give {NAME} its section, type and default in src/frazil/spec/properties.py, and read it by\n"
        "read_property(metadata.properties, {NAME}) where it applies; "
        "tests/architecture/test_properties_page.py fails until then.",
        "tests/unit/table/test_{name}_property.py",
        (
            (
                "src/frazil/spec/properties.py",
                '\n_of = _Section("Encryption and Hive", _table)',
                '{NAME} = _of.of("{text}", _FLAG, False, "Say in a phrase what it changes")\n',
            ),
            (
                "tests/architecture/options_shown.txt",
                "",
                "property {text} tests/unit/table/test_{name}_property.py::test_{name}_is_applied\n",
            ),
        ),
        (("tools.properties_markdown",), ("tests.architecture.options_page", "--write")),
    ),
    "write-option": Route(
        {
            "tests/unit/table/test_{name}_option.py": _table_test("The write option `{text}`.", "is_applied", _TODO),
        },
        "Give the option its type in WRITE of src/frazil/jar/options.py, and apply it in\n"
        "src/frazil/sessions/write_options.py (writes of Spark) or src/frazil/verbs/write_overrides.py (all writes).",
        "tests/unit/table/test_{name}_option.py",
        (
            (
                "src/frazil/jar/options.py",
                ")\nSTREAM_WRITE: Final",
                '    _honoured("{text}", _FLAG, "say in a phrase what it changes"),\n',
            ),
            (
                "tests/architecture/options_shown.txt",
                "",
                "write {text} tests/unit/table/test_{name}_option.py::test_{name}_is_applied\n",
            ),
        ),
        (("tests.architecture.options_page", "--write"),),
    ),
    "type": Route(
        {
            "tests/unit/spec/test_{name}_type.py": '''"""The type `{text}`."""

from __future__ import annotations

from frazil.spec.parse_type import parse_type
from frazil.spec.types import {NAME}


def test_{name}_round_trips_through_text() -> None:
    assert parse_type("{text}") == {NAME}
''',
        },
        "Make tests/unit/spec/test_every_type.py pass, error by error: it visits every place that decides by type.\n"
        "Begin with a value in tests/support/type_samples.py.",
        "tests/unit/spec/test_{name}_type.py tests/unit/spec/test_every_type.py",
        (
            (
                "src/frazil/spec/types.py",
                "\n@dataclass(frozen=True, slots=True, repr=False)\nclass UnknownType(",
                '\n@dataclass(frozen=True, slots=True, repr=False)\nclass {Name}Type(PrimitiveType):\n    """Say what its values are."""\n\n'
                '    name: ClassVar[str] = "{text}"\n    min_format_version: ClassVar[int] = 3\n\n',
            ),
            ("src/frazil/spec/types.py", "UNKNOWN = UnknownType()", "{NAME} = {Name}Type()\n"),
            ("docs/local-sql.md", "| `timestamptz_ns` |", "| `{text}` | its type in DuckDB | its type in Arrow |\n"),
        ),
    ),
    "transform": Route(
        {
            "tests/unit/spec/test_{name}_transform.py": '''"""The transform `{text}`."""

from __future__ import annotations

from frazil.spec.transforms import {NAME}, parse_transform
from frazil.spec.types import LONG


def test_{name}_is_parsed_and_applied() -> None:
    assert parse_transform("{text}") == {NAME}
    assert {NAME}.apply(7, LONG) == 7
''',
        },
        "Write {Name} in src/frazil/spec/transforms.py, its column form in src/frazil/expr/columns/transforms.py, and how\n"
        "filters reach it in src/frazil/expr/project_partition.py. tests/property/test_transform_columns.py holds them together.",
        "tests/unit/spec/test_{name}_transform.py",
        (
            (
                "src/frazil/spec/transforms.py",
                "\n@dataclass(frozen=True, slots=True)\nclass UnknownTransform(",
                '\n@dataclass(frozen=True, slots=True)\nclass {Name}(Transform):\n    """Say what it computes."""\n\n'
                '    name: ClassVar[str] = "{text}"\n    __str__ = Transform.__str__\n\n'
                "    def can_transform(self, source_type: Type) -> bool:\n"
                '        """Return whether the type is accepted."""\n        return source_type.is_primitive\n\n'
                "    def result_type(self, source_type: Type) -> Type:\n"
                '        """Return the type of the results."""\n        return source_type\n\n'
                "    def _apply(self, value: Any, source_type: Type) -> Any:\n        raise NotImplementedError\n\n"
                "    def human_text(self, value: Any, result_type: Type) -> str:\n"
                '        """Return the stored value as text."""\n        return NULL_TEXT if value is None else str(value)\n\n',
            ),
            ("src/frazil/spec/transforms.py", "VOID = Void()", "{NAME} = {Name}()\n"),
            ("docs/sql.md", "A table may have no columns yet. Types are", "`{text}(column)` is a transform too. "),
        ),
    ),
    "function": Route(
        {
            "tests/unit/change_rows/test_{name}_function.py": '''"""The function `{text}` of conditions and values."""

from __future__ import annotations

import pyarrow as pa

from frazil.testing import memory_lake


def test_{name}_is_computed() -> None:
    with memory_lake() as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "kind string")
        table.append(pa.table({{"kind": ["a", "b"]}}))
        assert table.scan("{text}(kind) = 'what Spark returns'").count() == 1
''',
        },
        "Write the function in FUNCTIONS of src/frazil/evaluate/sql_functions.py, with the types and results of Spark:\n"
        "tests/spark/test_local_expressions.py compares the two; add it to the expressions it draws from.",
        "tests/unit/change_rows/test_{name}_function.py",
        (
            (
                "src/frazil/evaluate/sql_functions.py",
                '    "upper": of_kinds(',
                '    "{text}": of_kinds(each(lambda text: text, t.STRING)),\n',
            ),
        ),
        listed_in="docs/conditions.md",
    ),
    "catalog": Route(
        {
            "src/frazil/catalog/{name}.py": '''"""The catalog `{text}`: say where it keeps the pointers to current metadata."""

from __future__ import annotations

from frazil.catalog.pointer_catalog import PointerCatalog


class {Name}Catalog(PointerCatalog):
    """Keeps pointers in {text}."""
''',
            "tests/unit/catalog/test_{name}_catalog.py": '''"""The catalog `{text}`, beyond the contract of `tests/contract/test_catalog_contract.py`."""

from __future__ import annotations

from pathlib import Path

import frazil


def test_{name}_catalog_opens(tmp_path: Path) -> None:
    with frazil.connect(tmp_path, catalog="{text}") as lake:
        assert lake.list_namespaces() == ()
''',
        },
        "Write src/frazil/catalog/{name}.py after src/frazil/catalog/sql.py, open it in `_open` of src/frazil/table/open_catalog.py,\n"
        "and add it to NAMES and `_open` of tests/support/catalog_cases.py: the contract then runs on it.",
        "tests/unit/catalog/test_{name}_catalog.py",
        (("docs/connecting.md", '| `"filesystem"` |', '| `"{text}"` | say where it keeps its pointers |\n'),),
        (("tools.module_index", "--write"),),
    ),
    "storage": Route(
        {
            "src/frazil/storage/{name}.py": '''"""The storage `{text}`: say whose files it keeps, and how a name is published once."""

from __future__ import annotations

from frazil.storage.base import Storage


class {Name}Storage(Storage):
    """Files at `{text}:` locations."""
''',
            "tests/unit/storage/test_{name}.py": '''"""The storage `{text}`, beyond the contract of `tests/contract/test_storage_contract.py`."""

from __future__ import annotations

from frazil.storage.choose import choose_storage


def test_{name}_locations_are_stored() -> None:
    storage = choose_storage({{}})
    storage.create("{text}://bucket/a", b"bytes")
    assert storage.read("{text}://bucket/a") == b"bytes"
''',
        },
        "Write src/frazil/storage/{name}.py against src/frazil/storage/base.py, choose it by its scheme in src/frazil/storage/choose.py,\n"
        "and add it to STORAGES in tests/contract/test_storage_contract.py: the contract then runs on it.",
        "tests/unit/storage/test_{name}.py",
        (("docs/connecting.md", '| `"memory:"` |', '| `"{text}://bucket/path"` | say whose store it is |\n'),),
        (("tools.module_index", "--write"),),
    ),
}


def names_of(text: str) -> dict[str, str]:
    """Return the forms of a name that texts use."""
    words = re.split(r"[._-]+", text)
    name = "_".join(words)
    return {"text": text, "name": name, "NAME": name.upper(), "Name": "".join(word.capitalize() for word in words)}


def begin(kind: str, text: str, root: Path = ROOT) -> list[str]:
    """Write what a route begins with; return the files that are new or changed."""
    route, names = ROUTES[kind], names_of(text)
    new = {root / path.format(**names): content.format(**names) for path, content in route.files.items()}
    changed: dict[Path, str] = {}
    for path, before, addition in route.inserted:
        content = changed.get(root / path) or (root / path).read_text("utf-8")
        if before and content.count(before) != 1:
            sys.exit(f"{path} does not have {before!r} once: mend the route in tools/new.py")
        at = content.index(before) if before else len(content)
        changed[root / path] = content[:at] + addition.format(**names) + content[at:]
    if route.listed_in is not None:
        page = root / route.listed_in
        changed[page] = _listed(page.read_text("utf-8"), text)
    existing = [str(path.relative_to(root)) for path in new if path.exists()]
    if existing:
        sys.exit(f"{existing[0]} exists")
    for file, content in {**new, **changed}.items():
        file.write_text(content, "utf-8")
    return [str(path.relative_to(root)) for path in (*new, *changed)]


def _listed(page: str, name: str) -> str:
    """Return a page with a name in the list of functions, which is sorted."""
    start = page.index("Functions: `") + len("Functions: `")
    end = page.index("`", start)
    words = page[start:end].split()
    after = next((word for word in words if word > name), None)
    if after is None:
        return f"{page[:end]} {name}{page[end:]}"
    at = start + re.search(rf"(?<!\S){re.escape(after)}(?!\S)", page[start:end]).start()  # type: ignore[union-attr]
    return f"{page[:at]}{name} {page[at:]}"


def main() -> None:
    """Begin a route, write its pages anew, and say what comes next."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=sorted(ROUTES))
    parser.add_argument("name")
    arguments = parser.parse_args()
    if not re.fullmatch(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*", arguments.name):
        parser.error(f"{arguments.name!r} is not a name: write it in lower case, as users will")
    files = begin(arguments.kind, arguments.name)
    route, names = ROUTES[arguments.kind], names_of(arguments.name)
    for module in route.made:
        subprocess.run([sys.executable, "-m", *module], check=True, cwd=ROOT)
    print("wrote   " + "\n        ".join(files))
    print(f"fails   .venv/bin/pytest {route.first_test.format(**names)}")
    print("next    " + route.next_step.format(**names).replace("\n", "\n        "))


if __name__ == "__main__":
    main()
