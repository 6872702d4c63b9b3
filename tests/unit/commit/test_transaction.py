"""The retry loop: other writers, lost answers, limits, clean-up, several actions and several tables."""

from __future__ import annotations

import uuid

import pytest

from frazil.changes.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUuid,
)
from frazil.changes.updates import AddSnapshot
from frazil.commit.action import snapshot_id_of
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.replace_table import ReplaceTable
from frazil.commit.update_properties import UpdateProperties
from frazil.commit.update_refs import CreateRef, DropRef
from frazil.commit.update_schema import UpdateSchema
from frazil.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    FrazilError,
    InvalidRequestError,
    SchemaChangeError,
    StorageError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from frazil.expr.extract import parse_predicate
from frazil.spec.frozen_map import FrozenMap
from tests.support.commit_lab import SCHEMA, TABLE, Fault, Lab, paths_of

OTHER = ("db", "u")


@pytest.mark.parametrize("losses", [1, 2, 3, 4])
def test_append_survives_several_lost_races(losses: int) -> None:
    lab = Lab()
    rivals = [lab.file([at]) for at in range(losses)]
    mine = lab.file([100])
    lab.catalog.rivals = [lab.rival(Append((one,))) for one in rivals]
    state = lab.commit(Append((mine,)))
    assert lab.paths() == paths_of(mine, *rivals)
    numbers = [one.sequence_number for one in state.metadata.snapshots]
    assert numbers == list(range(1, losses + 2))


def test_backoff_doubles_up_to_the_limit_with_jitter() -> None:
    lab = Lab(properties={"commit.retry.min-wait-ms": "100", "commit.retry.max-wait-ms": "350"})
    mine = lab.file([100])
    lab.catalog.rivals = [lab.rival(Append((lab.file([at]),))) for at in range(4)]
    lab.commit(Append((mine,)))
    assert lab.sleeps == pytest.approx([0.075, 0.15, 0.2625, 0.2625])


def test_commit_gives_up_after_its_retries_and_leaves_no_files() -> None:
    lab = Lab(properties={"commit.retry.num-retries": "2"})
    mine = lab.file([100])
    rivals = [lab.file([at]) for at in range(3)]
    lab.catalog.rivals = [lab.rival(Append((one,))) for one in rivals]
    with pytest.raises(CommitConflictError, match="other writers came first, 3 times"):
        lab.commit(Append((mine,)))
    assert lab.paths() == paths_of(*rivals)
    assert lab.stored() == reachable(lab)


def test_zero_retries_mean_one_attempt() -> None:
    lab = Lab(properties={"commit.retry.num-retries": "0"})
    mine = lab.file([100])
    lab.catalog.rivals = [lab.rival(UpdateProperties(FrozenMap({"a": "1"})))]
    with pytest.raises(CommitConflictError):
        lab.commit(Append((mine,)))
    assert lab.sleeps == []


def test_commit_gives_up_after_its_total_time() -> None:
    lab = Lab(properties={"commit.retry.num-retries": "100", "commit.retry.total-timeout-ms": "200"})
    mine = lab.file([100])
    lab.catalog.rivals = [lab.rival(Append((lab.file([at]),))) for at in range(10)]
    with pytest.raises(CommitConflictError, match="other writers came first"):
        lab.commit(Append((mine,)))
    assert len(lab.sleeps) == 2


def test_retries_reuse_new_manifests_and_leave_only_the_winning_list() -> None:
    lab = Lab()
    mine = lab.file([100])
    lab.catalog.rivals = [lab.rival(Append((lab.file([at]),), is_fast=True)) for at in range(3)]
    lab.commit(Append((mine,), is_fast=True))
    assert lab.stored() == reachable(lab)
    assert lab.snapshot.manifest_list is not None and "-4-" in lab.snapshot.manifest_list


