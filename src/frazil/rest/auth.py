"""Who asks a catalog service: the header of each request, by token, password, credentials or a caller's function.

    none      nothing
    basic     a user and a password
    oauth2    a bearer token, given or fetched (`rest/oauth2.py`)
    sigv4     a signature by credentials of Amazon, for Glue, S3 Tables and gateways; a token may go along
    google    a token of this machine's Google account, by the package google-auth
    a callable of the caller's, asked for each request: headers, or the text of a bearer token

No secret is shown, logged or pickled; a server's text is shown with every secret taken out.
"""

from __future__ import annotations

import base64
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final, NoReturn, TypeAlias
from urllib.parse import urlsplit

from frazil.errors import AccessDeniedError, InvalidPropertyError, InvalidRequestError, UnsupportedError
from frazil.rest import settings as names
from frazil.rest.settings import Settings
from frazil.storage.environment_credentials import EnvironmentCredentials
from frazil.storage.object_properties import S3_REGION
from frazil.storage.sign_v4 import CredentialSource, S3Credentials, sign_v4

AuthFunction: TypeAlias = Callable[[], "str | Mapping[str, str]"]
"""Is asked at each request: a bearer token, or headers."""
_MIN_SECRET: Final = 4
_DEFAULT_SERVICE: Final = "execute-api"


class Auth(ABC):
    """Authenticates requests to a service."""

    @abstractmethod
    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers of a request with those that authenticate it."""

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Get another token after a request with these headers was refused; return whether there is one."""
        return False

    def secrets(self) -> tuple[str, ...]:
        """Return every text that must not be shown."""
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is not pickled, since it holds secrets")


class NoAuth(Auth):
    """Sends no credentials."""

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers as they are."""
        return dict(headers)


class BearerAuth(Auth):
    """A token that stays the same."""

    def __init__(self, token: str) -> None:
        self._token = checked_token(token)

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers with the token."""
        return {**headers, "authorization": f"Bearer {self._token}"}

    def secrets(self) -> tuple[str, ...]:
        """Return the token."""
        return (self._token,)


class TableAuth(Auth):
    """The token that a service gave for one table; once it is refused, whoever asked for the table."""

    def __init__(self, token: str, user: Auth) -> None:
        self._token: str | None = checked_token(token)
        self._user = user

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers with the table's token, as long as it is good."""
        token = self._token
        if token is None:
            return self._user.headers(method, url, headers, body)
        return {**headers, "authorization": f"Bearer {token}"}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Ask as the user from now on."""
        if self._token is None:
            return self._user.renew(refused)
        self._token = None
        return True

    def secrets(self) -> tuple[str, ...]:
        """Return both tokens."""
        return (*self._user.secrets(), *(() if self._token is None else (self._token,)))


class BasicAuth(Auth):
    """A user and a password."""

    def __init__(self, user: str, password: str) -> None:
        if ":" in user:
            raise InvalidPropertyError(f"Cannot use {names.BASIC_USER}: a user's name has no colon")
        self._password = password
        self._text = base64.b64encode(f"{user}:{password}".encode()).decode()

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers with user and password."""
        return {**headers, "authorization": f"Basic {self._text}"}

    def secrets(self) -> tuple[str, ...]:
        """Return the password."""
        return self._password, self._text


class CallerAuth(Auth):
    """Whatever a caller's function says."""

    def __init__(self, ask: AuthFunction) -> None:
        self._ask = ask
        self._last: tuple[str, ...] = ()

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers with those of the function, or with its token."""
        found = self._ask()
        given = {"authorization": f"Bearer {checked_token(found)}"} if isinstance(found, str) else dict(found)
        if not all(isinstance(name, str) and isinstance(value, str) for name, value in given.items()):
            raise InvalidRequestError(
                "Cannot ask the catalog service: the function for auth gave headers that are no text"
            )
        lower = {name.lower(): value for name, value in given.items()}
        self._last = (*lower.values(), *(value.rpartition(" ")[2] for value in lower.values()))
        return {**headers, **lower}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Say yes: the function is asked again."""
        return True

    def secrets(self) -> tuple[str, ...]:
        """Return what the function said last."""
        return self._last


