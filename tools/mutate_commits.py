"""Switch off each validation, sync, exclusive flag and clean-up guard in turn, and see that the tests notice.

    tools/mutate_commits.py                 every mutant; a table, and exit 1 if one survives
    tools/mutate_commits.py --list          only say what there is
    tools/mutate_commits.py --only link     mutants whose name holds a text

Each mutant is a change of one place in a copy of `src`, given below: a function that does nothing (`skip`), a
statement that is left out (`drop`), or other text (`swap`). Its tests are run against the copy, stage by stage, and a
failure in any stage kills it. The tests of every stage are run on the copy unchanged first. A mutant that makes a
test hang counts as noticed.
"""

# ruff: noqa: E501 - the sources that mutants change are quoted as they are
from __future__ import annotations

import argparse
import ast
import atexit
import importlib
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
STAGE_SECONDS = 900

# What to run, the quickest first. A stage is a list of arguments of pytest.
COMMIT = ["tests/unit/commit"]
RULES = ["tests/unit/commit/test_conflicts.py", "tests/unit/commit/test_file_actions.py"]
LOOP = ["tests/unit/commit/test_transaction.py"]
EXPIRY = ["tests/unit/commit/test_expire_snapshots.py", "tests/property/test_expired_histories.py"]
PICKS = ["tests/unit/commit/test_cherry_pick.py"]
METADATA = ["tests/unit/commit/test_metadata_actions.py", "tests/unit/commit/test_transaction.py"]
PAIRS = ["tests/concurrency/test_commit_interleavings.py"]
VERBS = ["tests/concurrency/test_verb_races.py", "-m", "not slow"]
FAULTS = [
    "tests/concurrency/test_commit_faults.py", "-k",
    "(merge_append or row_delta_vectors or several_tables or expire_and_delete or as_select) and (memory or filesystem-v)",
]  # fmt: skip
CATALOG = [
    "tests/unit/catalog",
    "tests/unit/maintenance/test_purge_files.py",
    "tests/contract/test_catalog_contract.py",
]
POSTGRES = ["tests/contract/test_postgres_catalog.py"]
RACES = ["tests/contract/test_catalog_processes.py"]
GUARDS = ["tests/concurrency/test_commit_guards.py"]
LOCAL = ["tests/unit/storage/test_local.py", "tests/contract/test_new_file_contract.py"]
MEMORY = ["tests/contract/test_storage_contract.py"]
CHANGES = ["tests/unit/changes"]
OWNED = ["tests/unit/catalog/test_owned_folders.py"]
STRANGERS = ["tests/unit/table/test_strangers_metadata.py", "-k", "not memory"]
PATHS = ["tests/unit/maintenance/test_rewrite_table_path.py"]
LOCATIONS = ["tests/unit/storage/test_locations.py"]
CHOICES = ["tests/unit/storage/test_choose.py"]
CONNECT = ["tests/unit/table/test_connect.py"]
PLANS = ["tests/unit/scan"]
DANGLING = ["tests/unit/maintenance/test_rewrite_deletes.py"]
REST = ["tests/unit/rest"]
ONCE = ["tests/unit/verbs/test_once.py"]
REWRITTEN = ["tests/unit/verbs/test_rewritten_meanwhile.py"]
LOST = ["tests/concurrency/test_service_faults.py"]

# Of the tests of a file's first stage, those that are tried before the others; it only saves time.
LIKELY = {
    "commit/append.py": "append",
    "commit/overwrite.py": "copy_on_write or overwrite",
    "commit/row_delta.py": "row_delete or update or vector or position",
    "commit/replace_partitions.py": "dynamic",
    "commit/rewrite_files.py": "compaction or rewrite",
    "commit/merge_vectors.py": "vector or united",
    "commit/conflicts.py": "expired or rolled_back or history or operation",
    "commit/change_files.py": "found or gone or some_rows or number or partition or one_vector or twice",
    "catalog/memory.py": "memory and not filesystem",
    "catalog/base.py": "memory and not filesystem",
    "catalog/pointer_catalog.py": "memory and not filesystem or purge and sqlite",
    "maintenance/purge_files.py": "purge",
    "catalog/sql.py": "sqlite and not handles",
    "catalog/sqlite.py": "sqlite and not handles or database",
    "catalog/filesystem.py": "filesystem and not in-memory",
    "catalog/version_files.py": "filesystem and not in-memory",
    "catalog/metadata_files.py": "memory and not filesystem",
}


@dataclass(frozen=True)
class Mutant:
    """One change of one place, and the tests that must notice."""

    kind: str
    file: str
    place: str
    """A function's name, `Class.method` for methods; or text that stands in the file once."""
    new: str
    stages: tuple[list[str], ...]

    @property
    def name(self) -> str:
        """The mutant in a few words."""
        first = " ".join(self.place.split())
        text = first if len(first) <= 58 else f"{first[:55]}..."
        return f"{self.file}: {text}" if self.kind != "swap" else f"{self.file}: {text} -> {' '.join(self.new.split())}"


def skip(file: str, function: str, *stages: list[str], result: str = "None") -> Mutant:
    """Return the mutant in which a function does nothing and returns something harmless."""
    return Mutant("skip", file, function, result, stages)


