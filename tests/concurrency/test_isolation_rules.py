"""Every kind of operation, and what other writers may do to it: the rules by name, and the tests that hold them.

The rules for rows are tested one by one in `tests/unit/commit/test_conflicts.py`, and pair by pair in
`test_commit_interleavings.py`. Here are the rest, about metadata, and the list of all.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from frazil.catalog.memory import MemoryCatalog
from frazil.catalog.outcomes import Committed, Rejected
from frazil.changes.updates import SetProperties
from frazil.commit.append import Append
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.new_snapshot import Target
from frazil.commit.transaction import Transaction
from frazil.commit.update_refs import CreateRef
from frazil.commit.update_schema import UpdateSchema
from frazil.commit.update_sort_order import UpdateSortOrder
from frazil.commit.update_spec import UpdateSpec
from frazil.errors import AlreadyExistsError, InvalidRequestError, TableAlreadyExistsError, TableNotFoundError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion
from tests.support.commit_lab import SCHEMA, TABLE, Lab

CONFLICTS = "tests/unit/commit/test_conflicts.py"
PICKS = "tests/unit/commit/test_cherry_pick.py"
HERE = "tests/concurrency/test_isolation_rules.py"
RULES = {
    "blind append": (CONFLICTS, "test_blind_append_never_conflicts"),
    "blind append, a required column appeared": (
        CONFLICTS,
        "test_append_is_refused_after_a_required_column_without_default_was_added",
    ),
    "blind append, the spec changed": (CONFLICTS, "test_append_keeps_the_spec_of_its_files"),
    "append that read the table": (CONFLICTS, "test_append_that_read_the_table_validates_its_reads"),
    "MERGE with no match": (
        CONFLICTS,
        "test_merge_without_matches_conflicts_with_one_inserting_the_same_key",
    ),
    "delete by expression": (CONFLICTS, "test_delete_by_filter_removes_concurrently_added_rows"),
    "delete by expression, a file matches in part": (
        CONFLICTS,
        "test_delete_by_filter_refuses_partially_matching_concurrent_files",
    ),
    "delete named files": (CONFLICTS, "test_delete_of_a_missing_file_is_refused"),
    "copy-on-write, the file is gone": (CONFLICTS, "test_copy_on_write_refuses_a_missing_replaced_file"),
    "copy-on-write, the file got deletes": (CONFLICTS, "test_copy_on_write_refuses_new_deletes_of_a_replaced_file"),
    "copy-on-write, rows were added": (CONFLICTS, "test_copy_on_write_and_rows_added_to_its_read_set"),
    "row delta DELETE, the rows moved": (CONFLICTS, "test_row_delete_refuses_a_file_whose_rows_moved"),
    "row delta DELETE, another vector": (CONFLICTS, "test_two_row_deletes_of_one_file_are_merged_in_v3"),
    "row delta DELETE against UPDATE": (
        CONFLICTS,
        "test_row_delete_does_not_lose_to_an_update_of_the_same_rows",
    ),
    "row delta DELETE, rows were added": (CONFLICTS, "test_row_delete_and_rows_added_to_its_read_set"),
    "row delta UPDATE and MERGE": (CONFLICTS, "test_update_refuses_deletes_in_its_read_set"),
    "row delta UPDATE, the file is gone": (CONFLICTS, "test_update_refuses_a_removed_file"),
    "row delta UPDATE, rows were added": (CONFLICTS, "test_update_and_rows_added_to_its_read_set"),
    "equality delete upsert": (CONFLICTS, "test_equality_delete_upsert_never_conflicts"),
    "compaction, the file is gone": (CONFLICTS, "test_compaction_refuses_a_missing_file"),
    "compaction, new deletes by position": (CONFLICTS, "test_compaction_refuses_new_position_deletes"),
    "compaction, new equality deletes": (CONFLICTS, "test_compaction_and_new_equality_deletes"),
    "compaction, more rows": (CONFLICTS, "test_compaction_refuses_more_rows_than_it_replaces"),
    "compaction and appends": (CONFLICTS, "test_compaction_and_appends_do_not_conflict"),
    "delete file rewrite": (CONFLICTS, "test_rewrite_of_delete_files_refuses_missing_or_unnumbered_files"),
    "delete file rewrite, its number": (CONFLICTS, "test_rewritten_delete_files_keep_their_sequence_number"),
    "overwrite by filter": (CONFLICTS, "test_overwrite_by_filter"),
    "dynamic partition overwrite": (CONFLICTS, "test_dynamic_overwrite"),
    "dynamic partition overwrite, another spec": (
        CONFLICTS,
        "test_dynamic_overwrite_refuses_data_of_another_spec",
    ),
    "dynamic partition overwrite, no partitions": (
        CONFLICTS,
        "test_dynamic_overwrite_of_an_unpartitioned_table_covers_the_whole_table",
    ),
    "rewrite manifests": (CONFLICTS, "test_rewrite_of_manifests_accepts_all_changes"),
    "cherry-pick, picked already": (PICKS, "test_snapshot_already_in_the_branch_is_refused"),
    "cherry-pick, touched partitions": (PICKS, "test_dynamic_overwrite_is_refused_if_its_partitions_changed"),
    "schema": (HERE, "test_concurrent_schema_changes_are_both_applied_with_distinct_ids"),
    "partition spec": (HERE, "test_concurrent_spec_changes_are_both_applied_with_distinct_ids"),
    "sort order": (HERE, "test_last_of_two_concurrent_sort_orders_becomes_the_default_and_both_are_kept"),
    "drop old schemas and specs": (HERE, "test_schema_that_a_branch_has_started_to_use_is_not_dropped"),
    "properties": (CONFLICTS, "test_properties_are_applied_over_concurrent_ones"),
    "expire, a snapshot gained a reference": (CONFLICTS, "test_tag_created_during_an_expiry_keeps_its_snapshot"),
    "remove a reference that moved": (
        "tests/unit/commit/test_transaction.py",
        "test_drop_of_a_concurrently_moved_branch_is_retried",
    ),
    "create a table": (HERE, "test_second_of_two_concurrent_table_creations_is_refused"),
    "rename a table": (HERE, "test_commit_to_a_renamed_table_is_refused_and_changes_nothing"),
    "replace a view": (HERE, "test_second_of_two_concurrent_view_replacements_is_refused"),
    "a window that cannot be walked": (CONFLICTS, "test_operation_with_an_expired_base_is_refused"),
    "other branches": (CONFLICTS, "test_only_changes_on_the_same_branch_conflict"),
}


@pytest.mark.parametrize(("file", "name"), RULES.values(), ids=RULES)
def test_every_rule_has_a_test_of_that_name(file: str, name: str) -> None:
    text = (Path(__file__).resolve().parent.parent.parent / file).read_text("utf-8")
    assert re.search(rf"^def {name}\(", text, re.MULTILINE) is not None


def test_concurrent_schema_changes_are_both_applied_with_distinct_ids() -> None:
    lab = Lab()
    stale = lab.load()
    lab.commit(UpdateSchema(lambda update: update.add_column("x", "long")))
    lab.commit(UpdateSchema(lambda update: update.add_column("y", "string")), loaded=stale)
    fields = lab.load().metadata.current_schema.fields
    assert [(one.field_id, one.name) for one in fields] == [(1, "id"), (2, "k"), (3, "v"), (4, "x"), (5, "y")]
    assert lab.load().metadata.last_column_id == 5


def test_contradicting_schema_change_is_refused() -> None:
    lab = Lab()
    stale = lab.load()
    lab.commit(UpdateSchema(lambda update: update.add_column("x", "long")))
    with pytest.raises(InvalidRequestError, match="x"):
        lab.commit(UpdateSchema(lambda update: update.add_column("x", "string")), loaded=stale)


def test_concurrent_spec_changes_are_both_applied_with_distinct_ids() -> None:
    lab = Lab()
    stale = lab.load()
    lab.commit(UpdateSpec(lambda update: update.add_field("k")))
    lab.commit(UpdateSpec(lambda update: update.add_field("bucket(4, id)")), loaded=stale)
    metadata = lab.load().metadata
    assert [one.field_id for one in metadata.default_spec.fields] == [1000, 1001]
    assert metadata.last_partition_id == 1001
    assert len(metadata.partition_specs) == 3


def test_last_of_two_concurrent_sort_orders_becomes_the_default_and_both_are_kept() -> None:
    lab = Lab()
    stale = lab.load()
    lab.commit(UpdateSortOrder(("id",)))
    lab.commit(UpdateSortOrder(("v desc",)), loaded=stale)
    metadata = lab.load().metadata
    assert [one.source_ids for one in metadata.default_sort_order.fields] == [(3,)]
    assert len({one.order_id for one in metadata.sort_orders}) == len(metadata.sort_orders) == 3


def test_schema_that_a_branch_has_started_to_use_is_not_dropped() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)), CreateRef("dev", "branch"))
    lab.commit(UpdateSchema(lambda update: update.add_column("x", "long")))
    used = lab.load().metadata.current_schema_id
    stale = lab.load()
    # Another writer writes to a branch with the schema, and the table moves on to another one.
    lab.commit(Append((lab.file([2]),), Target("dev")))
    lab.commit(UpdateSchema(lambda update: update.add_column("y", "long")))
    expiry = ExpireSnapshots(older_than_ms=lab.now_ms + 1000, retain_last=1, cleans_metadata=True)
    lab.commit(expiry, loaded=stale)
    assert used in lab.load().metadata.schemas_by_id
    lab.check_readable()


def test_second_of_two_concurrent_table_creations_is_refused() -> None:
    lab = Lab()
    staged = [lab.catalog.stage_table(("db", "new"), SCHEMA) for _ in range(2)]
    assert isinstance(lab.catalog.commit(staged[0], ()), Committed)
    refused = lab.catalog.commit(staged[1], ())
    assert isinstance(refused, Rejected) and isinstance(refused.reason, TableAlreadyExistsError)
    assert lab.load(("db", "new")).metadata.table_uuid == staged[0].metadata.table_uuid


def test_commit_to_a_renamed_table_is_refused_and_changes_nothing() -> None:
    lab = Lab()
    transaction = Transaction(lab.catalog, pace=lab.pace, threads=1)
    transaction.table(lab.load()).add(Append((lab.file([1]),)))
    lab.catalog.rename_table(TABLE, ("db", "other"))
    with pytest.raises(TableNotFoundError):
        transaction.commit()
    assert lab.load(("db", "other")).metadata.current_snapshot_id is None
    with pytest.raises(AlreadyExistsError):
        lab.add_table(TABLE)
        lab.catalog.rename_table(("db", "other"), TABLE)


def test_second_of_two_concurrent_view_replacements_is_refused() -> None:
    catalog = MemoryCatalog()
    catalog.create_namespace(("db",))
    version = ViewVersion(1, 0, 1, (SqlRepresentation("SELECT 1 AS id", "spark"),), ("db",))
    loaded = catalog.create_view(("db", "v"), SCHEMA, version)
    changes = [SetProperties(FrozenMap({"comment": text})) for text in ("first", "second")]
    assert isinstance(catalog.commit_view(loaded, changes[:1]), Committed)
    assert isinstance(catalog.commit_view(loaded, changes[1:]), Rejected)
    assert catalog.load_view(("db", "v")).metadata.properties["comment"] == "first"
