"""S3 credentials of this machine: from environment variables, a profile, single sign-on, or the machine's role.

botocore, in the extra `s3`, finds them, since there are many sources and some expire. They are used for
`s3.use-environment`, and to sign requests to a catalog service with this machine's credentials (`rest/auth.py`). They
are not pickled: another machine finds its own.
"""

from __future__ import annotations

from typing import Any

from frazil.errors import StorageError, UnsupportedError
from frazil.storage.sign_v4 import S3Credentials


class EnvironmentCredentials:
    """A source of credentials that are found at first use, and renewed as they expire."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: Any = None

    def __reduce__(self) -> tuple[object, ...]:
        return EnvironmentCredentials, ()

    def __call__(self) -> S3Credentials:
        """Return valid credentials."""
        botocore_session = _load_botocore()
        try:
            if self._found is None:
                self._found = botocore_session.Session().get_credentials()
            keys = None if self._found is None else self._found.get_frozen_credentials()
        except Exception as error:
            # Every source has its own errors; their text may contain a file's content.
            raise StorageError(f"Cannot find credentials for S3 on this machine: {type(error).__name__}") from None
        if keys is None or not keys.access_key or not keys.secret_key:
            raise StorageError(
                "Cannot find credentials for S3 on this machine: no environment variable, profile or role provides any",
                hint="Set s3.access-key-id and s3.secret-access-key, or set up a profile or a role.",
            )
        return S3Credentials(keys.access_key, keys.secret_key, keys.token or None)


def _load_botocore() -> Any:
    try:
        import botocore.session
    except ImportError as error:
        raise UnsupportedError(
            "Cannot use the credentials of this machine for S3: botocore is not installed",
            hint="Install it with: pip install 'frazil[s3]'; or set s3.access-key-id and s3.secret-access-key.",
        ) from error
    return botocore.session