def test_snapshot_id_is_the_same_in_all_attempts() -> None:
    lab = Lab()
    mine = lab.file([100])
    transaction = lab.transaction()
    expected = transaction.table(lab.load()).add(Append((mine,)))
    assert expected is not None
    lab.catalog.rivals = [lab.rival(Append((lab.file([at]),))) for at in range(2)]
    transaction.commit()
    assert lab.snapshot.snapshot_id == expected.snapshot_id
    assert lab.snapshot.sequence_number == 3
    assert transaction.attempts == 3


def test_commit_requires_the_state_its_actions_depend_on() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    base = lab.load()
    table = lab.transaction().table(base)
    first = table.add(Append((lab.file([2]),)))
    table.add(UpdateSchema(lambda update: update.add_column("z", "long")))
    table.add(Append((lab.file([3]),)))
    change = table.change()
    assert change.base is base
    assert first is not None and first in [one.snapshot for one in change.updates if isinstance(one, AddSnapshot)]
    assert set(change.requirements) == {
        AssertTableUuid(base.metadata.table_uuid or ""),
        AssertRefSnapshotId("main", base.metadata.current_snapshot_id),
        AssertCurrentSchemaId(base.metadata.current_schema_id),
        AssertLastAssignedFieldId(base.metadata.last_column_id),
    }


def test_rows_require_the_schema_they_were_checked_against() -> None:
    """A service compares no states: what is not required may have changed when it makes the change."""
    lab = Lab()
    base = lab.load()
    table = lab.transaction().table(base)
    table.add(Append((lab.file([1]),), Target(is_staged=True)))
    assert AssertCurrentSchemaId(base.metadata.current_schema_id) in table.change().requirements


def test_replacement_requires_all_id_counters() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    base = lab.load()
    table = lab.transaction().table(base)
    table.add(ReplaceTable(SCHEMA))
    assert {
        AssertRefSnapshotId("main", base.metadata.current_snapshot_id),
        AssertCurrentSchemaId(base.metadata.current_schema_id),
        AssertLastAssignedFieldId(base.metadata.last_column_id),
        AssertLastAssignedPartitionId(base.metadata.last_partition_id),
        AssertDefaultSpecId(base.metadata.default_spec_id),
        AssertDefaultSortOrderId(base.metadata.default_sort_order_id),
    } <= set(table.change().requirements)


def test_table_creation_requires_absence() -> None:
    lab = Lab()
    table = lab.transaction().table(lab.catalog.stage_table(OTHER, SCHEMA))
    table.add(UpdateProperties(FrozenMap({"a": "1"})))
    assert table.change().requirements == (AssertCreate(),)


def test_stale_base_is_a_lost_race_and_not_an_error() -> None:
    lab = Lab()
    stale = lab.load()
    one, two = lab.file([1]), lab.file([2])
    lab.commit(Append((one,)))
    lab.commit(Append((two,)), loaded=stale)
    assert lab.paths() == paths_of(one, two)


# Lost answers


@pytest.mark.parametrize("attempt", [1, 2, 3])
@pytest.mark.parametrize("fault", list(Fault))
def test_lost_response_at_any_attempt_ends_in_exactly_one_snapshot(fault: Fault, attempt: int) -> None:
    lab = Lab()
    mine = lab.file([100])
    rivals = [lab.file([at]) for at in range(attempt - 1)]
    lab.catalog.rivals = [lab.rival(Append((one,))) for one in rivals]
    lab.pointers.faults = [None] * (attempt - 1) + [fault]
    lab.commit(Append((mine,)))
    assert lab.paths() == paths_of(mine, *rivals)
    assert len(lab.load().metadata.snapshots) == attempt
    lab.check_readable()


@pytest.mark.parametrize("retries", ["0", "4"])
def test_landed_commit_reported_as_refused_succeeds_even_at_the_last_attempt(retries: str) -> None:
    lab = Lab(properties={"commit.retry.num-retries": retries})
    mine = lab.file([100])
    lab.catalog.false_refusals = [True]
    state = lab.commit(Append((mine,)))
    assert lab.paths() == paths_of(mine)
    assert len(state.metadata.snapshots) == 1
    lab.check_readable()


