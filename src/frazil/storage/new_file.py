"""A file that is written in pieces. Used for large files, so that they need not fit in memory.

The guarantees are those of `Storage.create`: the file has no name until `publish`, which gives it the name with its
whole content or not at all, and a name that is taken is refused. Unpublished data leaves nothing that a reader could
mistake for a file of the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType

from frazil.errors import InvalidRequestError


class NewFile(ABC):
    """A new file that accepts bytes until it is published or discarded; used by one thread at a time."""

    __slots__ = ("path", "size")

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes; return their number."""
        count = len(data)
        self._write(data)
        self.size += count
        return count

    @abstractmethod
    def _write(self, data: bytes | memoryview) -> None: ...

    @abstractmethod
    def publish(self) -> None:
        """Give the file its name, durably; fail if the name is taken."""

    @abstractmethod
    def discard(self) -> None:
        """Drop the written data; has no effect after `publish` or when repeated."""

    def __enter__(self) -> NewFile:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


class BufferedNewFile(NewFile):
    """A new file for storages that accept only whole files: it is kept in memory until it is published."""

    __slots__ = ("_create", "_pieces")

    def __init__(self, path: str, create: Callable[[str, bytes], None]) -> None:
        super().__init__(path)
        self._create = create
        self._pieces: list[bytes] | None = []

    def _write(self, data: bytes | memoryview) -> None:
        self._open_pieces().append(bytes(data))

    def publish(self) -> None:
        """Create the file from the pieces."""
        pieces = self._open_pieces()
        self._pieces = None
        self._create(self.path, pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def discard(self) -> None:
        """Drop the pieces."""
        self._pieces = None

    def _open_pieces(self) -> list[bytes]:
        if self._pieces is None:
            raise closed(self.path)
        return self._pieces


def closed(path: str) -> InvalidRequestError:
    """Return the error for a new file that is used after it was published or discarded."""
    return InvalidRequestError(f"Cannot write to {path}: the file was already published or discarded", path=path)
