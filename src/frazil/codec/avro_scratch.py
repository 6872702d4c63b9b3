"""Files without a name, for a reader that takes nothing but paths.

DataFusion opens files. What `codec/avro_decode.py` has for it is in memory, and stays there: an anonymous file of the
kernel, or one in the folder for temporary files that has no name any more. Both are reached through the process's own
list of open files, and are gone with the process, whatever ends it. Where a system has no such list, the file has
a name and is removed when it is closed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_OPEN_FILES = Path("/proc/self/fd")
_MEMORY_BYTES = 64 << 20
"""What is larger goes to the folder for temporary files."""
_PIECES_AT_ONCE = 512
_SPARE_FILES = 2
_SPARE_BYTES = 8 << 20


class ScratchFile:
    """A file written over and over by one thread: it keeps its pages, which a new file would have to get."""

    def __init__(self) -> None:
        self._in_memory: int | None = None
        self._on_disk: IO[bytes] | None = None

    def __enter__(self) -> ScratchFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the file."""
        if self._in_memory is not None:
            os.close(self._in_memory)
        if self._on_disk is not None:
            self._on_disk.close()

    @property
    def is_worth_keeping(self) -> bool:
        """Whether it is in memory, and small."""
        return (
            self._on_disk is None and self._in_memory is not None and os.fstat(self._in_memory).st_size <= _SPARE_BYTES
        )

    def write(self, pieces: Sequence[bytes], size: int) -> Path:
        """Write pieces of about a total size in place of what was there; return where they can be read."""
        if size <= _MEMORY_BYTES and hasattr(os, "memfd_create") and _OPEN_FILES.is_dir():
            try:
                if self._in_memory is None:
                    self._in_memory = os.memfd_create("frazil", os.MFD_CLOEXEC)
                _overwrite(self._in_memory, pieces)
                return _OPEN_FILES / str(self._in_memory)
            except OSError:
                # No memory is left for it, or the system forbids it; there may be room elsewhere.
                pass
        if self._on_disk is None:
            nameless = _OPEN_FILES.is_dir()
            self._on_disk = tempfile.TemporaryFile() if nameless else tempfile.NamedTemporaryFile()  # noqa: SIM115
        _overwrite(self._on_disk.fileno(), pieces)
        name = self._on_disk.name
        return Path(name) if isinstance(name, str) else _OPEN_FILES / str(self._on_disk.fileno())


class SpareFiles:
    """Scratch files that were used and are used again: a few, and in the process that made them. For many threads."""

    def __init__(self) -> None:
        self._files: list[ScratchFile] = []
        self._process = os.getpid()

    @contextmanager
    def borrow(self) -> Iterator[ScratchFile]:
        """Yield a file for one thread; after an error it is given up, since a reader may still be at it."""
        if self._process != os.getpid():
            # A process that was forked has its parent's files open, which the parent writes to.
            self._files, self._process = [], os.getpid()
        try:
            file = self._files.pop()
        except IndexError:
            file = ScratchFile()
        try:
            yield file
        except BaseException:
            file.close()
            raise
        if len(self._files) < _SPARE_FILES and file.is_worth_keeping:
            self._files.append(file)
        else:
            file.close()


spare_files = SpareFiles()


def _overwrite(file: int, pieces: Sequence[bytes]) -> None:
    os.lseek(file, 0, os.SEEK_SET)
    total = 0
    for start in range(0, len(pieces), _PIECES_AT_ONCE):
        rest = [memoryview(piece) for piece in pieces[start : start + _PIECES_AT_ONCE]]
        while rest:
            written = os.writev(file, rest)
            total += written
            while rest and written >= len(rest[0]):
                written -= len(rest.pop(0))
            if written:
                rest[0] = rest[0][written:]
    os.ftruncate(file, total)
