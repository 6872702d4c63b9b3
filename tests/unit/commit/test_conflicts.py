"""Isolation: for each operation, what other writers may do in between and what they may not, at both levels."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from frazil.commit.action import Action
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.commit.replace_table import ReplaceTable
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.row_delta import RowDelta
from frazil.commit.update_properties import UpdateProperties
from frazil.commit.update_refs import CreateRef, Rollback, SetCurrentSnapshot
from frazil.commit.update_schema import UpdateSchema
from frazil.commit.update_spec import UpdateSpec
from frazil.commit.write_manifests import AddedFile
from frazil.errors import ConcurrentChangeError, InvalidRequestError, SchemaMismatchError
from frazil.expr.bind import bind
from frazil.expr.extract import parse_predicate
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import IsolationLevel
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from tests.support.commit_lab import SCHEMA, Lab, paths_of

SERIALIZABLE: IsolationLevel = "serializable"
SNAPSHOT: IsolationLevel = "snapshot"
LEVELS: tuple[IsolationLevel, ...] = (SERIALIZABLE, SNAPSHOT)
A = parse_predicate("k = 'a'")
B = parse_predicate("k = 'b'")


class Case:
    """A table with a file in each of the partitions a and b, that an operation has read."""

    def __init__(self, version: int = 2, partition_by: tuple[str, ...] = ("k",)) -> None:
        self.lab = Lab(partition_by=partition_by, format_version=version)
        self.a, self.b = self.lab.file([1, 2, 3], "a"), self.lab.file([4, 5, 6], "b")
        self.lab.commit(Append((self.a, self.b)))
        self.start = self.lab.snapshot.snapshot_id

    def read(self, isolation: IsolationLevel = SERIALIZABLE, where: str = "k = 'a'") -> ReadSet:
        """Return the read set of an operation on some rows."""
        return ReadSet(self.start, parse_predicate(where), isolation)

    def deletes_of(self, file: DataFile) -> DataFile:
        """Return position deletes of a file: a vector in v3."""
        if self.lab.load().metadata.format_version > 2:
            return self.lab.vectors({file: [0]})[0]
        return self.lab.position_deletes(file)

    def rival(self, *actions: Action) -> None:
        """Let another writer come first."""
        self.lab.catalog.rivals = [self.lab.rival(*actions)]

    def refused(self, action: Action, match: str | None = None) -> None:
        """Check that an action conflicts and changes nothing."""
        with pytest.raises(ConcurrentChangeError, match=match) as caught:
            self.lab.commit(action)
        assert caught.value.message.startswith(f"Cannot commit to {self.lab.load().name}: ")
        assert (caught.value.hint or "").endswith("Run it again.") or "un the operation again" in str(caught.value)

    def fresh_read(self) -> ReadSet:
        """Return the read set of a rival that reads the table as it is."""
        return ReadSet(self.lab.snapshot.snapshot_id)


# Blind append


@pytest.mark.parametrize("version", [1, 2, 3])
def test_blind_append_never_conflicts(version: int) -> None:
    case = Case(version)
    mine, other = case.lab.file([9], "a"), case.lab.file([8], "a")
    case.rival(Overwrite((other,), None, (case.a,)))
    case.lab.commit(Append((mine,)))
    assert case.lab.paths() == paths_of(mine, other, case.b)


def test_append_is_refused_after_a_required_column_without_default_was_added() -> None:
    case = Case()
    schema = case.lab.load().metadata.current_schema
    case.rival(UpdateSchema(lambda u: u.allow_incompatible_changes().add_required_column("must", "long")))
    with pytest.raises(SchemaMismatchError, match="must"):
        case.lab.commit(Append((case.lab.file([9]),), written_schema=schema))


def test_append_succeeds_after_an_optional_column_was_added() -> None:
    case = Case()
    schema = case.lab.load().metadata.current_schema
    case.rival(UpdateSchema(lambda u: u.add_column("may", "long")))
    case.lab.commit(Append((case.lab.file([9]),), written_schema=schema))
    assert len(case.lab.paths()) == 3


def test_append_keeps_the_spec_of_its_files() -> None:
    case = Case()
    mine = case.lab.file([9], "a")
    case.rival(UpdateSpec(lambda u: u.add_field("bucket(4, id)")))
    case.lab.commit(Append((mine,)))
    assert {one.data_file.spec_id for one in case.lab.live()} == {0}


# Rows that an overwrite of another writer added


@pytest.mark.parametrize("version", [2, 3])
def test_rows_added_by_a_concurrent_overwrite_conflict_if_serializable(version: int) -> None:
    for level in LEVELS:
        case = Case(version)
        theirs, mine = case.lab.file([7], "a"), case.lab.file([9], "a")
        # What the rival takes away is in another partition: only what it adds is in the way.
        case.rival(Overwrite((theirs,), None, (case.b,)))
        action = Overwrite((mine,), case.read(level), (case.a,))
        if level == SERIALIZABLE:
            case.refused(action)
            assert case.lab.paths() == paths_of(theirs, case.a)
        else:
            case.lab.commit(action)
            assert case.lab.paths() == paths_of(theirs, mine)


# Append of rows that were read from the table


@pytest.mark.parametrize("isolation", LEVELS)
@pytest.mark.parametrize("change", ["added", "removed", "deleted"])
def test_append_that_read_the_table_validates_its_reads(change: str, isolation: IsolationLevel) -> None:
    case = Case()
    actions: dict[str, Action] = {
        "added": Append((case.lab.file([7], "a"),)),
        "removed": DeleteFiles(frozenset({case.a.file_path})),
        "deleted": RowDelta((case.lab.position_deletes(case.a),), ReadSet(case.start), "delete"),
    }
    case.rival(actions[change])
    mine = Append((case.lab.file([9], "c"),), read=case.read(isolation))
    if isolation == SERIALIZABLE:
        case.refused(mine)
    else:
        case.lab.commit(mine)


def test_append_is_not_refused_for_rows_it_did_not_read() -> None:
    case = Case()
    case.rival(Append((case.lab.file([7], "b"),)))
    case.lab.commit(Append((case.lab.file([9], "c"),), read=case.read()))
    assert len(case.lab.paths()) == 4


# Delete whole files


def test_delete_by_filter_removes_concurrently_added_rows() -> None:
    case = Case()
    case.rival(Append((case.lab.file([7], "a"),)))
    case.lab.commit(DeleteFiles(where=A))
    assert case.lab.paths() == paths_of(case.b)


def test_delete_by_filter_refuses_partially_matching_concurrent_files() -> None:
    case = Case()
    case.rival(Append((case.lab.file([2, 70], "c"),)))
    with pytest.raises(InvalidRequestError, match="some, but not all, rows"):
        case.lab.commit(DeleteFiles(where=parse_predicate("id <= 3")))


def test_delete_of_a_missing_file_is_refused() -> None:
    case = Case()
    case.rival(DeleteFiles(frozenset({case.a.file_path})))
    case.refused(DeleteFiles(frozenset({case.a.file_path})), "not in the table")


def test_delete_of_a_file_survives_other_commits() -> None:
    case = Case()
    other = case.lab.file([7], "a")
    case.rival(Append((other,)))
    case.lab.commit(DeleteFiles(frozenset({case.a.file_path})))
    assert case.lab.paths() == paths_of(case.b, other)


# Copy-on-write


@pytest.mark.parametrize("isolation", LEVELS)
def test_copy_on_write_refuses_a_missing_replaced_file(isolation: IsolationLevel) -> None:
    case = Case()
    case.rival(Overwrite((case.lab.file([1, 2], "a"),), None, (case.a,)))
    case.refused(Overwrite((case.lab.file([1], "a"),), case.read(isolation), (case.a,)))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("isolation", LEVELS)
def test_copy_on_write_refuses_new_deletes_of_a_replaced_file(isolation: IsolationLevel, version: int) -> None:
    case = Case(version)
    case.rival(RowDelta((case.deletes_of(case.a),), ReadSet(case.start), "delete"))
    case.refused(Overwrite((case.lab.file([1], "a"),), case.read(isolation), (case.a,)), "deletes were added")


@pytest.mark.parametrize("isolation", LEVELS)
def test_copy_on_write_refuses_new_equality_deletes_that_may_apply(isolation: IsolationLevel) -> None:
    case = Case()
    case.rival(RowDelta((case.lab.equality_deletes([2], partition=("a",)),), None))
    case.refused(Overwrite((case.lab.file([1], "a"),), case.read(isolation), (case.a,)))


def test_copy_on_write_accepts_equality_deletes_ruled_out_by_metrics() -> None:
    case = Case()
    case.rival(RowDelta((case.lab.equality_deletes([99], partition=("a",)),), None))
    case.lab.commit(Overwrite((case.lab.file([1], "a"),), case.read(), (case.a,)))


def test_copy_on_write_accepts_deletes_of_other_files() -> None:
    case = Case()
    case.rival(RowDelta((case.lab.position_deletes(case.b),), ReadSet(case.start), "delete"))
    case.lab.commit(Overwrite((case.lab.file([1], "a"),), case.read(), (case.a,)))


@pytest.mark.parametrize("isolation", LEVELS)
def test_copy_on_write_and_rows_added_to_its_read_set(isolation: IsolationLevel) -> None:
    case = Case()
    case.rival(Append((case.lab.file([7], "a"),)))
    mine = Overwrite((case.lab.file([1], "a"),), case.read(isolation), (case.a,))
    if isolation == SERIALIZABLE:
        case.refused(mine, "was added")
    else:
        case.lab.commit(mine)
        assert len(case.lab.paths()) == 3


def test_copy_on_write_accepts_rows_added_elsewhere() -> None:
    case = Case()
    case.rival(Append((case.lab.file([7], "b"),)))
    case.lab.commit(Overwrite((case.lab.file([1], "a"),), case.read(), (case.a,)))


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("isolation", LEVELS)
def test_overwrite_by_filter_finds_compacted_rows(isolation: IsolationLevel, version: int) -> None:
    case = Case(version)
    mine = case.lab.file([9], "a")
    case.rival(RewriteFiles((case.a,), (case.lab.file([1, 2], "a"), case.lab.file([3], "a")), case.start))
    case.lab.commit(Overwrite((mine,), case.read(isolation), where=parse_predicate("k = 'a'")))
    assert case.lab.paths() == paths_of(mine, case.b)


@pytest.mark.parametrize("isolation", LEVELS)
def test_overwrite_by_filter_is_refused_beside_a_compaction_and_a_change(isolation: IsolationLevel) -> None:
    case = Case()
    moved = case.lab.file([1, 2, 3], "a")
    case.rival(RewriteFiles((case.a,), (moved,), case.start), Overwrite((case.lab.file([1], "a"),), None, (moved,)))
    case.refused(Overwrite((case.lab.file([9], "a"),), case.read(isolation), where=parse_predicate("k = 'a'")))


@pytest.mark.parametrize("isolation", LEVELS)
def test_overwrite_by_filter_is_refused_if_compaction_mixed_its_rows_with_others(
    isolation: IsolationLevel,
) -> None:
    case = Case(partition_by=())
    case.rival(RewriteFiles((case.a, case.b), (case.lab.file([1, 2, 3, 4, 5, 6]),), case.start))
    mine = Overwrite((case.lab.file([9]),), case.read(isolation, "id < 4"), where=parse_predicate("id < 4"))
    case.refused(mine, "moved into a file with others")


def test_merge_without_matches_conflicts_with_one_inserting_the_same_key() -> None:
    case = Case()
    case.rival(Append((case.lab.file([10], "a"),)))
    case.refused(Overwrite((case.lab.file([10], "a"),), case.read(SERIALIZABLE)))


# Row deltas: DELETE


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("isolation", LEVELS)
@pytest.mark.parametrize("change", ["overwritten", "compacted"])
def test_row_delete_refuses_a_file_whose_rows_moved(change: str, isolation: IsolationLevel, version: int) -> None:
    case = Case(version)
    new = case.lab.file([1, 2, 3], "a")
    actions: dict[str, Action] = {
        "overwritten": Overwrite((new,), None, (case.a,)),
        "compacted": RewriteFiles((case.a,), (new,), case.start),
    }
    case.rival(actions[change])
    case.refused(RowDelta((case.deletes_of(case.a),), case.read(isolation), "delete"), "refer to was removed")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("isolation", LEVELS)
def test_row_delete_of_a_removed_file_succeeds(isolation: IsolationLevel, version: int) -> None:
    case = Case(version)
    case.rival(DeleteFiles(frozenset({case.a.file_path})))
    case.lab.commit(RowDelta((case.deletes_of(case.a),), case.read(isolation), "delete"))
    assert case.lab.paths() == paths_of(case.b)
    assert case.lab.deletes() == []


@pytest.mark.parametrize("isolation", LEVELS)
def test_two_row_deletes_of_one_file_pass_in_v2(isolation: IsolationLevel) -> None:
    case = Case(2)
    case.rival(RowDelta((case.lab.position_deletes(case.a),), ReadSet(case.start), "delete"))
    case.lab.commit(RowDelta((case.lab.position_deletes(case.a),), case.read(isolation), "delete"))
    assert len(case.lab.deletes()) == 2


@pytest.mark.parametrize("isolation", LEVELS)
def test_two_row_deletes_of_one_file_are_merged_in_v3(isolation: IsolationLevel) -> None:
    case = Case(3)
    case.rival(RowDelta(case.lab.vectors({case.a: [0]}), ReadSet(case.start), "delete"))
    case.lab.commit(RowDelta(case.lab.vectors({case.a: [2]}), case.read(isolation), "delete"))
    (vector,) = case.lab.deletes()
    assert case.lab.positions(vector) == [0, 2]
    assert case.lab.summary["total-position-deletes"] == "2"
    assert case.lab.summary["total-delete-files"] == "1"


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("isolation", LEVELS)
def test_row_delete_does_not_lose_to_an_update_of_the_same_rows(isolation: IsolationLevel, version: int) -> None:
    case = Case(version)
    update = RowDelta((case.deletes_of(case.a), case.lab.file([1], "a")), ReadSet(case.start, A, SNAPSHOT), "update")
    case.rival(update)
    case.refused(RowDelta((case.deletes_of(case.a),), case.read(isolation), "delete"))


@pytest.mark.parametrize("isolation", LEVELS)
def test_row_delete_accepts_an_update_of_other_files(isolation: IsolationLevel) -> None:
    case = Case()
    update = RowDelta(
        (case.lab.position_deletes(case.b), case.lab.file([4], "b")), ReadSet(case.start, B, SNAPSHOT), "update"
    )
    case.rival(update)
    case.lab.commit(RowDelta((case.lab.position_deletes(case.a),), case.read(isolation), "delete"))


@pytest.mark.parametrize("isolation", LEVELS)
def test_row_delete_and_rows_added_to_its_read_set(isolation: IsolationLevel) -> None:
    case = Case()
    case.rival(Append((case.lab.file([7], "a"),)))
    mine = RowDelta((case.lab.position_deletes(case.a),), case.read(isolation), "delete")
    if isolation == SERIALIZABLE:
        case.refused(mine, "was added")
    else:
        case.lab.commit(mine)


# Row deltas: UPDATE and MERGE


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("isolation", LEVELS)
@pytest.mark.parametrize("command", ["update", "merge"])
def test_update_refuses_deletes_in_its_read_set(command: str, isolation: IsolationLevel, version: int) -> None:
    case = Case(version)
    case.rival(RowDelta((case.deletes_of(case.a),), ReadSet(case.start), "delete"))
    mine = RowDelta((case.deletes_of(case.a), case.lab.file([1], "a")), case.read(isolation), command)  # type: ignore[arg-type]
    case.refused(mine)


@pytest.mark.parametrize("isolation", LEVELS)
def test_update_refuses_a_removed_file(isolation: IsolationLevel) -> None:
    case = Case()
    case.rival(DeleteFiles(frozenset({case.a.file_path})))
    mine = RowDelta((case.lab.position_deletes(case.a), case.lab.file([1], "a")), case.read(isolation), "update")
    case.refused(mine, "refer to was removed")


@pytest.mark.parametrize("isolation", LEVELS)
def test_update_refuses_a_vector_added_by_a_rewrite_of_deletes(isolation: IsolationLevel) -> None:
    case = Case(3)
    first = case.lab.vectors({case.a: [0]})
    case.lab.commit(RowDelta(first, ReadSet(case.start), "delete"))
    case.start = case.lab.snapshot.snapshot_id
    again = case.lab.vectors({case.a: [0]})
    number = case.lab.snapshot.sequence_number
    case.rival(RewriteFiles((), (), case.start, first, tuple(AddedFile(one, number) for one in again)))
    mine = RowDelta(
        (*case.lab.vectors({case.a: [0, 1]}), case.lab.file([2], "a")),
        case.read(isolation),
        "update",
        removed_deletes=first,
    )
    case.refused(mine)


@pytest.mark.parametrize("isolation", LEVELS)
def test_update_refuses_another_vector_of_its_files_for_any_read_set(isolation: IsolationLevel) -> None:
    case = Case(3)
    case.rival(RowDelta(case.lab.vectors({case.a: [0]}), ReadSet(case.start), "delete"))
    mine = RowDelta(
        (*case.lab.vectors({case.a: [1]}), case.lab.file([2], "a")), case.read(isolation, "k = 'b'"), "update"
    )
    case.refused(mine, "gets another")


@pytest.mark.parametrize("isolation", LEVELS)
def test_update_and_rows_added_to_its_read_set(isolation: IsolationLevel) -> None:
    case = Case()
    case.rival(Append((case.lab.file([7], "a"),)))
    mine = RowDelta((case.lab.position_deletes(case.a), case.lab.file([1], "a")), case.read(isolation), "update")
    if isolation == SERIALIZABLE:
        case.refused(mine)
    else:
        case.lab.commit(mine)


def test_update_accepts_changes_elsewhere() -> None:
    case = Case()
    case.rival(
        Append((case.lab.file([7], "b"),)),
        RowDelta((case.lab.position_deletes(case.b),), ReadSet(case.start, B), "delete"),
    )
    case.lab.commit(
        RowDelta((case.lab.position_deletes(case.a), case.lab.file([1], "a")), case.read(SERIALIZABLE), "update")
    )


# Blind upserts


@pytest.mark.parametrize("version", [2, 3])
def test_equality_delete_upsert_never_conflicts(version: int) -> None:
    case = Case(version)
    case.rival(Overwrite((case.lab.file([1, 2, 3], "a"),), None, (case.a,)))
    case.lab.commit(RowDelta((case.lab.equality_deletes([1], partition=("a",)), case.lab.file([1], "a")), None))
    assert len(case.lab.deletes()) == 1


def test_position_deletes_require_a_read_set() -> None:
    case = Case()
    with pytest.raises(InvalidRequestError, match="without the snapshot"):
        case.lab.commit(RowDelta((case.lab.position_deletes(case.a),), None))


# Compaction


@pytest.mark.parametrize("version", [2, 3])
def test_compaction_refuses_new_position_deletes(version: int) -> None:
    case = Case(version)
    case.rival(RowDelta((case.deletes_of(case.a),), ReadSet(case.start), "delete"))
    case.refused(RewriteFiles((case.a,), (case.lab.file([1, 2, 3], "a"),), case.start, data_sequence_number=1))


@pytest.mark.parametrize("keeps_number", [True, False])
def test_compaction_and_new_equality_deletes(keeps_number: bool) -> None:
    case = Case()
    deletes = case.lab.equality_deletes([2], partition=("a",))
    case.rival(RowDelta((deletes,), None))
    new = case.lab.file([1, 2, 3], "a")
    mine = RewriteFiles((case.a,), (new,), case.start, data_sequence_number=1 if keeps_number else None)
    if not keeps_number:
        case.refused(mine, "deletes were added")
        return
    case.lab.commit(mine)
    numbers = {one.data_file.file_path: one.sequence_number for one in case.lab.live()}
    assert numbers[new.file_path] == 1
    assert numbers[deletes.file_path] == 2


def test_compaction_keeps_deletes_needed_by_its_old_sequence_number() -> None:
    case = Case()
    case.lab.commit(DeleteFiles(where=B))
    deletes = case.lab.equality_deletes([2], partition=("a",))
    case.lab.commit(RowDelta((deletes,), None))
    case.lab.commit(Append((case.lab.file([9], "c"),)))
    start = case.lab.snapshot.snapshot_id
    case.lab.commit(RewriteFiles((case.a,), (case.lab.file([1, 2, 3], "a"),), start, data_sequence_number=1))
    assert case.lab.deletes() == [deletes]


def test_compaction_refuses_a_missing_file() -> None:
    case = Case()
    case.rival(DeleteFiles(frozenset({case.a.file_path})))
    case.refused(RewriteFiles((case.a,), (case.lab.file([1, 2, 3], "a"),), case.start))


@pytest.mark.parametrize("isolation", LEVELS)
def test_compaction_and_appends_do_not_conflict(isolation: IsolationLevel) -> None:
    case = Case()
    other, new = case.lab.file([7], "a"), case.lab.file([1, 2, 3], "a")
    case.rival(Append((other,)))
    case.lab.commit(RewriteFiles((case.a,), (new,), case.start))
    assert case.lab.paths() == paths_of(new, other, case.b)
    again = Append((case.lab.file([8], "c"),), read=ReadSet(case.lab.snapshot.snapshot_id, A, isolation))
    start = case.lab.snapshot.snapshot_id
    case.rival(RewriteFiles((other,), (case.lab.file([7], "a"),), start))
    if isolation == SNAPSHOT:
        case.lab.commit(again)
    else:
        case.refused(again)


def test_compaction_refuses_more_rows_than_it_replaces() -> None:
    case = Case()
    with pytest.raises(InvalidRequestError, match="4 rows would replace 3"):
        RewriteFiles((case.a,), (case.lab.file([1, 2, 3, 4], "a"),), case.start)


# Rewriting of delete files


def test_rewritten_delete_files_keep_their_sequence_number() -> None:
    case = Case()
    old = case.lab.position_deletes(case.a)
    case.lab.commit(RowDelta((old,), ReadSet(case.start), "delete"))
    start = case.lab.snapshot.snapshot_id
    new = case.lab.position_deletes(case.a)
    case.rival(Append((case.lab.file([7], "a"),)))
    case.lab.commit(RewriteFiles((), (), start, (old,), (AddedFile(new, 2),)))
    assert [one.sequence_number for one in case.lab.live() if one.data_file == new] == [2]
    assert case.lab.deletes() == [new]


def test_rewrite_of_delete_files_refuses_missing_or_unnumbered_files() -> None:
    case = Case()
    old, new = case.lab.position_deletes(case.a), case.lab.position_deletes(case.a)
    case.lab.commit(RowDelta((old,), ReadSet(case.start), "delete"))
    start = case.lab.snapshot.snapshot_id
    with pytest.raises(InvalidRequestError, match="sequence number is missing"):
        RewriteFiles((), (), start, (old,), (AddedFile(new),))
    case.rival(RewriteFiles((), (), start, (old,), ()))
    case.refused(RewriteFiles((), (), start, (old,), (AddedFile(new, 2),)))


# Overwrite by filter


@pytest.mark.parametrize("isolation", LEVELS)
@pytest.mark.parametrize("change", ["added", "removed", "deleted"])
def test_overwrite_by_filter(change: str, isolation: IsolationLevel) -> None:
    case = Case()
    actions: dict[str, Action] = {
        "added": Append((case.lab.file([7], "a"),)),
        "removed": DeleteFiles(frozenset({case.a.file_path})),
        "deleted": RowDelta((case.lab.position_deletes(case.a),), ReadSet(case.start), "delete"),
    }
    case.rival(actions[change])
    mine = Overwrite((case.lab.file([9], "a"),), case.read(isolation), where=A)
    if change == "added" and isolation == SNAPSHOT:
        case.lab.commit(mine)
        assert len(case.lab.paths()) == 2
    else:
        case.refused(mine)


@pytest.mark.parametrize("isolation", LEVELS)
def test_overwrite_by_filter_accepts_changes_elsewhere(isolation: IsolationLevel) -> None:
    case = Case()
    case.rival(Append((case.lab.file([7], "b"),)), DeleteFiles(frozenset({case.b.file_path})))
    case.lab.commit(Overwrite((case.lab.file([9], "a"),), case.read(isolation), where=A))


def test_overwrite_without_validation_replaces_concurrent_rows() -> None:
    case = Case()
    mine = case.lab.file([9], "a")
    case.rival(Append((case.lab.file([7], "a"),)))
    case.lab.commit(Overwrite((mine,), None, where=A))
    assert case.lab.paths() == paths_of(mine, case.b)


# Dynamic partition overwrite


@pytest.mark.parametrize("isolation", LEVELS)
@pytest.mark.parametrize("change", ["added", "removed", "deleted"])
def test_dynamic_overwrite(change: str, isolation: IsolationLevel) -> None:
    case = Case()
    actions: dict[str, Action] = {
        "added": Append((case.lab.file([7], "a"),)),
        "removed": DeleteFiles(frozenset({case.a.file_path})),
        "deleted": RowDelta((case.lab.position_deletes(case.a),), ReadSet(case.start), "delete"),
    }
    case.rival(actions[change])
    mine = ReplacePartitions((case.lab.file([9], "a"),), case.read(isolation))
    if change == "added" and isolation == SNAPSHOT:
        case.lab.commit(mine)
        assert len(case.lab.paths()) == 2
    else:
        case.refused(mine)


@pytest.mark.parametrize("isolation", LEVELS)
def test_dynamic_overwrite_accepts_changes_in_other_partitions(isolation: IsolationLevel) -> None:
    case = Case()
    case.rival(
        Append((case.lab.file([7], "b"),)),
        RowDelta((case.lab.position_deletes(case.b),), ReadSet(case.start, B), "delete"),
    )
    case.lab.commit(ReplacePartitions((case.lab.file([9], "a"),), case.read(isolation)))


@pytest.mark.parametrize("isolation", LEVELS)
def test_dynamic_overwrite_refuses_data_of_another_spec(isolation: IsolationLevel) -> None:
    case = Case()
    mine = case.lab.file([9], "a")

    def evolve() -> None:
        case.lab.commit(UpdateSpec(lambda u: u.add_field("bucket(4, id)")))
        case.lab.commit(Append((case.lab.file([7], "a", partition=("a", 1)),)))

    case.lab.catalog.rivals = [evolve]
    case.refused(ReplacePartitions((mine,), case.read(isolation)), "partition spec 1")


@pytest.mark.parametrize("isolation", LEVELS)
def test_dynamic_overwrite_refuses_global_equality_deletes(isolation: IsolationLevel) -> None:
    lab = Lab(partition_by=[])
    lab.commit(UpdateSpec(lambda u: u.add_field("k")))
    one = lab.file([1], "a")
    lab.commit(Append((one,)))
    read = ReadSet(lab.snapshot.snapshot_id, isolation=isolation)
    lab.catalog.rivals = [lab.rival(RowDelta((lab.equality_deletes([1], spec_id=0),), None))]
    with pytest.raises(ConcurrentChangeError, match="deletes were added"):
        lab.commit(ReplacePartitions((lab.file([9], "a"),), read))


@pytest.mark.parametrize("isolation", LEVELS)
def test_dynamic_overwrite_of_an_unpartitioned_table_covers_the_whole_table(isolation: IsolationLevel) -> None:
    case = Case(partition_by=())
    mine = case.lab.file([9], "z")
    case.rival(Append((case.lab.file([7], "b"),)))
    action = ReplacePartitions((mine,), case.read(isolation))
    if isolation == SERIALIZABLE:
        case.refused(action)
    else:
        case.lab.commit(action)
        assert case.lab.paths() == paths_of(mine)


# Manifests, properties, expiry


def test_rewrite_of_manifests_accepts_all_changes() -> None:
    case = Case()
    other = case.lab.file([7], "a")
    case.lab.commit(Append((case.lab.file([8], "c"),)))
    case.rival(Append((other,)), DeleteFiles(frozenset({case.b.file_path})))
    case.lab.commit(RewriteManifests())
    assert paths_of(case.a, other) <= case.lab.paths()
    assert case.b.file_path not in case.lab.paths()


def test_properties_are_applied_over_concurrent_ones() -> None:
    case = Case()
    case.rival(UpdateProperties(FrozenMap({"x": "1", "y": "1"})))
    state = case.lab.commit(UpdateProperties(FrozenMap({"y": "2"})))
    assert state.metadata.properties["x"] == "1" and state.metadata.properties["y"] == "2"


def test_tag_created_during_an_expiry_keeps_its_snapshot() -> None:
    case = Case()
    first = case.start
    case.lab.commit(Append((case.lab.file([7], "a"),)))
    case.rival(CreateRef("keep", "tag", first))
    state = case.lab.commit(ExpireSnapshots(older_than_ms=case.lab.now_ms + 1000))
    assert state.metadata.ref("keep").snapshot_id == first
    assert state.metadata.find_snapshot(first) is not None


# History that cannot be walked


@pytest.mark.parametrize("isolation", LEVELS)
def test_operation_with_an_expired_base_is_refused(isolation: IsolationLevel) -> None:
    case = Case()
    action = Overwrite((case.lab.file([1], "a"),), case.read(isolation), (case.a,))

    def expire() -> None:
        case.lab.commit(Append((case.lab.file([7], "b"),)))
        case.lab.commit(Append((case.lab.file([8], "b"),)))
        case.lab.commit(ExpireSnapshots(older_than_ms=case.lab.now_ms + 1000))

    case.lab.catalog.rivals = [expire]
    case.refused(action, r"the changes since .* are unknown")


@pytest.mark.parametrize("isolation", LEVELS)
def test_operation_on_a_rolled_back_branch_is_refused(isolation: IsolationLevel) -> None:
    case = Case()
    case.lab.commit(Append((case.lab.file([7], "a"),)))
    read = ReadSet(case.lab.snapshot.snapshot_id, A, isolation)
    case.rival(Rollback(case.start))
    case.refused(Overwrite((case.lab.file([1], "a"),), read, (case.a,)), r"the changes since .* are unknown")


def test_only_changes_on_the_same_branch_conflict() -> None:
    case = Case()
    case.lab.commit(CreateRef("audit", "branch"))
    case.rival(Overwrite((case.lab.file([8], "a"),), None, (case.a,), target=Target("audit")))
    case.lab.commit(Overwrite((case.lab.file([1], "a"),), case.read(), (case.a,)))
    assert case.a.file_path not in case.lab.paths()


def test_read_of_an_empty_table_conflicts_with_the_first_rows() -> None:
    lab = Lab()
    lab.catalog.rivals = [lab.rival(Append((lab.file([1]),)))]
    with pytest.raises(ConcurrentChangeError, match="was added"):
        lab.commit(Append((lab.file([1]),), read=ReadSet(None)))


def test_files_without_metrics_may_match_anything() -> None:
    case = Case(partition_by=())
    case.rival(Append((case.lab.file([7], "b", has_metrics=False),)))
    case.refused(Overwrite((case.lab.file([1], "a"),), case.read(), (case.a,)), "was added")


def test_renamed_column_is_found_by_its_current_name() -> None:
    case = Case()
    stale: Callable[[], object] = case.lab.rival(UpdateSchema(lambda u: u.rename_column("v", "w")))
    case.lab.catalog.rivals = [stale]
    case.lab.commit(Overwrite((case.lab.file([1], "a"),), case.read(), (case.a,)))


def test_set_current_snapshot_to_another_history_is_detected() -> None:
    case = Case()
    case.lab.commit(Append((case.lab.file([9], "b"),)))
    read = ReadSet(case.lab.snapshot.snapshot_id, A)
    case.rival(SetCurrentSnapshot(case.start))
    case.refused(RowDelta((case.lab.position_deletes(case.a),), read, "delete"), "are unknown")


# Several actions in one transaction


def test_actions_of_one_transaction_do_not_conflict() -> None:
    case = Case()
    transaction = case.lab.transaction()
    table = transaction.table(case.lab.load())
    table.add(Append((case.lab.file([7], "a"),)))
    table.add(Overwrite((case.lab.file([1], "a"),), case.read(), (case.a,)))
    transaction.commit()
    assert len(case.lab.paths()) == 3


@pytest.mark.parametrize("isolation", LEVELS)
def test_action_reading_its_own_transaction_still_sees_concurrent_changes(isolation: IsolationLevel) -> None:
    case = Case()
    transaction = case.lab.transaction()
    table = transaction.table(case.lab.load())
    staged = table.add(Append((case.lab.file([7], "c"),)))
    assert staged is not None
    read = ReadSet(staged.snapshot_id, A, isolation)
    table.add(Overwrite((case.lab.file([1], "a"),), read, (case.a,)))
    case.rival(RowDelta((case.lab.position_deletes(case.a),), ReadSet(case.start), "delete"))
    with pytest.raises(ConcurrentChangeError, match="deletes were added"):
        transaction.commit()


def test_action_reading_its_own_transaction_accepts_changes_elsewhere() -> None:
    case = Case()
    transaction = case.lab.transaction()
    table = transaction.table(case.lab.load())
    staged = table.add(Append((case.lab.file([7], "c"),)))
    assert staged is not None
    table.add(Overwrite((case.lab.file([1], "a"),), ReadSet(staged.snapshot_id, A), (case.a,)))
    case.rival(Append((case.lab.file([8], "b"),)))
    transaction.commit()
    assert len(case.lab.paths()) == 4


# A table that is replaced by rows which may have been computed from it


def anew(case: Case, *, is_blind: bool = False) -> ReplaceTable:
    return ReplaceTable(SCHEMA, read=None if is_blind else ReadSet(case.start))


def changed_rows(case: Case) -> list[Action]:
    return [
        Append((case.lab.file([9], "c"),)),
        DeleteFiles(frozenset({case.b.file_path})),
        Overwrite((case.lab.file([9], "a"),), ReadSet(case.start), (case.a,)),
        RowDelta((case.deletes_of(case.a),), ReadSet(case.start), "delete", (case.a,)),
    ]


@pytest.mark.parametrize("at", range(4))
def test_changed_rows_block_replacing_the_table_by_a_query(at: int) -> None:
    case = Case()
    case.rival(changed_rows(case)[at])
    case.refused(anew(case), "rows were changed")
    assert len(case.lab.load().metadata.snapshots) == 2


def test_changed_columns_block_replacing_the_table_by_a_query() -> None:
    case = Case()
    case.rival(UpdateSchema(lambda update: update.add_column("x", "long")))
    case.refused(anew(case), "schema was changed")


def test_compaction_and_properties_do_not_block_replacing_the_table() -> None:
    case = Case()
    rewritten = RewriteFiles((case.a,), (case.lab.file([1, 2, 3], "a"),), start_snapshot_id=case.start)
    case.rival(rewritten, UpdateProperties(FrozenMap({"mark": "x"})))
    metadata = case.lab.commit(anew(case)).metadata
    assert metadata.current_snapshot is None
    assert (metadata.properties["mark"], len(metadata.snapshots)) == ("x", 2)


def test_replacing_by_an_empty_table_keeps_concurrent_commits_in_history() -> None:
    case = Case()
    case.rival(Append((case.lab.file([9], "c"),)))
    metadata = case.lab.commit(anew(case, is_blind=True)).metadata
    assert metadata.current_snapshot is None
    assert len(metadata.snapshots) == 2


# What names mean


@pytest.mark.parametrize("change", ["rename", "drop"])
def test_condition_on_a_changed_column_is_refused(change: str) -> None:
    case = Case()
    meant = bind(SCHEMA, parse_predicate("id >= 0"))
    case.rival(UpdateSchema(lambda u: u.rename_column("id", "x") if change == "rename" else u.drop_column("id")))
    case.refused(DeleteFiles(where=meant), "'id' of the condition has changed")
    case.refused(Overwrite((), ReadSet(case.start, meant), where=meant), "'id' of the condition has changed")


def test_files_of_a_column_added_in_the_transaction_are_refused_if_the_schema_changed() -> None:
    case = Case()
    wide = Schema((*SCHEMA.fields, NestedField(4, "mine", LONG)), 1)
    adds = UpdateSchema(lambda update: update.add_column("mine", "long"))
    file = case.lab.file([9], "a")
    case.rival(UpdateSchema(lambda update: update.add_column("theirs", "long")))
    with pytest.raises(ConcurrentChangeError, match="schema was changed"):
        case.lab.commit(adds, Append((file,), written_schema=wide))
    case.lab.commit(Append((file,), written_schema=SCHEMA))
