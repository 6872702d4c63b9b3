"""Time and memory that decoding table metadata takes: linear in what is there, and bounded where it is hostile."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from frazil.codec.table_metadata_json import decode_table_metadata
from tests.support.metadata_builders import START_MS, document, snapshot_document, text_of


def test_many_snapshots_and_columns_are_read_in_bounded_time() -> None:
    count = 20_000
    made = document(2, last_sequence_number=count, current_snapshot_id=count, refs=None, snapshot_log=None)
    # The newest first, with an unknown field: neither the order nor the long path may cost more than linear time.
    made["snapshots"] = [snapshot_document(one, one - 1 or None, odd=1) for one in range(count, 0, -1)]
    made["last-updated-ms"] = START_MS + count
    made["schemas"][0]["fields"] = [
        {"id": one, "name": f"c{one}", "required": False, "type": "long"} for one in range(1, count + 1)
    ]
    made["last-column-id"] = count
    start = time.process_time()
    table = decode_table_metadata(text_of(made))
    assert time.process_time() - start < 5
    assert (len(table.snapshots), len(table.current_schema)) == (count, count)


@pytest.mark.extended
def test_one_megabyte_file_never_takes_half_a_gigabyte() -> None:
    script = """
import gzip, resource, sys
from frazil.codec.table_metadata_json import decode_table_metadata
from frazil.errors import FrazilError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
MB = 1 << 20
for body in (b'[],' * (MB // 3), b'{"":0},' * (MB // 7)):
    for name in (b'schemas', b'snapshots'):
        head = b'{"format-version":2,"' + name + b'":['
        data = gzip.compress(head + body * 5 + b'0]}', 1)
        assert len(data) <= MB
        try:
            decode_table_metadata(data)
            sys.exit("read")
        except FrazilError:
            pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 512
