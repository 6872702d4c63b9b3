"""The right to be forgotten: delete a person's rows and their files, and prove that no file contains them.

python examples/gdpr_deletion.py warehouse
"""

from __future__ import annotations

import sys
from pathlib import Path

import frazil


def forget(table: frazil.Table, person: str) -> None:
    """Delete a person's rows, and every snapshot and file that still contains them."""
    table.delete("person = :person", person=person, snapshot_properties={"reason": "article 17"})
    # Deleted rows may still be in data files, next to delete files that hide them.
    table.maintain.rewrite_data_files(options={"delete-file-threshold": "1", "min-input-files": "1"})
    # Manifests still list the removed files, with the minimum and maximum values of their columns.
    table.maintain.rewrite_manifests()
    current = table.refresh().current_snapshot
    assert current is not None
    table.expire_snapshots(snapshot_ids=[old.snapshot_id for old in table.snapshots if old != current])


def files_with(warehouse: str, text: str) -> list[str]:
    """Return the files below a folder that contain a text."""
    files = (path for path in Path(warehouse).rglob("*") if path.is_file())
    return [str(path) for path in files if text.encode() in path.read_bytes()]


def main(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        # Nothing is compressed, so that a search for bytes covers data files and the bounds in manifests.
        properties = {
            "write.delete.mode": "merge-on-read",
            "write.parquet.compression-codec": "uncompressed",
            "write.manifest.compression-codec": "uncompressed",
        }
        visits = lake.create_table("web.visits", "person string, page string", properties=properties, format_version=3)
        visits.append([{"person": "ada-4711", "page": "/a"}, {"person": "bob-4712", "page": "/b"}])
        print("files that name ada-4711 before:", len(files_with(warehouse, "ada-4711")))
        forget(visits, "ada-4711")
        print("files that name ada-4711 after:", len(files_with(warehouse, "ada-4711")))
        print("remaining rows:", visits.scan().to_arrow().to_pylist(), "table is intact:", visits.check().ok)


if __name__ == "__main__":
    main(sys.argv[1])
