"""Requests to an object store: objects by bucket and key, safe retries, and error messages.

A request is attempted a few times with growing pauses. `Outcome` reports the final result, and whether any attempt may
have been carried out unnoticed: after a lost response or a server error that is unknown. `object_store.py` decides what
that means.
"""

from __future__ import annotations

import hashlib
import random
import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import unquote_plus
from xml.parsers import expat

from frazil.errors import InvalidRequestError, MissingFileError, StorageError, WriteOutcomeUnknownError
from frazil.storage.http import MAX_ERROR_BYTES, Answer, AnswerLost, HttpClient, RequestNotSent
from frazil.storage.object_service import ObjectService, UnsignedRequest
from frazil.storage.sign_v4 import escape, query_text

_LATER: Final = frozenset({408, 425, 429})
"""The server did not carry out the request, but may do so later."""
_CONFLICT_CODES: Final = frozenset({"ConditionalRequestConflict", "OperationAborted"})
"""Another request for the name was under way: nothing was done, and it is unknown whether the name is taken."""
_NO_FILE: Final = frozenset({"NoSuchKey", "BlobNotFound"})
NO_BUCKET: Final = frozenset({"NoSuchBucket", "ContainerNotFound"})
_PAUSES: Final = (0.1, 0.4, 1.2)
_MAX_LIST_BYTES: Final = 1 << 24


class ObjectKey(NamedTuple):
    """An object's bucket and key, with the requested location."""

    bucket: str
    key: str
    location: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The final result of a request."""

    answer: Answer | None
    """The last response, or None if there was none."""
    may_have_happened: bool
    """Whether an attempt other than the one with this response may have been carried out."""
    reason: str = ""

    @property
    def status(self) -> int:
        """The status of the response, or 0 if there was none."""
        return 0 if self.answer is None else self.answer.status

    @property
    def is_success(self) -> bool:
        """Whether the request was carried out."""
        return self.answer is not None and self.answer.is_success


class Listed(NamedTuple):
    """A page of a listing."""

    objects: list[tuple[str, int, int]]
    """Key, size, and time in milliseconds."""
    prefixes: list[str]


class ObjectRequests:
    """Sends requests to one store. The caller may pass the clock, the sleep function and the random source."""

    __slots__ = ("_chance", "_http", "_now", "_sleep", "service")

    def __init__(
        self,
        service: ObjectService,
        http: HttpClient,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.service = service
        self._http = http
        self._now = now
        self._sleep = sleep
        self._chance = chance

    def send(
        self,
        method: str,
        key: ObjectKey,
        *,
        query: Iterable[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        body: bytes | memoryview = b"",
        min_bytes: int = 0,
        max_bytes: int = MAX_ERROR_BYTES,
    ) -> Outcome:
        """Send a request, with retries, until there is a usable response or the attempts are exhausted."""
        body_sha256 = hashlib.sha256(body).hexdigest()
        address = self.service.address(key.bucket)
        path = escape(self.service.path(key.bucket, key.key), is_path=True)
        query_string = query_text(query)
        target = path if query_string == "" else f"{path}?{query_string}"
        plain = {"host": address.origin.authority, **(headers or {})}
        answer: Answer | None = None
        is_doubtful = False
        reason = ""
        for pause in (*_PAUSES, None):
            signed = self.service.authorize(
                UnsignedRequest(method, path, query_string, plain, body_sha256, len(body), self._now())
            )
            secret = self.service.secret_query(path, plain["host"])
            full_target = target if secret == "" else f"{target}{'&' if query_string else '?'}{secret}"
            answer, is_lost = None, False
            try:
                answer = self._http.send(
                    address.origin, method, full_target, signed, body, min_bytes=min_bytes, max_bytes=max_bytes
                )
            except RequestNotSent as error:
                reason = str(error)
            except AnswerLost as error:
                reason = str(error)
                is_lost = True
            if answer is not None:
                if not _is_worth_repeating(answer):
                    return Outcome(answer, is_doubtful)
                reason = self.explain(answer)
                is_lost = answer.status >= 500
            is_doubtful = is_doubtful or is_lost
            if pause is not None:
                self._sleep(pause * (0.5 + self._chance()))
        return Outcome(answer, is_doubtful, reason)

    def explain(self, answer: Answer) -> str:
        """Return the server's error message, in one line and without secrets."""
        code, message = error_of(answer)
        text = " ".join(message.split()) if message else f"the server responded with status {answer.status}"
        tail = f"{answer.status}, {code}" if code else f"{answer.status}"
        return self.service.hide_secrets(text if not message else f"{text.rstrip('.')} ({tail})")

    def refused(self, verb: str, key: ObjectKey, outcome: Outcome) -> StorageError:
        """Return the error for a request that was not carried out."""
        location = key.location
        answer = outcome.answer
        if answer is None:
            return StorageError(f"Cannot {verb} {location}: {outcome.reason}", path=location)
        code, _ = error_of(answer)
        if answer.status == 404 and (code in _NO_FILE or code in NO_BUCKET or answer.body == b""):
            what = "bucket" if code in NO_BUCKET else "file"
            return MissingFileError(f"Cannot {verb} {location}: the {what} does not exist", path=location)
        region = answer.headers.get("x-amz-bucket-region")
        hint: str | None = None
        if region is not None and answer.status in (301, 307, 400):
            hint = f"The bucket is in the region {region!r}; set s3.region."
        elif answer.status in (401, 403):
            hint = "Check the credentials, their expiry, and their permissions for this bucket."
        return StorageError(f"Cannot {verb} {location}: {self.explain(answer)}", hint=hint, path=location)

    def failed_write(self, verb: str, key: ObjectKey, outcome: Outcome) -> StorageError:
        """Return the error for a failed write, depending on whether it may have happened."""
        return self.unknown(key, outcome) if outcome.may_have_happened else self.refused(verb, key, outcome)

    def unknown(self, key: ObjectKey, outcome: Outcome) -> WriteOutcomeUnknownError:
        """Return the error for a write that may have happened."""
        reason = outcome.reason
        if reason == "" and outcome.answer is not None:
            reason = self.explain(outcome.answer)
        return WriteOutcomeUnknownError(
            f"Cannot tell whether {key.location} was written: {reason}",
            hint="Read the file back to find out; do not delete files written for it.",
            path=key.location,
        )

    def list_pages(self, key: ObjectKey, *, prefix: str, is_deep: bool, max_keys: int = 1000) -> Iterator[Listed]:
        """Yield the objects whose keys start with a prefix, by page; grouped by folder unless the listing is deep."""
        following: str | None = None
        bucket = ObjectKey(key.bucket, "", key.location)
        tokens: set[bytes] = set()
        while True:
            query = self._list_query(prefix, is_deep, max_keys, following)
            outcome = self.send("GET", bucket, query=query.items(), max_bytes=_MAX_LIST_BYTES)
            if outcome.answer is None or not outcome.is_success or not outcome.answer.is_read:
                raise self.refused("list", key, outcome)
            page, following = self._parse_page(outcome.answer.body, key.location)
            yield page
            if following is None:
                return
            token = hashlib.blake2b(following.encode(errors="surrogatepass"), digest_size=16).digest()
            if token in tokens:
                raise unreadable(key.location, "its pages repeat")
            tokens.add(token)

    def _list_query(self, prefix: str, is_deep: bool, max_keys: int, following: str | None) -> dict[str, str]:
        """Return the query for a page."""
        query = {"list-type": "2", "prefix": prefix, "encoding-type": "url", "max-keys": str(max_keys)}
        if not is_deep:
            query["delimiter"] = "/"
        return query if following is None else {**query, "continuation-token": following}

    def _parse_page(self, body: bytes, location: str) -> tuple[Listed, str | None]:
        """Parse a page; return it with the token for the next one."""
        return _parse_page(body, location)


