"""Memory while hostile metadata is decoded. Measured in a process apart."""

from __future__ import annotations

import subprocess
import sys


def test_a_one_megabyte_file_never_takes_half_a_gigabyte() -> None:
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