@pytest.mark.parametrize("attempt", [1, 2, 3, 5])
def test_landed_commit_reported_as_refused_at_any_attempt_is_kept_once(attempt: int) -> None:
    lab = Lab()
    mine = lab.file([100])
    rivals = [lab.file([at]) for at in range(attempt - 1)]
    lab.catalog.rivals = [lab.rival(Append((one,))) for one in rivals]
    lab.catalog.false_refusals = [False] * (attempt - 1) + [True]
    lab.commit(Append((mine,)))
    assert lab.paths() == paths_of(mine, *rivals)
    assert len(lab.load().metadata.snapshots) == attempt
    lab.check_readable()


def test_commit_with_a_lost_response_is_found_below_later_commits() -> None:
    lab = Lab()
    mine, theirs = lab.file([1]), lab.file([2])
    resolve = lab.catalog.resolve_unknown

    def resolve_late(unknown: object) -> object:
        lab.commit(Append((theirs,)))
        return resolve(unknown)  # type: ignore[arg-type]

    lab.pointers.faults = [Fault.LOST_AFTER]
    lab.catalog.resolve_unknown = resolve_late  # type: ignore[method-assign, assignment]
    lab.commit(Append((mine,)))
    assert lab.paths() == paths_of(mine, theirs)


def test_unknown_outcome_is_raised_and_nothing_is_deleted() -> None:
    lab = Lab()
    mine = lab.file([100])
    lab.pointers.faults = [Fault.LOST_BEFORE]

    def unreachable(change: object) -> object:
        raise StorageError("Cannot reach the catalog")

    lab.pointers.find_settled = unreachable  # type: ignore[method-assign, assignment]
    before = lab.stored()
    with pytest.raises(CommitStateUnknownError) as caught:
        lab.commit(Append((mine,)))
    assert not caught.value.may_clean_up
    written = lab.stored() - before
    assert {one.rpartition(".")[2] for one in written} == {"avro", "json"}
    assert len(written) == 3
    assert lab.sleeps == pytest.approx([0.75, 1.5, 3.0])


def test_nothing_is_deleted_after_an_unknown_outcome_even_if_resolved() -> None:
    lab = Lab(properties={"commit.retry.num-retries": "1"})
    mine = lab.file([100])
    lab.pointers.faults = [Fault.LOST_BEFORE]
    lab.catalog.rivals = [None, lab.rival(Append((lab.file([1]),)))]
    with pytest.raises(CommitConflictError):
        lab.commit(Append((mine,)))
    assert lab.stored() - reachable(lab)


# Failures and clean-up


def test_permanent_conflict_is_raised_and_cleaned_up() -> None:
    lab = Lab()
    one, two = lab.file([1]), lab.file([2])
    lab.commit(Append((one,)))
    read = ReadSet(lab.snapshot.snapshot_id)
    lab.catalog.rivals = [lab.rival(DeleteFiles(frozenset({one.file_path})))]
    with pytest.raises(ConcurrentChangeError):
        lab.commit(Overwrite((two,), read, (one,)))
    assert lab.paths() == set()
    assert lab.stored() == reachable(lab)


def test_failed_first_attempt_leaves_no_files() -> None:
    lab = Lab()
    one = lab.file([1])
    lab.commit(Append((one,)))
    before = lab.stored()
    transaction = lab.transaction()
    table = transaction.table(lab.load())
    table.add(Append((lab.file([2]),)))
    with pytest.raises(ConcurrentChangeError, match="not in the table"):
        table.add(DeleteFiles(frozenset({one.file_path, "memory://lake/db/t/data/none"})))
    transaction.roll_back()
    assert lab.stored() == before


