"""The right to be forgotten: a person's rows are deleted, their files too, and the proof is that no file has them.

python examples/gdpr_deletion.py warehouse
"""

from __future__ import annotations

import sys
from pathlib import Path

import frazil


def forget(table: frazil.Table, person: str) -> None:
    """Delete a person's rows, and every snapshot and file that still leads to them."""
    table.delete("person = :person", person=person, snapshot_properties={"reason": "article 17"})
    # Deleted rows may still be in data files, beside a list of what is deleted.
    table.maintain.rewrite_data_files(options={"delete-file-threshold": "1", "min-input-files": "1"})
    # Manifests still name the files that went, with the least and greatest values of their columns.
    table.maintain.rewrite_manifests()
    current = table.refresh().current_snapshot
    assert current is not None
    table.expire_snapshots(snapshot_ids=[one.snapshot_id for one in table.snapshots if one != current])


def files_with(warehouse: str, text: str) -> list[str]:
    """Return the files below a folder that hold a text."""
    return [str(one) for one in Path(warehouse).rglob("*") if one.is_file() and text.encode() in one.read_bytes()]


def main(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        # Nothing is compressed, so that a search for bytes is a proof: of data files, and of bounds in manifests.
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
        print("rows left:", visits.scan().to_arrow().to_pylist(), "table is sound:", visits.check().ok)


if __name__ == "__main__":
    main(sys.argv[1])
