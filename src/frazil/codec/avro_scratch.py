"""Unnamed temporary files, for a reader that only accepts paths.

DataFusion opens files. The data that `codec/avro_decode.py` has for it is in memory and stays there: either in an
anonymous kernel file or in an unlinked file in the folder for temporary files. Both are reached through `/proc/self/fd`
and vanish with the process, however it ends. On systems without `/proc/self/fd`, the file has a name and is removed
when it is closed.
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
"""Larger data goes to the folder for temporary files."""
_PIECES_AT_ONCE = 512
_SPARE_FILES = 2
_SPARE_BYTES = 8 << 20


class ScratchFile:
    """A file that one thread overwrites repeatedly; it keeps its pages, which a new file would have to allocate."""

    def __init__(self) -> None:
        self._in_memory: int | None = None
        self._on_disk: IO[bytes] | None = None

    def __enter__(self) -> ScratchFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, which discards its content."""
        if self._in_memory is not None:
            os.close(self._in_memory)
        if self._on_disk is not None:
            self._on_disk.close()

    @property
    def is_worth_keeping(self) -> bool:
        """Whether the file is in memory and small."""
        return (
            self._on_disk is None and self._in_memory is not None and os.fstat(self._in_memory).st_size <= _SPARE_BYTES
        )

    def write(self, pieces: Sequence[bytes], size: int) -> Path:
        """Replace the content by pieces of about `size` bytes in total, and return a path to read it from."""
        if size <= _MEMORY_BYTES and hasattr(os, "memfd_create") and _OPEN_FILES.is_dir():
            try:
                if self._in_memory is None:
                    self._in_memory = os.memfd_create("frazil", os.MFD_CLOEXEC)
                _overwrite(self._in_memory, pieces)
                return _OPEN_FILES / str(self._in_memory)
            except OSError:
                # Memory is short, or the system forbids such files; the disk may have room.
                pass
        if self._on_disk is None:
            is_nameless = _OPEN_FILES.is_dir()
            self._on_disk = tempfile.TemporaryFile() if is_nameless else tempfile.NamedTemporaryFile()  # noqa: SIM115
        _overwrite(self._on_disk.fileno(), pieces)
        name = self._on_disk.name
        return Path(name) if isinstance(name, str) else _OPEN_FILES / str(self._on_disk.fileno())


class SpareFiles:
    """A small pool of scratch files for reuse within one process; thread-safe."""

    def __init__(self) -> None:
        self._files: list[ScratchFile] = []
        self._process = os.getpid()

    @contextmanager
    def borrow(self) -> Iterator[ScratchFile]:
        """Yield a file for one thread; after an error it is closed, since a reader may still use it."""
        if self._process != os.getpid():
            # A forked process inherits its parent's open files, which the parent writes to.
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
