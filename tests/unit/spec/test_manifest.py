"""Manifests and entries as values."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from frazil.errors import InvalidRequestError
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from tests.support.manifest_builders import added, data_file, deleted, existing, manifest_file


def test_values_are_picklable() -> None:
    for value in (added(), manifest_file()):
        assert pickle.loads(pickle.dumps(value)) == value


def test_deleted_entries_are_not_live() -> None:
    assert [one.is_live for one in (added(), existing(), deleted())] == [True, True, False]


def test_numbers_are_converted_to_names() -> None:
    assert ManifestEntry(2, data_file()).status is EntryStatus.DELETED  # type: ignore[arg-type]
    assert manifest_file(content=1).content is ManifestContent.DELETES
    assert [one.label for one in ManifestContent] == ["data", "deletes"]


@pytest.mark.parametrize(
    "added_count, existing_count, deleted_count, expected",
    [
        (0, 0, 0, (False, False, False, False)),
        (1, 0, 0, (True, False, False, True)),
        (0, 2, 0, (False, True, False, True)),
        (0, 0, 3, (False, False, True, False)),
        (None, None, None, (True, True, True, True)),
    ],
)
def test_unknown_counts_may_be_nonzero(
    added_count: int | None, existing_count: int | None, deleted_count: int | None, expected: tuple[bool, ...]
) -> None:
    manifest = manifest_file(
        added_files_count=added_count, existing_files_count=existing_count, deleted_files_count=deleted_count
    )
    found = (
        manifest.has_added_files,
        manifest.has_existing_files,
        manifest.has_deleted_files,
        manifest.has_live_files,
    )
    assert found == expected


def test_key_metadata_marks_an_encrypted_manifest() -> None:
    assert [manifest_file(key_metadata=one).is_encrypted for one in (None, b"", b"key")] == [False, False, True]


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"manifest_path": ""}, "its path is empty"),
        ({"content": 2}, "content 2 is not 0 or 1"),
        ({"content": 1, "first_row_id": 5}, "a delete manifest has no first_row_id"),
    ],
)
def test_invalid_manifests_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        manifest_file(0, **changes)


def test_unknown_status_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="status 3"):
        ManifestEntry(3, data_file())  # type: ignore[arg-type]