def place_of(location: str, scheme: str, buckets: re.Pattern[str] = ObjectService.bucket_pattern) -> ObjectKey:
    """Parse a location into bucket and key, which are taken literally."""
    rest = location[len(scheme) + 1 :]
    bucket, _, key = rest[2:].partition("/")
    if not rest.startswith("//") or not buckets.fullmatch(bucket):
        # The text may contain a password before an @, so it is not shown.
        raise InvalidRequestError(f"Cannot use the {scheme}: location: the part after // is not a bucket name")
    if any(step in (".", "..") for step in key.split("/")):
        raise InvalidRequestError(
            f"Cannot use the location {location!r}: servers resolve the path segments . and .. in different ways"
        )
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError(f"Cannot use the location {location!r}: it is not valid Unicode") from error
    return ObjectKey(bucket, key, location)


def error_of(answer: Answer) -> tuple[str, str]:
    """Return the code and the message of an error response; empty if it has none."""
    try:
        root = parse_xml(answer.body)
    except ET.ParseError:
        # Azure also sends the code in the header, which is all that a response to HEAD has.
        return answer.headers.get("x-ms-error-code", ""), ""
    return child_text(root, "Code"), child_text(root, "Message")


def parse_xml(body: bytes) -> ET.Element:
    """Parse an XML document; refuse a document type declaration, whose entities can expand without limit."""
    builder = ET.TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(body, True)
        return builder.close()
    except (expat.ExpatError, AssertionError) as error:
        raise ET.ParseError(str(error)) from error


def _refuse_doctype(*_: object) -> None:
    raise ET.ParseError("a document type is not allowed")


def child_text(element: ET.Element, name: str) -> str:
    """Return the text of a child element, in any namespace; empty if there is none."""
    return next((child.text or "" for child in element if _local(child) == name), "")


def children(element: ET.Element, name: str) -> list[ET.Element]:
    """Return the child elements of a name, in any namespace."""
    return [child for child in element if _local(child) == name]


def _is_worth_repeating(answer: Answer) -> bool:
    if answer.status >= 500 and answer.status != 501:
        return True
    if answer.status in _LATER:
        return True
    if answer.status in (400, 409):
        code, _ = error_of(answer)
        return code in _CONFLICT_CODES or code == "RequestTimeout"
    return False


def _parse_page(body: bytes, location: str) -> tuple[Listed, str | None]:
    try:
        root = parse_xml(body)
        if _local(root) != "ListBucketResult":
            raise unreadable(location, "the response is not a listing")
        is_escaped = child_text(root, "EncodingType") == "url"
        objects = [
            (_name(child_text(child, "Key"), is_escaped), int(child_text(child, "Size")), _time_ms(child))
            for child in children(root, "Contents")
        ]
        prefixes = [_name(child_text(child, "Prefix"), is_escaped) for child in children(root, "CommonPrefixes")]
    except (ET.ParseError, ValueError, OverflowError) as error:
        raise unreadable(location, "the response is not a listing") from error
    following: str | None = None
    if child_text(root, "IsTruncated").lower() == "true":
        following = child_text(root, "NextContinuationToken")
        if following == "":
            raise unreadable(location, "the response is truncated without a continuation token")
    return Listed(objects, prefixes), following


def _name(text: str, is_escaped: bool) -> str:
    return unquote_plus(text, errors="strict") if is_escaped else text


def _time_ms(element: ET.Element) -> int:
    return int(datetime.fromisoformat(child_text(element, "LastModified")).timestamp() * 1000)


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def unreadable(location: str, why: str) -> StorageError:
    """Return the error for a listing that cannot be read."""
    return StorageError(f"Cannot list {location}: {why}", path=location)
