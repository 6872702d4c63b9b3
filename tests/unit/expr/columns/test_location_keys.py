"""Keys of locations by the column: the same as one by one, whatever the locations look like."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.expr.columns.location_keys import hashes_of, location_keys
from frazil.expr.columns.seen_hashes import SeenHashes
from frazil.storage.locations import location_key

SCHEMES = ("file:", "file:/", "file:///", "file://LOCALHOST/", "s3://b/", "s3a://b/", "S3://b/", "gs://", "/")
STEPS = st.sampled_from(["a", "b.parquet", ".", "..", "", "%2e", "k=1", "ü", "a b", "...", ".x", "\n"])
LOCATIONS = st.builds(
    lambda scheme, steps: scheme + "/".join(steps), st.sampled_from(SCHEMES), st.lists(STEPS, min_size=1, max_size=5)
)


@given(st.lists(LOCATIONS, max_size=20))
def test_column_keys_equal_scalar_location_keys(locations: list[str]) -> None:
    column = pa.chunked_array([pa.array(locations[:3], pa.string()), pa.array(locations[3:], pa.string())])
    assert location_keys(column) == [location_key(one) for one in locations]


@pytest.mark.parametrize("location", ["s3://b/t/data/k=1/x.parquet", "file:///t/data/x", "memory://lake/db/t/x"])
def test_plain_location_is_its_own_key(location: str) -> None:
    assert location_keys(pa.array([location])) == [location] == [location_key(location)]


def test_equal_keys_have_equal_hashes() -> None:
    first, again, other = hashes_of(["a", "a", "b"]).tolist()
    assert first == again != other


def test_key_set_contains_exactly_the_added_keys() -> None:
    seen = SeenHashes()
    assert not seen.contains(hashes_of(["a"])).any()
    for part in (["a", "b"], ["c"], ["d", "e", "f"]):
        seen.add(hashes_of(part))
    assert seen.contains(hashes_of(["a", "x", "c", "f", "y"])).tolist() == [True, False, True, True, False]