def drop(file: str, statement: str, *stages: list[str]) -> Mutant:
    """Return the mutant in which a statement, which may have several lines, is left out."""
    return Mutant("drop", file, statement, "pass", stages)


def swap(file: str, old: str, new: str, *stages: list[str]) -> Mutant:
    """Return the mutant in which some text is another."""
    return Mutant("swap", file, old, new, stages)


VALIDATIONS = (
    # One function for each rule
    skip("commit/conflicts.py", "check_added_data_files", RULES, PAIRS),
    skip("commit/conflicts.py", "check_new_delete_files", RULES, PAIRS),
    skip("commit/conflicts.py", "check_deleted_data_files", RULES, PAIRS),
    skip("commit/conflicts.py", "check_added_in_partitions", RULES, PAIRS),
    skip("commit/conflicts.py", "check_deletes_in_partitions", RULES, PAIRS),
    skip("commit/conflicts.py", "check_deleted_in_partitions", RULES, PAIRS),
    skip("commit/conflicts.py", "check_no_other_specs", RULES, PAIRS),
    skip("commit/conflicts.py", "check_data_files_exist", RULES, PAIRS),
    skip("commit/conflicts.py", "check_new_deletes_for_files", RULES, PAIRS),
    skip("commit/conflicts.py", "check_added_vectors", RULES, PAIRS),
    skip("commit/conflicts.py", "removed_data_files", RULES, PAIRS, result="frozenset()"),
    skip("commit/conflicts.py", "check_rows_unchanged", RULES),
    skip("commit/conflicts.py", "check_columns_unchanged", RULES),
    skip("commit/conflicts.py", "check_same_ids", RULES, VERBS),
    skip("commit/match_files.py", "_check_unchanged", RULES, VERBS),
    drop("commit/replace_table.py", "self._validate(loaded, context)", RULES),
    # What a verb read is of the state it began with
    swap("verbs/conditions.py", "return bind(schema, predicate)", "return predicate", VERBS),
    swap("verbs/write_session.py", "read_set_of(self.state, self.session.branch, predicate)",
         "read_set_of(self.session.load(), self.session.branch, predicate)", VERBS),
    swap("verbs/write_session.py", "return WriteOnce(action, session.once, session.branch, self.target().is_staged)",
         "return action", ONCE),
    swap("verbs/write_session.py", "elif self._records_nothing_done:", "elif False:", ONCE),
    swap("verbs/live_state.py", "if done != {Operation.REPLACE} or", "if Operation.REPLACE not in done or", REWRITTEN),
    swap("verbs/live_state.py", "return now if Operation.REPLACE in _operations_between(state.metadata, now.metadata, branch) else None",
         "return now", REWRITTEN),
    swap("commit/conflicts.py", "        raise _unknown_history(start_id, problem.message) from problem",
         "        return []", RULES, COMMIT),
    swap("commit/conflicts.py", '        raise _unknown_history(start_id, "the branch no longer has a snapshot")',
         "        return []", GUARDS),
    swap("commit/conflicts.py", "if snapshot.operation is not None and snapshot.operation not in operations:",
         "if snapshot.operation not in operations:", GUARDS),
    # Each rule where it is asked
    drop("commit/append.py", "check_added_data_files(window, self.read)", RULES, PAIRS),
    drop("commit/append.py", "check_deleted_data_files(window, self.read)", RULES, PAIRS),
    drop("commit/append.py", "check_new_delete_files(window, self.read)", RULES, PAIRS),
    drop("commit/overwrite.py", "check_new_deletes_for_files(window, self.removed)", RULES, PAIRS),
    drop("commit/overwrite.py", "check_new_delete_files(window, covered)", RULES, PAIRS),
    drop("commit/overwrite.py", "check_deleted_data_files(window, covered, includes_moved=False)", RULES, PAIRS),
    drop("commit/overwrite.py", "check_still_whole(window, covered)", RULES, PAIRS),
    drop("commit/overwrite.py", "check_added_data_files(window, self.read)", RULES, PAIRS),
    drop("commit/overwrite.py", "self._check_match(loaded, writer)", RULES, COMMIT),
    drop("commit/row_delta.py", "check_data_files_exist(window, paths, counts_deletes=not is_delete)", RULES, PAIRS),
    swap("commit/row_delta.py", "counts_deletes=not is_delete", "counts_deletes=False", RULES, PAIRS),
    drop("commit/row_delta.py", "check_new_deletes_for_files(window, self.removed)", GUARDS),
    drop("commit/row_delta.py",
         "check_new_deletes_for_files(window, referenced, operations=frozenset({Operation.OVERWRITE}))", RULES, PAIRS),
    drop("commit/row_delta.py", "check_new_delete_files(window, self.read)", RULES, PAIRS),
    drop("commit/row_delta.py", "check_added_vectors(window, vectors)", RULES, PAIRS, GUARDS),
    drop("commit/row_delta.py", "check_added_data_files(window, self.read)", RULES, PAIRS),
    drop("commit/row_delta.py", "self._check_request(referenced)", RULES, COMMIT),
    swap("commit/row_delta.py", "return removed_data_files(window, paths) if is_delete else frozenset()",
         "return frozenset()", RULES, PAIRS),
    drop("commit/replace_partitions.py", "check_new_delete_files(window, everything)", RULES, COMMIT, GUARDS),
    drop("commit/replace_partitions.py", "check_deleted_data_files(window, everything)", RULES, COMMIT, GUARDS),
    drop("commit/replace_partitions.py", "check_added_data_files(window, everything)", RULES, COMMIT, GUARDS),
    drop("commit/replace_partitions.py", "check_deletes_in_partitions(window, keys)", RULES, PAIRS),
    drop("commit/replace_partitions.py", "check_deleted_in_partitions(window, keys)", RULES, PAIRS),
    drop("commit/replace_partitions.py", "check_no_other_specs(window, {key[0] for key in keys})", RULES, COMMIT),
    drop("commit/replace_partitions.py", "check_added_in_partitions(window, keys)", RULES, PAIRS),
    swap("commit/rewrite_files.py",
         "check_new_deletes_for_files(window, self.removed, ignores_equality=self.data_sequence_number is not None)",
         "pass", RULES, PAIRS),
    swap("commit/rewrite_files.py", "ignores_equality=self.data_sequence_number is not None", "ignores_equality=True",
         RULES, PAIRS, GUARDS),
    swap("commit/rewrite_files.py", "if after > before:", "if False:", RULES, COMMIT),
    swap("commit/rewrite_files.py", "if added.sequence_number is None:", "if False:", RULES, COMMIT),
    drop("commit/cherry_pick.py", "_check_not_picked(metadata, picked, parent)", PICKS),
    drop("commit/cherry_pick.py", "self._check_partitions(loaded, context, picked, parent, files)", PICKS),
    drop("commit/cherry_pick.py", "check_added_in_partitions(window, keys)", PICKS, GUARDS),
    drop("commit/cherry_pick.py", "check_deleted_in_partitions(window, keys)", PICKS, GUARDS),
    drop("commit/cherry_pick.py", "check_deletes_in_partitions(window, keys)", PICKS, GUARDS),
    swap("commit/cherry_pick.py", "if manifest.content is ManifestContent.DELETES:", "if False:", PICKS, GUARDS),
    # Files that are removed must be there; what is added must fit
    skip("commit/change_files.py", "_check_all_removed", RULES, PAIRS),
    skip("commit/change_files.py", "_check_all_deletes_removed", RULES, COMMIT),
    skip("commit/change_files.py", "_check_whole", RULES, COMMIT),
    skip("commit/change_files.py", "check_added", RULES, COMMIT),
    swap("commit/change_files.py", "if key in seen:", "if False:", RULES, COMMIT),
    swap("commit/change_files.py", "if file.referenced_data_file in vectors:", "if False:", RULES, COMMIT, GUARDS),
    drop("commit/change_files.py", "check_feature(format_version, Feature.POSITION_DELETE_FILES)", RULES, COMMIT),
    skip("commit/append.py", "check_still_readable", RULES, COMMIT),
    skip("commit/append.py", "check_data_only", RULES, COMMIT),
    swap("commit/merge_vectors.py", "is_unknown = present is not None and delete_key(present) not in included",
         "is_unknown = False", RULES, PAIRS),
    drop("commit/merge_vectors.py", "replaced.add(delete_key(present))", RULES, PAIRS),
    swap("commit/merge_vectors.py", "if path in live:", "if False:", RULES, COMMIT, GUARDS),
    # The table itself
    skip("commit/update_schema.py", "check_sources_kept", METADATA),
    swap("commit/update_refs.py", "if present is not None and not self.replaces:", "if False:", METADATA, COMMIT),
    swap("commit/update_refs.py", "if not is_ancestor_of(metadata, head, self.snapshot_id):", "if False:", METADATA,
         COMMIT),
    swap("commit/update_refs.py",
         "if present is not None and not is_ancestor_of(metadata, target.snapshot_id, present.snapshot_id):",
         "if False:", METADATA, COMMIT),
    skip("commit/expire_snapshots.py", "check_may_collect", EXPIRY),
    swap("commit/expire_snapshots.py", "if snapshot_id in named:", "if False:", EXPIRY),
    swap("commit/new_snapshot.py", "max(context.now_ms(), metadata.last_updated_ms)", "context.now_ms()", COMMIT, GUARDS),
    drop("commit/transaction.py", "check_requirements(staged.metadata, slot.changes.requirements)", LOOP, GUARDS),
    drop("catalog/change.py", "check_requirements(None if is_new else base.metadata, self.requirements)", CATALOG),
    drop("catalog/change.py", "check_view_requirements(None if is_new else base.metadata, self.requirements)", CATALOG),
    swap("commit/transaction.py", "restate_requirements(self.base.metadata, required)", "tuple(required)", LOOP),
    swap("commit/transaction.py", "restate_requirements(self.base.metadata, required)", "()", LOOP),
    skip("changes/requirements.py", "check_requirements", CHANGES),
    skip("changes/apply.py", "_check_references", CHANGES, EXPIRY),
    skip("changes/apply.py", "_check_still_unused", CHANGES, EXPIRY),
    drop("changes/apply.py", "check_table_metadata(finished)", CHANGES),
)  # fmt: skip

