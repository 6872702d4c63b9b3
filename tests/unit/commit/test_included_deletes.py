"""A data file's first deletion vector, on a table that still has position delete files of version 2."""

from __future__ import annotations

import pytest

from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.row_delta import RowDelta
from frazil.commit.update_properties import UpgradeFormat
from frazil.commit.write_manifests import AddedFile
from frazil.errors import ConcurrentChangeError, InvalidRequestError
from frazil.spec.data_file import DataFile
from tests.support.commit_lab import Lab


class Upgraded:
    """A table of two data files of one partition and one of another, with position deletes, upgraded to v3."""

    def __init__(self, *, names_file: bool) -> None:
        self.lab = Lab(partition_by=["k"], format_version=2)
        self.a, self.other, self.b = self.lab.file([1, 2, 3]), self.lab.file([4, 5, 6]), self.lab.file([7], "b")
        self.lab.commit(Append((self.a, self.other, self.b)))
        self.old = self.lab.position_deletes(self.a, names_file=names_file)
        self.lab.commit(RowDelta((self.old,), ReadSet(self.head), "delete", (self.a,)))
        self.lab.commit(UpgradeFormat(3))

    @property
    def head(self) -> int:
        """The current snapshot's id."""
        return self.lab.snapshot.snapshot_id

    def delete(self, *vectors: DataFile, **more: tuple[DataFile, ...]) -> RowDelta:
        """Return a delete of rows by vectors."""
        return RowDelta(vectors, ReadSet(self.head), "delete", **more)  # type: ignore[arg-type]

    def live(self) -> set[str]:
        """Return the paths of live delete files."""
        return {one.file_path for one in self.lab.deletes()}


@pytest.mark.parametrize("names_file", [True, False])
def test_first_vector_missing_older_position_deletes_is_refused(names_file: bool) -> None:
    table = Upgraded(names_file=names_file)
    before = table.head
    with pytest.raises(InvalidRequestError, match="return those rows again"):
        table.lab.commit(table.delete(*table.lab.vectors({table.a: [2]})))
    assert table.head == before


def test_position_deletes_of_one_file_are_removed_with_its_first_vector() -> None:
    table = Upgraded(names_file=True)
    (vector,) = table.lab.vectors({table.a: [0, 2]})
    table.lab.commit(table.delete(vector, removed_deletes=(table.old,)))
    assert table.live() == {vector.file_path}


def test_position_deletes_shared_with_other_files_stay_beside_the_first_vector() -> None:
    table = Upgraded(names_file=False)
    (vector,) = table.lab.vectors({table.a: [0, 2]})
    table.lab.commit(table.delete(vector, included_deletes=(table.old,)))
    assert table.live() == {vector.file_path, table.old.file_path}


def test_file_in_another_partition_includes_nothing() -> None:
    table = Upgraded(names_file=False)
    (vector,) = table.lab.vectors({table.b: [0]})
    table.lab.commit(table.delete(vector))
    assert table.live() == {vector.file_path, table.old.file_path}


def test_file_newer_than_the_position_deletes_includes_nothing() -> None:
    table = Upgraded(names_file=False)
    late = table.lab.file([8, 9])
    table.lab.commit(Append((late,)))
    table.lab.commit(table.delete(*table.lab.vectors({late: [0]})))
    with pytest.raises(InvalidRequestError, match="return those rows again"):
        table.lab.commit(table.delete(*table.lab.vectors({table.other: [0]})))


def test_second_vector_includes_only_the_first() -> None:
    table = Upgraded(names_file=False)
    table.lab.commit(table.delete(*table.lab.vectors({table.a: [0, 2]}), included_deletes=(table.old,)))
    table.lab.commit(table.delete(*table.lab.vectors({table.a: [1]})))
    (vector,) = [one for one in table.lab.deletes() if one.is_deletion_vector]
    assert table.lab.positions(vector) == [0, 1, 2]


def test_two_concurrent_replacements_of_position_deletes_are_merged() -> None:
    table = Upgraded(names_file=True)
    first, second = table.lab.vectors({table.a: [0, 1]}), table.lab.vectors({table.a: [0, 2]})
    mine = table.delete(*second, removed_deletes=(table.old,))
    table.lab.commit(table.delete(*first, removed_deletes=(table.old,)))
    table.lab.commit(mine)
    (vector,) = table.lab.deletes()
    assert table.lab.positions(vector) == [0, 1, 2]


def test_rewrite_to_vectors_that_omits_deletes_is_refused() -> None:
    table = Upgraded(names_file=True)
    wider = table.lab.vectors({table.a: [0], table.other: [0]})
    added = tuple(AddedFile(one, 2) for one in wider)
    table.lab.commit(RewriteFiles((), (), table.head, (table.old,), added))
    assert len(table.lab.deletes()) == 2

    again = Upgraded(names_file=False)
    late = again.lab.file([1], "c")
    again.lab.commit(Append((late,)))
    (vector,) = again.lab.vectors({late: [0]})
    again.lab.commit(again.delete(vector))
    wrong = RewriteFiles(
        (), (), again.head, (vector,), tuple(AddedFile(one, 9) for one in again.lab.vectors({again.a: [1]}))
    )
    with pytest.raises(InvalidRequestError, match="return those rows again"):
        again.lab.commit(wrong)


def test_rewrite_to_vectors_never_adds_a_second_vector() -> None:
    table = Upgraded(names_file=False)
    start = table.head
    table.lab.commit(table.delete(*table.lab.vectors({table.a: [0, 1]}), included_deletes=(table.old,)))
    made = tuple(AddedFile(one, 2) for one in table.lab.vectors({table.a: [0]}))
    with pytest.raises(ConcurrentChangeError, match="a deletion vector that is not replaced"):
        table.lab.commit(RewriteFiles((), (), start, (table.old,), made))