class SigV4Auth(Auth):
    """A signature by credentials of Amazon; what another one says of who asks goes along, under another name."""

    def __init__(
        self,
        keys: CredentialSource,
        *,
        region: str,
        service: str,
        inner: Auth | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._keys = keys
        self._region = region
        self._service = service
        self._inner = inner
        self._now = now

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers with a signature of all of them."""
        parts = urlsplit(url)
        given = dict(headers) if self._inner is None else self._inner.headers(method, url, headers, body)
        if "authorization" in given:
            given["original-authorization"] = given.pop("authorization")
        query = "&".join(sorted(parts.query.split("&"))) if parts.query else ""
        return sign_v4(
            self._keys(),
            method=method,
            path=parts.path or "/",
            query=query,
            headers={**given, "host": parts.netloc.rpartition("@")[2]},
            body_sha256=hashlib.sha256(body).hexdigest(),
            region=self._region,
            now=self._now(),
            service=self._service,
        )

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Have the token that goes along renewed."""
        return self._inner is not None and self._inner.renew(refused)

    def secrets(self) -> tuple[str, ...]:
        """Return the credentials."""
        return (*self._keys().secrets(), *(() if self._inner is None else self._inner.secrets()))


class GoogleAuth(Auth):
    """A token of this machine's Google account."""

    def __init__(self, scopes: tuple[str, ...] = ("https://www.googleapis.com/auth/cloud-platform",)) -> None:
        try:
            google_auth: Any = import_module("google.auth")
            self._requests: Any = import_module("google.auth.transport.urllib3")
        except ImportError as error:
            raise UnsupportedError(
                "Cannot use a Google account: the package google-auth is not installed",
                hint="pip install 'frazil[google]', or give a token or a function that makes one.",
            ) from error
        self._http = import_module("urllib3").PoolManager()
        try:
            self._found: Any = google_auth.default(scopes=scopes)[0]
        except Exception as error:
            # A file's content may be in the text.
            raise AccessDeniedError(
                f"Cannot use a Google account: this machine has none ({type(error).__name__})",
                hint="Set GOOGLE_APPLICATION_CREDENTIALS to the file of an account, or give a token.",
            ) from None

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers with a token that is still good."""
        if not self._found.valid:
            self._refresh()
        return {**headers, "authorization": f"Bearer {self._found.token}"}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Fetch another token."""
        self._refresh()
        return True

    def _refresh(self) -> None:
        try:
            self._found.refresh(self._requests.Request(self._http))
        except Exception as error:
            raise AccessDeniedError(
                f"Cannot use the Google account: no token was given for it ({type(error).__name__})"
            ) from None

    def secrets(self) -> tuple[str, ...]:
        """Return the token."""
        return (self._found.token or "",)


def checked_token(token: str) -> str:
    """Refuse a token that cannot stand in a header."""
    if not token.isascii() or not token.isprintable() or token == "" or " " in token:
        raise InvalidPropertyError("Cannot use the token: it is empty or has odd characters")
    return token


def sigv4_auth(settings: Settings, inner: Auth | None) -> SigV4Auth:
    """Return the signature that properties ask for: with credentials of theirs, of S3's, or of this machine."""
    region = next((settings[name] for name in (names.SIGNING_REGION, *S3_REGION) if name in settings), None)
    if region is None:
        raise InvalidPropertyError(f"Cannot sign requests: there is no region; set {names.SIGNING_REGION}")
    key_id = settings.get(names.SIGNING_KEY_ID, settings.get("s3.access-key-id"))
    secret = settings.get(names.SIGNING_SECRET, settings.get("s3.secret-access-key"))
    keys: CredentialSource = EnvironmentCredentials()
    if key_id is not None and secret is not None:
        found = S3Credentials(key_id, secret, settings.get(names.SIGNING_SESSION, settings.get("s3.session-token")))
        keys = _Fixed(found)
    return SigV4Auth(keys, region=region, service=settings.get(names.SIGNING_NAME, _DEFAULT_SERVICE), inner=inner)


class _Fixed:
    """Credentials that stay the same."""

    __slots__ = ("_keys",)

    def __init__(self, keys: S3Credentials) -> None:
        self._keys = keys

    def __call__(self) -> S3Credentials:
        return self._keys


def hide(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text with every secret taken out."""
    for secret in secrets:
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, "***")
    return text
