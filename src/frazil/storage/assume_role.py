"""Credentials of an AWS role, requested with other credentials and renewed before they expire.

botocore, in the extra `s3`, calls the token service. It is used for `client.assume-role.arn`, and by `frazil serve` to
vend credentials of a role to clients.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from frazil.errors import InvalidPropertyError, StorageError, UnsupportedError
from frazil.storage.object_properties import (
    ROLE_ARN,
    ROLE_ENDPOINT,
    ROLE_EXTERNAL_ID,
    ROLE_REGION,
    ROLE_SECONDS,
    ROLE_SESSION,
    S3_REGION,
)
from frazil.storage.sign_v4 import CredentialSource, S3Credentials

_SECONDS: Final = 3600
_RENEW_BEFORE_MS: Final = 300_000


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """Temporary credentials."""

    keys: S3Credentials = field(repr=False)
    ends_ms: int


@dataclass(frozen=True, slots=True)
class Role:
    """A role, and the parameters for assuming it."""

    arn: str
    region: str = "us-east-1"
    session: str = "frazil"
    seconds: int = _SECONDS
    external_id: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    policy: str | None = None


def role_of(properties: Mapping[str, str]) -> Role | None:
    """Return the role that properties configure, or None."""

    def first(names: tuple[str, ...]) -> str | None:
        return next((properties[name] for name in names if name in properties), None)

    arn = first(ROLE_ARN)
    if arn is None:
        return None
    seconds = properties.get(ROLE_SECONDS, str(_SECONDS))
    if not (seconds.isascii() and seconds.isdigit() and 900 <= int(seconds) <= 43_200):
        raise InvalidPropertyError(f"Cannot use the property {ROLE_SECONDS}: it must be a number from 900 to 43200")
    return Role(
        arn,
        first((ROLE_REGION, *S3_REGION)) or "us-east-1",
        first(ROLE_SESSION) or "frazil",
        int(seconds),
        properties.get(ROLE_EXTERNAL_ID),
        properties.get(ROLE_ENDPOINT),
    )


def assume_role(caller: S3Credentials, role: Role) -> SessionKeys:
    """Request credentials of a role from the AWS token service."""
    try:
        session: Any = import_module("botocore.session").Session()
    except ImportError as error:
        raise UnsupportedError(
            f"Cannot use the role {role.arn}: botocore is not installed", hint="pip install 'frazil[s3]'."
        ) from error
    client = session.create_client(
        "sts",
        region_name=role.region,
        endpoint_url=role.endpoint,
        aws_access_key_id=caller.access_key_id,
        aws_secret_access_key=caller.secret_access_key,
        aws_session_token=caller.session_token,
    )
    more = {"Policy": role.policy, "ExternalId": role.external_id}
    try:
        response = client.assume_role(
            RoleArn=role.arn,
            RoleSessionName=role.session,
            DurationSeconds=role.seconds,
            **{name: value for name, value in more.items() if value is not None},
        )["Credentials"]
    except Exception as error:
        # The service's message may repeat the request, with its secrets.
        raise StorageError(f"Cannot use the role {role.arn}: {type(error).__name__}") from None
    ends_ms = int(response["Expiration"].timestamp() * 1000)
    return SessionKeys(
        S3Credentials(response["AccessKeyId"], response["SecretAccessKey"], response["SessionToken"]), ends_ms
    )


class RoleCredentials:
    """A source of a role's credentials. Thread-safe; cannot be pickled."""

    __slots__ = ("_found", "_lock", "_now_ms", "_own", "_role")

    def __init__(
        self,
        own: CredentialSource,
        role: Role,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._own = own
        self._role = role
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._found: SessionKeys | None = None

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("credentials of a role cannot be pickled, since they are secret")

    def __call__(self) -> S3Credentials:
        """Return valid credentials, renewed if necessary."""
        with self._lock:
            if self._found is None or self._now_ms() >= self._found.ends_ms - _RENEW_BEFORE_MS:
                self._found = assume_role(self._own(), self._role)
            return self._found.keys
