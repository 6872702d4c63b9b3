"""Credentials of a role of Amazon's, asked for with other credentials, and asked for anew before they end.

botocore, in the extra `s3`, speaks to the token service. `client.assume-role.arn` leads here, and `frazil serve`
where it gives clients credentials of a role.
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
    """Credentials that end."""

    keys: S3Credentials = field(repr=False)
    ends_ms: int


@dataclass(frozen=True, slots=True)
class Role:
    """A role, and how it is asked for."""

    arn: str
    region: str = "us-east-1"
    session: str = "frazil"
    seconds: int = _SECONDS
    external_id: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    policy: str | None = None


def role_of(properties: Mapping[str, str]) -> Role | None:
    """Return the role that properties ask for, or None."""

    def first(names: tuple[str, ...]) -> str | None:
        return next((properties[name] for name in names if name in properties), None)

    arn = first(ROLE_ARN)
    if arn is None:
        return None
    seconds = properties.get(ROLE_SECONDS, str(_SECONDS))
    if not (seconds.isascii() and seconds.isdigit() and 900 <= int(seconds) <= 43_200):
        raise InvalidPropertyError(f"Cannot use the property {ROLE_SECONDS}: it is a number from 900 to 43200")
    return Role(
        arn,
        first((ROLE_REGION, *S3_REGION)) or "us-east-1",
        first(ROLE_SESSION) or "frazil",
        int(seconds),
        properties.get(ROLE_EXTERNAL_ID),
        properties.get(ROLE_ENDPOINT),
    )


def assume_role(own: S3Credentials, role: Role) -> SessionKeys:
    """Ask Amazon's token service for credentials of a role."""
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
        aws_access_key_id=own.access_key_id,
        aws_secret_access_key=own.secret_access_key,
        aws_session_token=own.session_token,
    )
    more = {"Policy": role.policy, "ExternalId": role.external_id}
    try:
        given = client.assume_role(
            RoleArn=role.arn,
            RoleSessionName=role.session,
            DurationSeconds=role.seconds,
            **{name: value for name, value in more.items() if value is not None},
        )["Credentials"]
    except Exception as error:
        # What the service says may hold what it was sent.
        raise StorageError(f"Cannot use the role {role.arn}: {type(error).__name__}") from None
    ends_ms = int(given["Expiration"].timestamp() * 1000)
    return SessionKeys(S3Credentials(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"]), ends_ms)


class RoleCredentials:
    """A source of a role's credentials. Several threads may ask; nothing of it is pickled."""

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
        raise TypeError("credentials of a role are not pickled, since they are secret")

    def __call__(self) -> S3Credentials:
        """Return the credentials as they are now."""
        with self._lock:
            if self._found is None or self._now_ms() >= self._found.ends_ms - _RENEW_BEFORE_MS:
                self._found = assume_role(self._own(), self._role)
            return self._found.keys