def test_cleanup_keeps_files_if_the_table_cannot_be_reloaded() -> None:
    lab = Lab(properties={"commit.retry.num-retries": "0"})
    mine = lab.file([100])
    lab.catalog.rivals = [lambda: lab.catalog.drop_table(TABLE)]
    before = lab.stored()
    with pytest.raises(TableNotFoundError):
        lab.commit(Append((mine,)))
    assert before < lab.stored()


def test_cleanup_deletes_the_files_of_the_commit_at_any_location() -> None:
    lab = Lab(properties={"commit.retry.num-retries": "0"})
    mine = lab.file([100])
    outside = {"write.metadata.path": "memory://elsewhere/meta"}
    transaction = lab.transaction()
    table = transaction.table(lab.load())
    table.add(UpdateProperties(FrozenMap(outside)))
    table.add(Append((mine,)))
    lab.catalog.rivals = [lab.rival(Append((lab.file([1]),)))]
    with pytest.raises(CommitConflictError):
        transaction.commit()
    assert list(lab.storage.list("memory://elsewhere")) == []


def test_interrupt_deletes_nothing() -> None:
    lab = Lab()
    mine = lab.file([100])

    def interrupt() -> None:
        raise KeyboardInterrupt

    lab.catalog.rivals = [interrupt]
    before = lab.stored()
    with pytest.raises(KeyboardInterrupt):
        lab.commit(Append((mine,)))
    assert len(lab.stored() - before) == 2


def test_table_recreated_under_the_name_is_refused() -> None:
    lab = Lab()
    mine = lab.file([100])

    def recreate() -> None:
        lab.catalog.drop_table(TABLE)
        lab.add_table(TABLE)

    lab.catalog.rivals = [recreate]
    with pytest.raises(FrazilError):
        lab.commit(Append((mine,)))
    assert len(lab.load().metadata.snapshots) == 0


def test_colliding_snapshot_ids_do_not_lose_a_commit() -> None:
    lab = Lab()
    mine, theirs = lab.file([1]), lab.file([2])
    fixed = lab.new_id()
    lab.catalog.new_id = lambda: fixed
    transaction = lab.transaction()
    transaction.table(lab.load()).add(Append((mine,)))
    other = lab.transaction()
    with pytest.raises(FrazilError):
        other.table(lab.load()).add(Append((theirs,)))
    lab.catalog.new_id = lab.new_id
    transaction.commit()
    assert lab.paths() == paths_of(mine)


def test_foreign_snapshot_with_the_same_id_is_not_mistaken_for_the_own_one() -> None:
    lab = Lab()
    mine, theirs = lab.file([1]), lab.file([2])
    first = uuid.UUID(lab.new_id())
    twin = uuid.UUID(int=first.int ^ (7 << 64 | 7))
    assert snapshot_id_of(str(first)) == snapshot_id_of(str(twin))
    ids = iter([str(first), str(twin)])
    lab.catalog.new_id = lambda: next(ids, None) or lab.new_id()
    transaction, other = lab.transaction(), lab.transaction()
    transaction.table(lab.load()).add(Append((mine,)))
    other.table(lab.load()).add(Append((theirs,)))
    other.commit()
    with pytest.raises(InvalidRequestError, match="a snapshot with that ID"):
        transaction.commit()
    assert lab.paths() == paths_of(theirs)


# Several actions


def test_actions_of_a_transaction_see_each_other_and_commit_together() -> None:
    lab = Lab(partition_by=["k"])
    one, two = lab.file([1], "a"), lab.file([2], "b")
    lab.commit(Append((one,)))
    versions = len(lab.load().metadata.metadata_log)
    transaction = lab.transaction()
    table = transaction.table(lab.load())
    table.add(UpdateSchema(lambda u: u.add_column("w", "long")))
    assert "w" in [one.name for one in table.staged.metadata.current_schema.fields]
    table.add(Append((two,)))
    table.add(DeleteFiles(where=parse_predicate("k = 'a'")))
    (state,) = transaction.commit()
    assert lab.paths() == paths_of(two)
    assert len(state.metadata.metadata_log) == versions + 1
    assert len(state.metadata.snapshots) == 3
    assert len(state.metadata.snapshot_log) == 2
    assert state.metadata.current_schema.find_field("w") is not None