OUTCOMES = (
    drop("commit/commit_loop.py", "outcome = self._resolve(outcome, limits)", LOOP),
    swap("commit/transaction.py", "        if self._is_committed(fresh):\n            return tuple(fresh.values())\n",
         "", LOOP),
    swap("commit/transaction.py", "return tuple(fresh.values()) if self._is_committed(fresh) else None", "return None", LOOP),
    swap("commit/commit_loop.py", "if not reason.retryable:", "if False:", LOOP),
    swap("commit/transaction.py",
         "return snapshot.summary.get(COMMIT_ID) == self.commit_id and snapshot.manifest_list in self.written.paths",
         "return True", LOOP),
    swap("commit/transaction.py", "if snapshot_id not in taken and self.base.metadata.snapshots.find_head(snapshot_id) is None:",
         "if True:", LOOP, GUARDS),
    swap("catalog/change.py", ", base_location=base.metadata_location)", ")", LOOP, CATALOG),
    swap("commit/transaction.py", "return present.metadata.table_uuid == loaded.metadata.table_uuid", "return False", LOOP,
         GUARDS),
    drop("catalog/base.py", "check_same_table(loaded.metadata, fresh.metadata, format_name(loaded.identifier))", CATALOG, LOOP),
    swap("catalog/memory.py", "if actual != change.expected or (current is not None and current.entity_type is not change.entity_type):",
         "if False:", CATALOG, LOOP),
    swap("catalog/sql.py", "WHERE {_KEY} AND metadata_location = ? AND {self._is(change.entity_type)}",
         "WHERE {_KEY} AND ? IS NOT NULL AND {self._is(change.entity_type)}", CATALOG, RACES),
    swap("catalog/sql.py", "return updated.count == 1", "return True", CATALOG),
    swap("catalog/sql.py", "return inserted.count == 1", "return True", CATALOG),
    swap("catalog/sql.py", " AND metadata_location = ? AND {self._is(change.entity_type)}", " AND metadata_location = ?", CATALOG,
         GUARDS),
    swap("catalog/sql.py", "for change in sorted(changes, key=lambda change: change.identifier):", "for change in changes:",
         CATALOG, GUARDS),
    swap("catalog/sql.py", "if change.expected is None and self._insert(run, change):", "if False:", POSTGRES, GUARDS),
    swap("catalog/sql.py", 'if not self._namespaces.exists(change.identifier[:-1], run):', "if False:", CATALOG),
    swap("catalog/sqlite.py", 'driver.execute("BEGIN IMMEDIATE")', 'driver.execute("BEGIN")', CATALOG, RACES, GUARDS),
    swap("catalog/sqlite.py", "if connection.file == _file_of(self._path):", "if True:", CATALOG, GUARDS),
    swap("catalog/sqlite.py", "raise self.outcome_unknown(str(error)) from error",
         'raise StorageError("lost") from error', CATALOG),
    swap("catalog/postgres.py", 'row_lock = " FOR UPDATE"', 'row_lock = ""', POSTGRES, GUARDS),
    swap("catalog/postgres.py", "raise self.outcome_unknown(self._reason(error)) from None",
         'raise StorageError("lost") from None', POSTGRES),
    swap("catalog/pointer_catalog.py", "        if holder is not None:\n            return Committed((attempt.loaded,))\n", "",
         CATALOG),
    swap("catalog/pointer_catalog.py",
         "        if change.location in history:\n            return Committed((attempt.loaded,))\n", "", CATALOG),
    swap("catalog/pointer_catalog.py", "return _rejected(Stale(change, pointer)) if change.expected in history else unsure",
         "return _rejected(Stale(change, pointer))", CATALOG),
    swap("catalog/pointer_catalog.py", "if pointer is None or pointer.entity_type is not entity_type:\n            return unsure",
         "if pointer is None or pointer.entity_type is not entity_type:\n            return not_applied", CATALOG, GUARDS),
    swap("catalog/metadata_files.py", "raise StorageError(f\"Cannot write {location}: {error.message}\", path=location)",
         "raise CommitStateUnknownError(error.message)", CATALOG, FAULTS),
    swap("catalog/filesystem.py", "if is_same_table and find_version", "if find_version", CATALOG),
    swap("catalog/filesystem.py",
         "if is_same_table and find_version(location) == find_version(loaded.metadata_location):", "if is_same_table:",
         CATALOG),
    swap("catalog/filesystem.py", "if self._was_dropped(attempt):", "if False:", CATALOG),
    swap("catalog/filesystem.py", "return Unknown(_unknown(parts, error.message), (attempt,))", "raise", CATALOG, FAULTS),
    swap("catalog/filesystem.py", "if stored == encode_table_metadata(attempt.loaded.metadata):", "if False:", CATALOG),
    swap("catalog/filesystem.py", 'return self._rejected(attempt.base) if stored != b"" else None',
         "return self._rejected(attempt.base)", CATALOG, GUARDS),
    swap("catalog/filesystem.py", "if states.claim(version, encode_table_metadata(attempt.base.metadata)):", "if True:",
         CATALOG),
    drop("catalog/filesystem.py", "self._check_place(base, changed.metadata)", CATALOG),
)  # fmt: skip

