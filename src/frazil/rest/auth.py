"""Authentication to a catalog service: the headers of each request, by token, password, credentials or a function.

    none      nothing
    basic     a user and a password
    oauth2    a bearer token, configured or fetched (`rest/oauth2.py`)
    sigv4     a signature with AWS credentials, for Glue, S3 Tables and gateways; optionally with a token
    google    a token of this machine's Google account, by the package google-auth
    a function of the caller, called for each request: headers, or a bearer token

No secret is shown, logged or pickled; a server's text is shown with all secrets removed.
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
"""Called for each request; returns a bearer token or headers."""
_MIN_SECRET: Final = 4
_DEFAULT_SERVICE: Final = "execute-api"


class Auth(ABC):
    """Authenticates requests to a service."""

    @abstractmethod
    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Add the headers that authenticate a request."""

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Renew the token after a request with these headers was refused; return whether there is a new one."""
        return False

    def secrets(self) -> tuple[str, ...]:
        """Return all texts that must not be shown."""
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be pickled, since it holds secrets")


class NoAuth(Auth):
    """Sends no credentials."""

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers unchanged."""
        return dict(headers)


class BearerAuth(Auth):
    """A fixed token."""

    def __init__(self, token: str) -> None:
        self._token = checked_token(token)

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Add the token to the headers."""
        return {**headers, "authorization": f"Bearer {self._token}"}

    def secrets(self) -> tuple[str, ...]:
        """Return the token."""
        return (self._token,)


class TableAuth(Auth):
    """The token that a service issued for one table; after a refusal, the user's authentication."""

    def __init__(self, token: str, user: Auth) -> None:
        self._token: str | None = checked_token(token)
        self._user = user

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Add the table's token to the headers, until it is refused."""
        token = self._token
        if token is None:
            return self._user.headers(method, url, headers, body)
        return {**headers, "authorization": f"Bearer {token}"}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Authenticate as the user from now on."""
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
            raise InvalidPropertyError(f"Cannot use {names.BASIC_USER}: a user name must not contain a colon")
        self._password = password
        self._text = base64.b64encode(f"{user}:{password}".encode()).decode()

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Add user and password to the headers."""
        return {**headers, "authorization": f"Basic {self._text}"}

    def secrets(self) -> tuple[str, ...]:
        """Return the password."""
        return self._password, self._text


class CallerAuth(Auth):
    """A function passed by the caller."""

    def __init__(self, ask: AuthFunction) -> None:
        self._ask = ask
        self._last: tuple[str, ...] = ()

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Add the headers or the token that the function returns."""
        result = self._ask()
        auth_headers = {"authorization": f"Bearer {checked_token(result)}"} if isinstance(result, str) else dict(result)
        if not all(isinstance(name, str) and isinstance(value, str) for name, value in auth_headers.items()):
            raise InvalidRequestError(
                "Cannot ask the catalog service: the auth function returned headers that are not text"
            )
        lower = {name.lower(): value for name, value in auth_headers.items()}
        self._last = (*lower.values(), *(value.rpartition(" ")[2] for value in lower.values()))
        return {**headers, **lower}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Return True: the function is called again."""
        return True

    def secrets(self) -> tuple[str, ...]:
        """Return the function's last result."""
        return self._last


class SigV4Auth(Auth):
    """A signature with AWS credentials; the authentication of another scheme is sent under another header."""

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
        """Sign the headers."""
        parts = urlsplit(url)
        signed_headers = dict(headers) if self._inner is None else self._inner.headers(method, url, headers, body)
        if "authorization" in signed_headers:
            signed_headers["original-authorization"] = signed_headers.pop("authorization")
        query = "&".join(sorted(parts.query.split("&"))) if parts.query else ""
        return sign_v4(
            self._keys(),
            method=method,
            path=parts.path or "/",
            query=query,
            headers={**signed_headers, "host": parts.netloc.rpartition("@")[2]},
            body_sha256=hashlib.sha256(body).hexdigest(),
            region=self._region,
            now=self._now(),
            service=self._service,
        )

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Renew the inner scheme's token."""
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
                hint="pip install 'frazil[google]', or configure a token or an auth function.",
            ) from error
        self._http = import_module("urllib3").PoolManager()
        try:
            self._found: Any = google_auth.default(scopes=scopes)[0]
        except Exception as error:
            # The message may contain a file's content.
            raise AccessDeniedError(
                f"Cannot use a Google account: this machine has no credentials ({type(error).__name__})",
                hint="Set GOOGLE_APPLICATION_CREDENTIALS to the file of an account, or configure a token.",
            ) from None

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Add a valid token to the headers."""
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
                f"Cannot use the Google account: no token was issued for it ({type(error).__name__})"
            ) from None

    def secrets(self) -> tuple[str, ...]:
        """Return the token."""
        return (self._found.token or "",)


def checked_token(token: str) -> str:
    """Refuse a token that cannot be a header value."""
    if not token.isascii() or not token.isprintable() or token == "" or " " in token:
        raise InvalidPropertyError("Cannot use the token: it is empty or contains invalid characters")
    return token


def sigv4_auth(settings: Settings, inner: Auth | None) -> SigV4Auth:
    """Return the signature scheme of properties: with their credentials, those of S3, or those of this machine."""
    region = next((settings[name] for name in (names.SIGNING_REGION, *S3_REGION) if name in settings), None)
    if region is None:
        raise InvalidPropertyError(f"Cannot sign requests: no region is configured; set {names.SIGNING_REGION}")
    key_id = settings.get(names.SIGNING_KEY_ID, settings.get("s3.access-key-id"))
    secret = settings.get(names.SIGNING_SECRET, settings.get("s3.secret-access-key"))
    keys: CredentialSource = EnvironmentCredentials()
    if key_id is not None and secret is not None:
        credentials = S3Credentials(
            key_id, secret, settings.get(names.SIGNING_SESSION, settings.get("s3.session-token"))
        )
        keys = _Fixed(credentials)
    return SigV4Auth(keys, region=region, service=settings.get(names.SIGNING_NAME, _DEFAULT_SERVICE), inner=inner)


class _Fixed:
    """Fixed credentials."""

    __slots__ = ("_keys",)

    def __init__(self, keys: S3Credentials) -> None:
        self._keys = keys

    def __call__(self) -> S3Credentials:
        return self._keys


def hide(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text with all secrets removed."""
    for secret in secrets:
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, "***")
    return text