@pytest.mark.parametrize("losses", [1, 3])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_transaction_of_several_actions_survives_conflicts(losses: int, version: int) -> None:
    properties = {"commit.manifest.min-count-to-merge": "2"}
    lab = Lab(partition_by=["k"], format_version=version, properties=properties)
    start = [lab.file([at], k) for at, k in enumerate("abc")]
    for one in start:
        lab.commit(Append((one,)))
    mine = [lab.file([10 + at], "d") for at in range(2)]
    rivals = [lab.file([20 + at], "e") for at in range(losses)]
    lab.catalog.rivals = [lab.rival(Append((one,))) for one in rivals]
    lab.commit(
        Append((mine[0],)),
        DeleteFiles(where=parse_predicate("k = 'a'")),
        Append((mine[1],)),
        Overwrite((), None, (start[1],)),
        UpdateProperties(FrozenMap({"x": "y"})),
    )
    assert lab.paths() == paths_of(*mine, *rivals, start[2])
    assert lab.stored() == reachable(lab)
    lab.check_readable()
    assert lab.summary["total-data-files"] == str(3 + losses)


def test_empty_transaction_makes_no_commit() -> None:
    lab = Lab(properties={"a": "1"})
    before = lab.load()
    after = lab.commit(UpdateProperties(FrozenMap({"a": "1"})), DeleteFiles(where=parse_predicate("id = 1")))
    assert after.metadata_location == before.metadata_location


def test_transaction_can_be_used_once() -> None:
    lab = Lab()
    transaction = lab.transaction()
    transaction.table(lab.load()).add(Append((lab.file([1]),)))
    transaction.commit()
    with pytest.raises(InvalidRequestError, match="it is over"):
        transaction.commit()
    with pytest.raises(InvalidRequestError, match="it is over"):
        transaction.table(lab.load())


def test_rolled_back_transaction_leaves_nothing() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    before = lab.stored()
    transaction = lab.transaction()
    transaction.table(lab.load()).add(Append((lab.file([2]),)))
    assert before < lab.stored()
    transaction.roll_back()
    assert lab.stored() == before


# Creating a table with its first rows


def test_table_is_created_with_its_first_rows_in_one_commit() -> None:
    lab = Lab()
    staged = lab.catalog.stage_table(OTHER, lab.load().metadata.current_schema)
    transaction = lab.transaction()
    table = transaction.table(staged)
    one = lab.file([1])
    table.add(Append((one,)))
    assert not lab.catalog.table_exists(OTHER)
    transaction.commit()
    assert len(lab.load(OTHER).metadata.snapshots) == 1


def test_loser_of_two_table_creations_leaves_no_files() -> None:
    lab = Lab()
    staged = lab.catalog.stage_table(OTHER, lab.load().metadata.current_schema)
    transaction = lab.transaction()
    transaction.table(staged).add(Append((lab.file([1]),)))
    lab.add_table(OTHER)
    mine = {one for one in lab.stored() if one.endswith(".avro")}
    assert len(mine) == 2
    with pytest.raises(TableAlreadyExistsError):
        transaction.commit()
    assert not mine & lab.stored()
    assert len(lab.load(OTHER).metadata.snapshots) == 0


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER])
def test_creation_with_a_lost_response_happens_once(fault: Fault) -> None:
    lab = Lab()
    staged = lab.catalog.stage_table(OTHER, lab.load().metadata.current_schema)
    transaction = lab.transaction()
    transaction.table(staged).add(Append((lab.file([1]),)))
    lab.pointers.faults = [fault]
    transaction.commit()
    assert len(lab.load(OTHER).metadata.snapshots) == 1


# Several tables