EXCLUSIVE = (
    swap("storage/local.py", "        os.link(temporary, target)", "        os.replace(temporary, target)", LOCAL,
         MEMORY),
    swap("storage/local.py", "if error.errno == errno.EEXIST:", "if False:", LOCAL),
    swap("storage/local.py", "        if not _same_file(temporary, target):\n", "        if True:\n", LOCAL),
    swap("storage/local.py",
         "descriptor = os.open(path, _NEW_FILE, 0o666)",
         "descriptor = os.open(path, _NEW_FILE & ~os.O_EXCL, 0o666)", LOCAL, GUARDS),
    swap("storage/local.py",
         "            try:\n                descriptor = os.open(temporary, _NEW_FILE, 0o666)",
         "            try:\n                descriptor = os.open(temporary, _NEW_FILE & ~os.O_EXCL, 0o666)", LOCAL, GUARDS),
    swap("catalog/version_files.py", "self._storage.create_exclusive(self.location(version), data)",
         "self._storage.replace(self.location(version), data)", CATALOG),
    swap("catalog/version_files.py", 'return f"{self._folder}/v{version}.metadata.json"',
         'return f"{self._folder}/v{version}{\'.gz\' if version % 2 else str()}.metadata.json"', CATALOG),
    swap("catalog/version_files.py", 'self._storage.replace(locations[version], b"")',
         "self._storage.delete(locations[version])", CATALOG),
    swap("catalog/version_files.py", "if version < newest - 1 and version in locations:", "if version in locations:",
         CATALOG, GUARDS),
    swap("catalog/version_files.py", "for _, name in sorted(states):", "for _, name in reversed(sorted(states)):", CATALOG,
         GUARDS),
)  # fmt: skip

