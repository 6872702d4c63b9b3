"""Which table `format("iceberg").load(…)` means."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.sessions.source_names import find_relation, source_name
from frazil.table.sql_session import FullName, SqlSession


def test_metadata_table_of_a_path_is_named_after_a_hash(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        table = lake.create_table("db.t", "id bigint")
        made = table.append(pa.table({"id": [1]}))
        assert made is not None
        session = SqlSession({"lake": lake})
        options = {"path": f"{table.location}#Files", "snapshot-id": str(made.snapshot_id)}
        found = source_name(session, options)
        relation = find_relation(session, FullName("lake", lake, (*found.namespace, found.name)))
        assert relation.metadata_table == "files"
        assert relation.state.snapshot_id == made.snapshot_id
        assert relation.table.metadata == table.metadata


@pytest.mark.parametrize("path", ["/a/b#c", "/a/files", "#files/x"])
def test_hash_before_any_other_word_is_part_of_the_path(path: str) -> None:
    with frazil.connect("memory:") as lake:
        assert source_name(SqlSession({"lake": lake}), {"path": path}).name == path
