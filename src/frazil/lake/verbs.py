"""What can be done to the rows of a table: the verbs that a `Table` and a transaction share.

`lake/metadata_verbs.py` has those that change metadata only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from frazil.commit.action import Action
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target, find_parent
from frazil.commit.overwrite import Overwrite
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.errors import FrazilError, InvalidRequestError
from frazil.expr.bind import bind
from frazil.expr.parse import parse_predicate
from frazil.expr.predicates import TRUE, Predicate
from frazil.lake.metadata_verbs import MetadataVerbs
from frazil.lake.write_rows import write_rows
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import WRITE_AUDIT_PUBLISH_ENABLED, read_property
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot, Summary
from frazil.spec.table_metadata import TableMetadata

NO_PROPERTIES: Mapping[str, str] = FrozenMap()


class TableVerbs(MetadataVerbs):
    """Changes of one table: of its rows, and of everything else.

    Every write takes a branch, which is made where it is missing, and properties for the snapshot's summary. On a
    table with `write.wap.enabled`, a write with the property `wap.id` is staged: no branch leads to it before
    `publish_changes`.
    """

    def append(
        self, data: Any, *, branch: str = MAIN_BRANCH, snapshot_properties: Mapping[str, str] = NO_PROPERTIES
    ) -> Snapshot | None:
        """Add rows: a pyarrow table, record batch or reader, or a pandas frame.

        A parallel writer never stops an append. Nothing is written, and None returned, where there are no rows.
        """
        state = self._state
        return self._write(
            data,
            lambda files: Append(
                files,
                target_of(state.metadata, branch, snapshot_properties),
                written_schema=state.metadata.current_schema,
            ),
        )

    def overwrite(
        self,
        data: Any,
        where: Predicate | str = TRUE,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Snapshot | None:
        """Replace the rows of a filter, all rows by default, by new ones.

        The filter must take files whole. Rows that a parallel writer adds or changes under the filter stop it.
        """
        state = self._state
        predicate = parse_predicate(where) if isinstance(where, str) else where
        bind(state.metadata.current_schema, predicate)
        return self._write(
            data,
            lambda files: Overwrite(
                files,
                self._read_set(branch, predicate),
                where=predicate,
                target=target_of(state.metadata, branch, snapshot_properties),
                written_schema=state.metadata.current_schema,
            ),
            may_be_empty=True,
        )

    def overwrite_partitions(
        self, data: Any, *, branch: str = MAIN_BRANCH, snapshot_properties: Mapping[str, str] = NO_PROPERTIES
    ) -> Snapshot | None:
        """Replace the partitions that the new rows are in, all of an unpartitioned table.

        What a parallel writer does to those partitions stops it.
        """
        state = self._state
        return self._write(
            data,
            lambda files: ReplacePartitions(
                files,
                self._read_set(branch, TRUE),
                target_of(state.metadata, branch, snapshot_properties),
                state.metadata.current_schema,
            ),
        )

    def delete(
        self,
        where: Predicate | str,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Snapshot | None:
        """Delete the rows of a filter by removing files whole; refused where a file also holds other rows.

        A parallel writer never stops it: the filter is applied to what is there at the commit.
        """
        predicate = parse_predicate(where) if isinstance(where, str) else where
        target = target_of(self._state.metadata, branch, snapshot_properties)
        return self._run(DeleteFiles(where=predicate, target=target))

    def _read_set(self, branch: str, predicate: Predicate) -> ReadSet:
        parent = find_parent(self._state.metadata, branch)
        return ReadSet(None if parent is None else parent.snapshot_id, predicate)

    def _write(
        self, data: Any, make_action: Callable[[tuple[DataFile, ...]], Action], *, may_be_empty: bool = False
    ) -> Snapshot | None:
        """Write rows to files and commit them; delete the files where the commit is known to have failed."""
        state = self._state
        files = write_rows(state, data)
        if not files and not may_be_empty:
            return None
        try:
            return self._run(make_action(files))
        except FrazilError as error:
            if error.may_clean_up:
                state.storage.delete_many([one.file_path for one in files])
            raise


def target_of(metadata: TableMetadata, branch: str, snapshot_properties: Mapping[str, str]) -> Target:
    """Return where a write goes: to a branch, or staged where it has a `wap.id` and the table allows that."""
    staged = Summary.WAP_ID in snapshot_properties and read_property(metadata.properties, WRITE_AUDIT_PUBLISH_ENABLED)
    if staged and branch != MAIN_BRANCH:
        raise InvalidRequestError(
            f"Cannot stage a write for branch {branch!r}: it has both a branch and a {Summary.WAP_ID}",
            hint="Give one of them.",
        )
    return Target(branch, FrozenMap(snapshot_properties), is_staged=staged)


def check_columns(columns: object) -> None:
    """Refuse one text where a list of names is meant."""
    if isinstance(columns, str):
        raise InvalidRequestError(f"Cannot read the columns {columns!r}: give a list of names")