SYNCS = (
    swap("storage/local.py", "        if durable:\n            os.fsync(descriptor)", "        pass", LOCAL),
    swap("storage/local.py", "            os.fsync(descriptor)\n            self._sync_way_to(", "            self._sync_way_to(",
         LOCAL, GUARDS),
    swap("storage/local.py", "            self._sync_way_to(_folder_of(target))\n", "", LOCAL, GUARDS),
    swap("storage/local.py", "            _remove(target)\n            raise\n", "            raise\n", LOCAL, GUARDS),
    swap("storage/local.py", "        self._sync_published(path, target)\n\n    def _publish_written",
         "\n    def _publish_written", LOCAL),
    swap("storage/local.py", "        self._sync_published(path, target)\n\n    def _make_folders",
         "\n    def _make_folders", LOCAL),
    swap("storage/local.py", "            self._sync_published(path, target)\n\n    def list(", "\n    def list(", LOCAL, GUARDS),
    swap("storage/local.py", "        self._sync_published(folder, target)\n", "", LOCAL, GUARDS),
    swap("storage/local.py", "        if self._durable and syncs:\n            self._sync_way_to(folder)", "        pass", LOCAL),
    swap("storage/local.py", "if self._synced.get(current) == identity:", "if current in self._synced:", LOCAL),
    swap("storage/local.py", "            raise _outcome_unknown(path, error) from error\n\n\n@dataclass",
         "            raise StorageError(str(error)) from error\n\n\n@dataclass", LOCAL),
    swap("storage/local.py", "own_sync = self.begun + 1", "own_sync = self.begun", LOCAL),
    swap("catalog/sqlite.py", "PRAGMA synchronous=FULL", "PRAGMA synchronous=OFF", CATALOG, GUARDS),
)  # fmt: skip

SERVICES = (
    swap("rest/rest_catalog.py", "return SentTables(_lost(what, str(lost)), (Attempt(base, base),), (change,), key)", "raise",
         REST),
    swap("rest/rest_catalog.py",
         "return all(snapshot.snapshot_id in ids or snapshot.snapshot_id in parents for snapshot in added)", "return True", REST),
    swap("rest/rest_catalog.py", "            verdict = self._judge(unknown, [self._find(change) for change in changes])\n            return outcome if verdict is None else verdict",
         "            return outcome", REST, LOST),
    swap("rest/rest_catalog.py", "                check_requirements(loaded.metadata, change.requirements)\n", "                pass\n", REST),
    swap("rest/rest_catalog.py", "            if not _is_same(change.base.metadata, loaded.metadata):\n                return unknown\n", "", REST),
    swap("rest/rest_catalog.py", "same = () if uuid is None else (AssertTableUuid(uuid),)", "same = ()", ["tests/contract/test_catalog_contract.py", "-k", "rest"]),
    swap("rest/session.py", "reason, is_doubtful = str(error), True\n                may_repeat = is_repeatable",
         "reason, is_doubtful = str(error), True\n                may_repeat = True", REST),
    swap("rest/session.py", "                    is_doubtful = True\n                    failures", "                    failures", REST),
    swap("rest/rest_names.py", "        owned.check_folders(\"purge table\")\n        self._drop", "        self._drop",
         ["tests/contract/test_catalog_contract.py", "-k", "rest and Purging"]),
    swap("rest/rest_names.py", "self._drop(parts, is_purge=False)\n        return purge", "self._drop(parts, is_purge=True)\n        return purge",
         REST),
    swap("commit/new_snapshot.py", "        AssertCurrentSchemaId(metadata.current_schema_id),\n", "", LOOP),
)  # fmt: skip