@pytest.mark.parametrize("losses", [0, 1, 2])
def test_several_tables_commit_together(losses: int) -> None:
    lab = Lab()
    other = lab.add_table(OTHER)
    one, two, rivals = lab.file([1]), lab.file([2]), [lab.file([at]) for at in range(losses)]
    transaction = lab.transaction()
    transaction.table(lab.load()).add(Append((one,)))
    transaction.table(other).add(Append((two,)))
    lab.catalog.rivals = [lab.rival(Append((rival,))) for rival in rivals]
    first, second = transaction.commit()
    assert lab.paths() == paths_of(one, *rivals)
    assert lab.paths(second.metadata.current_snapshot) == paths_of(two)
    assert first.identifier == TABLE and second.identifier == OTHER


def test_conflict_in_one_table_changes_none() -> None:
    lab = Lab()
    other = lab.add_table(OTHER)
    one, two = lab.file([1]), lab.file([2])
    lab.commit(Append((one,)))
    transaction = lab.transaction()
    transaction.table(other).add(Append((two,)))
    transaction.table(lab.load()).add(DeleteFiles(frozenset({one.file_path})))
    lab.catalog.rivals = [lab.rival(DeleteFiles(frozenset({one.file_path})))]
    with pytest.raises(ConcurrentChangeError):
        transaction.commit()
    assert len(lab.load(OTHER).metadata.snapshots) == 0


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.LANDS_LATE])
def test_multi_table_commit_with_a_lost_response_is_resolved(fault: Fault) -> None:
    lab = Lab()
    other = lab.add_table(OTHER)
    transaction = lab.transaction()
    transaction.table(lab.load()).add(Append((lab.file([1]),)))
    transaction.table(other).add(Append((lab.file([2]),)))
    lab.pointers.faults = [fault]
    transaction.commit()
    assert [len(lab.load(name).metadata.snapshots) for name in (TABLE, OTHER)] == [1, 1]


# Branches share the sequence numbers of the table


def test_commits_to_different_branches_get_different_sequence_numbers() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([0]),)))
    lab.commit(CreateRef("audit", "branch"))
    mine = lab.file([1])
    lab.catalog.rivals = [lab.rival(Append((lab.file([2]),), Target("audit")))]
    lab.commit(Append((mine,)))
    numbers = [one.sequence_number for one in lab.load().metadata.snapshots]
    assert sorted(numbers) == [1, 2, 3]


# Schema changes are taken anew on what others made of the schema


def test_schema_change_is_rebuilt_on_the_winning_schema() -> None:
    lab = Lab()
    lab.catalog.rivals = [lab.rival(UpdateSchema(lambda u: u.add_column("x", "long")))]
    state = lab.commit(UpdateSchema(lambda u: u.add_column("y", "long")))
    ids = {one.name: one.field_id for one in state.metadata.current_schema.fields}
    assert ids["x"] == 4 and ids["y"] == 5


def test_schema_change_made_impossible_by_another_writer_is_refused() -> None:
    lab = Lab()
    lab.catalog.rivals = [lab.rival(UpdateSchema(lambda u: u.add_column("x", "long")))]
    with pytest.raises(SchemaChangeError, match="x"):
        lab.commit(UpdateSchema(lambda u: u.add_column("x", "string")))


def reachable(lab: Lab) -> set[str]:
    """Return every metadata file that the table leads to."""
    state = lab.load()
    found = {one.metadata_file for one in state.metadata.metadata_log}
    found.add(state.metadata_location or "")
    for snapshot in state.metadata.snapshots:
        found.add(snapshot.manifest_list or "")
        found |= {one.manifest_path for one in lab.manifests(snapshot)}
    return found


def test_drop_of_a_concurrently_moved_branch_is_retried() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([0]),)))
    lab.commit(CreateRef("audit", "branch"))
    lab.catalog.rivals = [lab.rival(Append((lab.file([2]),), Target("audit")))]
    state = lab.commit(DropRef("audit", "branch"))
    assert state.metadata.find_ref("audit") is None
