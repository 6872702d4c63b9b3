"""Every place that deletes is known, and says why it may: a new one has to be thought about."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parents[2] / "src" / "frazil"
_DELETES: Final = re.compile(r"(?:storage|_storage|\)|self)\.(delete|delete_many|delete_folder|replace)\(")
_ASKED: Final = "asks OwnedFolders for every file"
_WRITTEN: Final = "files that this process has just written, by their names"
_VERSIONS: Final = "versions and the hint of a filesystem catalog, in the table's own folder"

PLACES: Final = {
    "commit/delete_paths.py": _ASKED,
    "maintenance/purge_files.py": _ASKED,
    "catalog/purge.py": "empty folders, of a filesystem catalog's table",
    "catalog/filesystem.py": _VERSIONS,
    "catalog/version_files.py": _VERSIONS,
    "catalog/pointer_catalog.py": "metadata of a commit that failed; old metadata files beside the pointer",
    "commit/transaction.py": _WRITTEN,
    "datafile/rows_writer.py": _WRITTEN,
    "verbs/one_commit.py": _WRITTEN,
    "change_rows/find_rows.py": _WRITTEN,
    "maintenance/convert_equality_deletes.py": _WRITTEN,
    "maintenance/rewrite_data_files.py": _WRITTEN,
    "maintenance/rewrite_position_deletes.py": _WRITTEN,
    "maintenance/rewrite_table_path.py": "the list of files to copy, in the staging folder",
    "spark/change/change_rows.py": _WRITTEN,
    "spark/write/native_write.py": "what Spark's job wrote to a folder of its own, which a random name makes",
    "spark/change/overwrite.py": _WRITTEN,
}


def test_every_call_that_deletes_files_is_listed() -> None:
    found = {
        str(one.relative_to(SOURCES))
        for one in SOURCES.rglob("*.py")
        if one.parent.name != "storage"
        and any(
            _DELETES.search(line) and '.replace("' not in line and ".replace('" not in line
            for line in one.read_text().splitlines()
        )
    }
    assert found == set(PLACES)
