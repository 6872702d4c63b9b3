"""Requests to AWS Glue: JSON over HTTPS, signed, by the names of its actions.

Who asks for a change must know whether it may have been made. A refusal is an answer, `GlueRefused`, by the name of
its exception. A request that was not sent is `NotReached`; one without a whole answer, or with an answer that says that
something in the service broke, is `AnswerMissing`. Reads are repeated after both, changes only if they were certainly
not made: Glue refuses what comes too fast before it looks at it.

Credentials go to Glue's own address for the region, or to the endpoint that the user names, and nowhere else.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from frazil.catalog.metastore_pointers import AnswerMissing, NotReached
from frazil.errors import AccessDeniedError, StorageError
from frazil.storage.http import AnswerLost, AnswerTooLarge, HttpClient, RequestNotSent
from frazil.storage.origin import Origin
from frazil.storage.sign_v4 import CredentialSource, sign_v4

NOT_FOUND: Final = "EntityNotFoundException"
EXISTS: Final = "AlreadyExistsException"
CONCURRENT: Final = "ConcurrentModificationException"
INVALID: Final = ("InvalidInputException", "ValidationException")
_TOO_FAST: Final = frozenset(
    {
        "ThrottlingException",
        "Throttling",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "ResourceNumberLimitExceededException.Throttled",
    }
)
_BROKEN: Final = frozenset({"InternalServiceException", "OperationTimeoutException", "InternalFailure"})
_DENIED: Final = frozenset(
    {
        "AccessDeniedException",
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "IncompleteSignature",
        "MissingAuthenticationToken",
        "ExpiredTokenException",
        "SignatureDoesNotMatch",
    }
)
_PAGE: Final = 100
_MAX_PAGES: Final = 100_000
_WAIT_SECONDS: Final = 0.2
_MOST_WAIT_SECONDS: Final = 10.0


class GlueRefused(Exception):
    """Glue answered with an exception. Does not leave the catalog room."""

    def __init__(self, exception: str, message: str) -> None:
        super().__init__(f"{exception}: {message}")
        self.exception = exception
        self.message = message


class GlueClient:
    """A data catalog of an account in a region."""

    def __init__(
        self,
        endpoint: Origin,
        region: str,
        credentials: CredentialSource,
        *,
        catalog_id: str | None = None,
        max_retries: int = 10,
        http: HttpClient | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._endpoint = endpoint
        self._region = region
        self._credentials = credentials
        self._catalog_id = catalog_id
        self._max_retries = max_retries
        self._http = HttpClient() if http is None else http
        self._now = now
        self.sleep = sleep
        self.label = f"Glue in {region}" if catalog_id is None else f"Glue catalog {catalog_id} in {region}"

    def __repr__(self) -> str:
        return f"GlueClient({self.label!r})"

    def read(self, action: str, **arguments: Any) -> dict[str, Any]:
        """Ask for something that changes nothing; repeated after lost answers."""
        problem: Exception | None = None
        for retry in range(self._max_retries + 1):
            if retry > 0:
                self._wait(retry)
            try:
                return self.send(action, arguments)
            except (NotReached, AnswerMissing) as error:
                problem = error
        raise StorageError(f"Cannot reach {self.label}: {problem}") from problem

    def pages(self, action: str, field: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Yield the entries of all pages of an answer."""
        token: str | None = None
        for _ in range(_MAX_PAGES):
            more = {} if token is None else {"NextToken": token}
            answer = self.read(action, **arguments, MaxResults=_PAGE, **more)
            entries = answer.get(field)
            yield from (entry for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else ()
            following = answer.get("NextToken")
            if not isinstance(following, str) or following in ("", token):
                return
            token = following
        raise StorageError(f"Cannot list in {self.label}: it has more than {_MAX_PAGES} pages")

    def send(self, action: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request, again only if Glue says that it came too fast."""
        request = dict(arguments) if self._catalog_id is None else {"CatalogId": self._catalog_id, **arguments}
        body = msgspec.json.encode(request)
        retry = 0
        while True:
            try:
                return self._send(action, body)
            except GlueRefused as error:
                if error.exception not in _TOO_FAST or retry >= self._max_retries:
                    raise self._refusal(action, error) from error
            retry += 1
            self._wait(retry)

    def close(self) -> None:
        """Close the connections that wait."""
        self._http.close()

    def failure(self, verb: str, name: str, error: Exception) -> StorageError:
        """Return the error for a request that failed."""
        return StorageError(f"Cannot {verb} {name}: {self.label} said: {error}")

    def _send(self, action: str, body: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(body).hexdigest()
        headers = sign_v4(
            self._credentials(),
            method="POST",
            path="/",
            query="",
            headers={
                "host": self._endpoint.authority,
                "content-type": "application/x-amz-json-1.1",
                "x-amz-target": f"AWSGlue.{action}",
            },
            body_sha256=digest,
            region=self._region,
            now=self._now(),
            service="glue",
        )
        try:
            answer = self._http.fetch("POST", f"{self._endpoint}/", headers, body)
        except RequestNotSent as error:
            raise NotReached(str(error)) from error
        except AnswerTooLarge as error:
            raise StorageError(f"Cannot read the answer of {self.label}: {error}") from error
        except AnswerLost as error:
            raise AnswerMissing(str(error)) from error
        try:
            decoded = msgspec.json.decode(answer.body) if answer.body else {}
        except msgspec.DecodeError:
            decoded = None
        if answer.is_success and isinstance(decoded, dict):
            return decoded
        reply = decoded if isinstance(decoded, dict) else {}
        exception = str(reply.get("__type", "")).rpartition("#")[2].partition(":")[0]
        message = self._without_secrets(str(reply.get("message", reply.get("Message", ""))))[:500]
        if answer.status == 429:
            raise GlueRefused("ThrottlingException", message)
        if answer.is_success or exception in _BROKEN or exception == "" or answer.status >= 500:
            raise AnswerMissing(f"status {answer.status} {exception} {message}".strip())
        raise GlueRefused(exception, message)

    def _refusal(self, action: str, error: GlueRefused) -> Exception:
        if error.exception in _DENIED:
            return AccessDeniedError(
                f"Cannot use {self.label}: it refused {action}: {error}",
                hint="Check the credentials, and that they allow this in glue.id's account.",
            )
        return error

    def _without_secrets(self, text: str) -> str:
        for secret in self._credentials().secrets():
            text = text.replace(secret, "***") if len(secret) > 3 else text
        return text

    def _wait(self, retry: int) -> None:
        self.sleep(min(_WAIT_SECONDS * 2 ** (retry - 1), _MOST_WAIT_SECONDS))


def texts_of(value: Any) -> dict[str, str]:
    """Return the string entries of a map in an answer."""
    pairs = value.items() if isinstance(value, dict) else ()
    return {key: text for key, text in pairs if isinstance(key, str) and isinstance(text, str)}
