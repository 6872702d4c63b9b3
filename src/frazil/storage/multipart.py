"""A new file that is sent to an object store in parts while it is written, so that it need not fit in memory.

A file smaller than one part is created whole at the end. The parts of a larger one belong to an upload, which has no
name and is invisible to readers until it is completed; that completion is the write that may find the name taken. An
upload that is never completed, because the process died, costs storage until the bucket's rules remove it.
"""

from __future__ import annotations

import contextlib
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final
from xml.sax.saxutils import escape as escape_xml

from frazil.errors import FrazilError, StorageError, UnsupportedError, WriteOutcomeUnknownError
from frazil.storage.new_file import NewFile, closed
from frazil.storage.object_requests import ObjectKey, ObjectRequests, Outcome, child_text, error_of, parse_xml

PART_BYTES: Final = 16 << 20
MAX_PARTS: Final = 10_000
_COMPLETIONS: Final = 3

Complete = Callable[[bool], Outcome]


class PartedNewFile(NewFile):
    """A new object; `publish` completes an upload in its storage, `create` writes a small file."""

    __slots__ = (
        "_create",
        "_etags",
        "_headers",
        "_is_open",
        "_part_bytes",
        "_place",
        "_publish_upload",
        "_requests",
        "_rest",
        "_upload",
    )

    def __init__(
        self,
        key: ObjectKey,
        requests: ObjectRequests,
        *,
        headers: dict[str, str],
        create: Callable[[str, bytes], None],
        publish: Callable[[ObjectKey, Complete], None],
        part_bytes: int = PART_BYTES,
    ) -> None:
        super().__init__(key.location)
        self._place = key
        self._requests = requests
        self._headers = headers
        self._create = create
        self._publish_upload = publish
        self._part_bytes = part_bytes
        self._rest = bytearray()
        self._etags: list[str] = []
        self._upload: str | None = None
        self._is_open = True

    def _write(self, data: bytes | memoryview) -> None:
        self._check_open()
        self._rest += data
        while len(self._rest) >= self._part_bytes:
            self._send_part(bytes(self._rest[: self._part_bytes]))
            del self._rest[: self._part_bytes]

    def publish(self) -> None:
        """Create the object from the written bytes."""
        self._check_open()
        try:
            if self._upload is None:
                self._create(self.path, bytes(self._rest))
            else:
                if len(self._rest) > 0:
                    self._send_part(bytes(self._rest))
                self._publish_upload(self._place, self._complete)
            self._upload = None
        except WriteOutcomeUnknownError:
            # The completion may be under way; aborting the upload could undo what a reader already sees.
            self._upload = None
            raise
        finally:
            self.discard()

    def discard(self) -> None:
        """Abort the upload, which removes its parts."""
        self._is_open = False
        self._rest = bytearray()
        upload, self._upload = self._upload, None
        if upload is not None:
            with contextlib.suppress(FrazilError):
                self._abort(upload)

    def _check_open(self) -> None:
        if not self._is_open:
            raise closed(self.path)

    def _send_part(self, data: bytes) -> None:
        if len(self._etags) == MAX_PARTS:
            raise UnsupportedError(
                f"Cannot write {self.path}: an object can have at most {MAX_PARTS} parts of {self._part_bytes} bytes",
                path=self.path,
            )
        if self._upload is None:
            self._upload = self._begin()
        number = len(self._etags) + 1
        outcome = self._requests.send("PUT", self._place, query=self._part_query(number), body=data)
        if outcome.answer is None or not outcome.is_success:
            raise self._refused(outcome)
        self._etags.append(self._part_tag(number, outcome.answer.headers))

    def _part_query(self, number: int) -> Iterable[tuple[str, str]]:
        return (("partNumber", str(number)), ("uploadId", self._upload or ""))

    def _part_tag(self, number: int, headers: Mapping[str, str]) -> str:
        """Return the identifier of a part for the completion of the upload."""
        return headers.get("etag", "")

    def _begin(self) -> str:
        outcome = self._requests.send("POST", self._place, query=(("uploads", ""),), headers=self._headers)
        if outcome.answer is None or not outcome.is_success:
            raise self._refused(outcome)
        with contextlib.suppress(ET.ParseError):
            upload = child_text(parse_xml(outcome.answer.body), "UploadId")
            if upload != "":
                return upload
        raise StorageError(f"Cannot write {self.path}: the response has no upload ID", path=self.path)

    def _complete(self, is_conditional: bool) -> Outcome:
        is_doubtful = False
        for _ in range(_COMPLETIONS):
            outcome = self._send_complete(dict([self._requests.service.condition]) if is_conditional else {})
            answer = outcome.answer
            if answer is None or not outcome.is_success or error_of(answer)[0] == "":
                return replace(outcome, may_have_happened=is_doubtful or outcome.may_have_happened)
            # The status was sent before the work was done, and the work failed.
            is_doubtful = True
        return Outcome(None, True, "the server reports that it could not complete the upload")

    def _send_complete(self, condition: Mapping[str, str]) -> Outcome:
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape_xml(etag)}</ETag></Part>"
            for number, etag in enumerate(self._etags, 1)
        )
        return self._requests.send(
            "POST",
            self._place,
            query=(("uploadId", self._upload or ""),),
            headers=condition,
            body=f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode(),
        )

    def _abort(self, upload: str) -> None:
        self._requests.send("DELETE", self._place, query=(("uploadId", upload),))

    def _refused(self, outcome: Outcome) -> StorageError:
        # The file has no name yet, so whatever happened to a part, the file was not written.
        error = self._requests.refused("write", self._place, outcome)
        return StorageError(error.message, hint=error.hint, path=self.path)