CLEANING = (
    swap("commit/transaction.py", "            if not self._loop.was_unknown:\n                for table in", "            if True:\n                for table in",
         LOOP),
    drop("commit/commit_loop.py", "self.was_unknown = True", LOOP),
    swap("commit/transaction.py", "        if not self._loop.was_unknown:\n            for table, state", "        if True:\n            for table, state",
         LOOP, GUARDS),
    swap("commit/transaction.py", "if not paths or (isinstance(error, FrazilError) and not error.may_clean_up):",
         "if not paths:", LOOP, GUARDS),
    swap("commit/transaction.py", "[path for path in paths if location_key(path) not in used]", "paths", LOOP, GUARDS),
    swap("commit/transaction.py", "if head.snapshot_id in own_ids or head.parent_snapshot_id in own_ids:", "if False:",
         LOOP, GUARDS),
    swap("commit/transaction.py",
         "if slot.written.paths and snapshot is not None and snapshot.manifest_list not in used:", "if False:", LOOP, GUARDS),
    swap("commit/transaction.py", "[path for path in slot.written.paths if path not in used]", "slot.written.paths", LOOP),
    swap("commit/transaction.py", "        except Exception as error:\n            if not self._loop.was_unknown",
         "        except BaseException as error:\n            if not self._loop.was_unknown", LOOP),
    swap("commit/transaction.py", "                if not self._exists(table.base):\n", "                if True:\n", LOOP, GUARDS),
    swap("commit/action.py", "                self._paths.remove(path)", "                pass", COMMIT, GUARDS),
    swap("commit/change_files.py", "[writer.loaded.metadata.last_sequence_number, *added, *(number for number in kept if number >= 0)]",
         "[writer.loaded.metadata.last_sequence_number, *(number for number in kept if number >= 0)]", RULES, COMMIT, PAIRS, GUARDS),
    swap("commit/change_files.py", "[writer.loaded.metadata.last_sequence_number, *added, *(number for number in kept if number >= 0)]",
         "[writer.loaded.metadata.last_sequence_number, *added]", RULES, COMMIT, PAIRS),
    swap("commit/change_files.py", "removed |= to_mask(pc.and_(is_vector, is_gone))", "pass", RULES, COMMIT),
    swap("commit/change_files.py", "return manifest.has_live_files or manifest.added_snapshot_id == context.snapshot_id",
         "return manifest.has_live_files", RULES, COMMIT),
    swap("catalog/pointer_catalog.py",
         "        except CommitStateUnknownError as error:\n            return Unknown(error, attempts)",
         "        except CommitStateUnknownError as error:\n            self._discard(attempts)\n            return Unknown(error, attempts)",
         CATALOG, FAULTS),
    swap("catalog/pointer_catalog.py",
         "loaded.identifier, loaded.metadata_location) is not None:\n                return purge",
         "loaded.identifier) is not None:\n                return purge", CATALOG, GUARDS),
    swap("catalog/pointer_catalog.py", "            check_may_purge(loaded)\n", "", CATALOG),
    swap("catalog/pointer_catalog.py",
         "is_free = self._find_below(own) is None and next(iter(self.storage.list(own)), None) is None",
         "is_free = True", CATALOG),
    swap("maintenance/purge_files.py", "    if len(read) == len(manifests):\n        work.delete(manifest_lists)",
         "    work.delete(manifest_lists)", CATALOG),
)  # fmt: skip

OWNERSHIP = (
    # What may be deleted, and what may be read
    swap("catalog/owned_folders.py", "return folder == other or other.startswith(f\"{folder.rstrip('/')}/\")",
         "return folder == other", OWNED, STRANGERS),
    skip("catalog/owned_folders.py", "OwnedFolders.find_refusal", OWNED),
    skip("catalog/owned_folders.py", "OwnedFolders._find_other_owner", OWNED),
    skip("catalog/owned_folders.py", "OwnedFolders.check_folders", STRANGERS),
    skip("catalog/owned_folders.py", "check_new_place", STRANGERS),
    swap("catalog/owned_folders.py", "if any(is_under(really, real_folder) for real_folder in self.real_folders):", "if True:", OWNED),
    swap("catalog/owned_folders.py", "if not any(is_under(really, root) for root in self._roots):", "if False:", OWNED),
    swap("catalog/owned_folders.py", "if not any(is_within(really, root) for root in self._roots):", "if False:", STRANGERS),
    swap("catalog/owned_folders.py", "return enclosing or self._above.get(key) or self._unknown", "return enclosing or self._unknown",
         OWNED, STRANGERS),
    swap("catalog/owned_folders.py", "return enclosing or self._above.get(key) or self._unknown",
         "return self._above.get(key) or self._unknown", OWNED, STRANGERS),
    swap("catalog/owned_folders.py", "return enclosing or self._above.get(key) or self._unknown",
         "return enclosing or self._above.get(key)", STRANGERS),
    swap("catalog/owned_folders.py", "other.problem is not None or _holds(other.key, location_key(folder))", "True",
         OWNED, STRANGERS),
    swap("catalog/owned_folders.py", "None if is_named and not is_alone else", "None if is_named else", STRANGERS),
    swap("catalog/owned_folders.py", " or parse_location(above + \"/\").path.strip(\"/\") == \"\"", "", OWNED),
    swap("catalog/owned_folders.py", "if is_all or self._own is None or not is_within(really, self._own):",
         "if is_all or self._own is None:", OWNED, STRANGERS),
    swap("catalog/owned_folders.py", "if not _is_explicit(base, new) and not any(", "if not any(", STRANGERS),
    swap("catalog/owned_folders.py", "return is_below_location and before.location != after.location", "return True", STRANGERS),
    swap("catalog/pointer_catalog.py", "                check_new_place(self, base, new, location)\n", "", STRANGERS),
    swap("catalog/pointer_catalog.py", "            owned.check_folders(\"purge table\")\n", "", CATALOG, STRANGERS),
    swap("catalog/pointer_catalog.py", " and _is_beside(location, folder)", "", STRANGERS),
    swap("catalog/pointer_catalog.py", "if find_metadata_version(location) is not None and _is_beside", "if _is_beside", STRANGERS),
    swap("catalog/pointer_catalog.py", "if any(location_key(other) == key for other in others):",
         "if False:", STRANGERS),
    swap("commit/delete_paths.py", "        yield refusals[folder]\n", "        yield None\n", STRANGERS),
    swap("commit/delete_paths.py", "            yield owned.find_refusal(path)\n", "            yield None\n", EXPIRY, STRANGERS),
    swap("commit/expired_files.py", "reachable.find_unreachable(lists)[0],", "lists,", EXPIRY, GUARDS),
    swap("commit/expired_files.py", "reachable.find_unreachable(statistics)[0],", "statistics,", EXPIRY, GUARDS, STRANGERS),
    swap("commit/expired_files.py", "reachable.find_unreachable([manifest.manifest_path for manifest in old])[0],",
         "[manifest.manifest_path for manifest in old],", EXPIRY, GUARDS, STRANGERS),
    drop("commit/expired_files.py", "reachable.add_files(workers)", EXPIRY),
    swap("commit/expired_files.py", "~reachable.contains(", "~0 * reachable.contains(", EXPIRY),
    swap("commit/expired_files.py", "if old or statistics or unread:", "if old:", EXPIRY, GUARDS, STRANGERS),
    swap("commit/reachable_files.py", "            return [locations, resolved]", "            return [locations]", STRANGERS),
    drop("maintenance/purge_files.py", "self.owned.check(path)", CATALOG, STRANGERS),
    swap("maintenance/purge_files.py", "self.emptied.add(folder)", "self.emptied.update(self.owned.folders)", STRANGERS),
    swap("maintenance/move_paths.py", " and is_within(path, self.source)", "", PATHS),
    swap("maintenance/move_paths.py", "if storage.size(path) != len(data) or storage.read(path) != data:", "if False:", PATHS),
    skip("storage/locations.py", "is_under", LOCATIONS, result="True"),
    swap("storage/locations.py", "if any(step in (\".\", \"..\") for path in (inner.path, outer.path) for step in path.split(\"/\")):",
         "if False:", LOCATIONS),
    swap("storage/locations.py", "\"gcs\": \"gs\", ", "", LOCATIONS),
    swap("storage/locations.py", "rf\"^({'|'.join(_ALIASES)}):|", "r\"", LOCATIONS),
    skip("storage/choose.py", "SchemeStorage._check_inside", CHOICES, CONNECT),
    skip("storage/choose.py", "SchemeStorage.check_readable", CHOICES),
    swap("storage/choose.py", "is_inside[folder] = any(is_within(folder, root) for root in roots)", "is_inside[folder] = True", CHOICES),
    swap("storage/choose.py", "if scheme not in self._schemes:", "if False:", CHOICES),
)  # fmt: skip

EDGES = (
    # One row, one id or one number from being wrong
    swap("commit/remove_dangling_deletes.py", "sequence < data.oldest_in", "sequence <= data.oldest_in", DANGLING),
    swap("scan/delete_index.py", "(apart & ~both_may_have_null)", "apart", PLANS),
    swap("expr/columns/stats_masks.py", "bisect_right(values, high)", "bisect_left(values, high)", PLANS),
    swap("commit/conflicts.py", "_APPENDING = frozenset({Operation.APPEND, Operation.OVERWRITE})",
         "_APPENDING = frozenset({Operation.APPEND})", RULES),
    swap("scan/prune.py", "len(term.reference.path) == 1", "True", PLANS),
    swap("catalog/sql.py", " or expected not in (None, rows[0][0])", "", CATALOG),
    swap("changes/table_steps.py", " and (\n        is_void or str(partition_field.transform) == str(other.transform)\n    )", "", CHANGES),
    swap("commit/transaction.py", "head.snapshot_id in own_ids or ", "", GUARDS),
    swap("commit/transaction.py", " or head.parent_snapshot_id in own_ids", "", GUARDS),
    swap("commit/write_manifests.py", "        manifest.first_row_id,\n", "", COMMIT),
)  # fmt: skip

GROUPS = {
    "validations": VALIDATIONS,
    "outcomes": OUTCOMES,
    "services": SERVICES,
    "exclusive names": EXCLUSIVE,
    "syncs": SYNCS,
    "clean-up": CLEANING,
    "edges": EDGES,
    "ownership": OWNERSHIP,
}


def apply(source: Path, mutant: Mutant) -> None:
    """Change one place in a copy of the sources; refuse where it is not there, or there twice."""
    path = source / "frazil" / mutant.file
    text = path.read_text("utf-8")
    if mutant.kind == "skip":
        changed = _skipped(text, mutant.place, mutant.new)
    else:
        if text.count(mutant.place) != 1:
            raise SystemExit(f"{mutant.file} has {text.count(mutant.place)} times: {mutant.place}")
        changed = text.replace(mutant.place, mutant.new)
    ast.parse(changed)
    path.write_text(changed, "utf-8")


def _skipped(text: str, function: str, result: str) -> str:
    owner, _, name = function.rpartition(".")
    tree: ast.AST = ast.parse(text)
    if owner:
        tree = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == owner)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    if len(found) != 1:
        raise SystemExit(f"there are {len(found)} functions named {function}")
    first = found[0].body[1] if ast.get_docstring(found[0]) is not None else found[0].body[0]
    lines = text.splitlines(keepends=True)
    lines.insert(first.lineno - 1, f"{' ' * first.col_offset}return {result}\n")
    return "".join(lines)


def preload() -> None:
    """Load what every run needs but the package itself, so that a run is a fork and not a start."""
    for name in ("numpy", "pandas", "pyarrow.parquet", "datafusion", "psycopg", "fastavro"):
        importlib.import_module(name)


def run_stage(source: Path, stage: Sequence[str], output: Path) -> str | None:
    """Run some tests against a copy of the sources; return the test that failed, or None."""
    present = [one for one in stage if not one.startswith("tests/") or (ROOT / one).exists()]
    child = os.fork()
    if child == 0:
        _be_run(source, present, output)
    deadline = time.monotonic() + STAGE_SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            is_passed = os.waitstatus_to_exitcode(status) in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
            return None if is_passed else _failed_test(output)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"{Path(stage[0]).name} (hangs)"


def _be_run(source: Path, arguments: Sequence[str], output: Path) -> NoReturn:
    code = 1
    # What the parent wants done at its end is not the child's to do.
    atexit._clear()
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.chdir(ROOT)
        # First of all places, here and in the processes that tests start.
        sys.path.insert(0, str(source))
        os.environ["PYTHONPATH"] = str(source)
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=120", *arguments]))
    except BaseException:
        traceback.print_exc()
    finally:
        # Servers that tests have started end with the process that started them.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _failed_test(output: Path) -> str:
    found = re.search(r"^(?:FAILED|ERROR) \S*?([^/]+\.py\S*)", output.read_text("utf-8", "replace"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"no test ran:\n{output.read_text('utf-8', 'replace')[-2000:]}")
    return found[1].replace(".py::", ": ")


def find_killer(source: Path, mutant: Mutant) -> str | None:
    """Return the first test that notices, or None."""
    likely = LIKELY.get(mutant.file)
    first = [[*mutant.stages[0], "-k", likely]] if likely is not None and mutant.stages else []
    for stage in (*first, *mutant.stages):
        failed = run_stage(source, stage, source.parent / "output")
        if failed is not None:
            return failed
    return None


def check_unchanged(source: Path, mutants: Sequence[Mutant]) -> None:
    """Check that every stage passes on the copy without a mutant."""
    for stage in {tuple(stage): None for mutant in mutants for stage in mutant.stages}:
        failed = run_stage(source, stage, source.parent / "output")
        if failed is not None:
            raise SystemExit(f"tests fail without a mutant: {failed}")


def main() -> int:
    """Run the mutants that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="a text that the name of a mutant holds, or the name of a group")
    parser.add_argument("--skip", type=int, default=0, help="how many mutants to leave out, from the first")
    parser.add_argument("--brief", action="store_true", help="leave out the stages that take minutes")
    parser.add_argument("--list", action="store_true", help="only say what there is")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests on the unchanged sources first")
    options = parser.parse_args()
    chosen = [
        (group, one)
        for group, mutants in GROUPS.items()
        for one in mutants
        if options.only in one.name or options.only == group
    ]
    chosen = chosen[options.skip :]
    if options.brief:
        chosen = [
            (group, replace(one, stages=tuple(stage for stage in one.stages if stage not in (PAIRS, FAULTS, COMMIT))))
            for group, one in chosen
        ]
    if options.list:
        for group, one in chosen:
            print(f"{group:<16} {one.name}")
        print(f"{len(chosen)} mutants")
        return 0
    with tempfile.TemporaryDirectory(prefix="frazil-mutants-") as folder:
        preload()
        # One copy for the whole run: sources that somebody edits meanwhile would be noticed for another reason.
        unchanged = shutil.copytree(ROOT / "src", Path(folder) / "unchanged")
        if not options.unchecked:
            check_unchanged(unchanged, [one for _, one in chosen])
        return run_mutants(chosen, unchanged, Path(folder) / "changed")


def run_mutants(chosen: Sequence[tuple[str, Mutant]], unchanged: Path, source: Path) -> int:
    """Run the tests of each mutant, print what noticed it, and return whether any survived."""
    survivors: list[tuple[str, Mutant]] = []
    counts: Counter[str] = Counter()
    for group, one in chosen:
        began = time.monotonic()
        shutil.copytree(unchanged, source)
        apply(source, one)
        killer = find_killer(source, one)
        shutil.rmtree(source)
        counts[group] += 1
        if killer is None:
            survivors.append((group, one))
        print(f"{group:<16} {one.name}\n    {killer or 'SURVIVED'}, {time.monotonic() - began:.0f} s", flush=True)
    for group, count in counts.items():
        lost = sum(lives == group for lives, _ in survivors)
        print(f"{group:<16} {count:>4} mutants, {count - lost:>4} noticed")
    print(f"{len(chosen)} mutants, {len(chosen) - len(survivors)} noticed, {len(survivors)} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
