"""The properties that configure object stores and their credentials, with the names used by other implementations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from frazil.errors import InvalidPropertyError
from frazil.storage.hdfs_properties import TOKEN as HDFS_TOKEN

S3_ENDPOINT: Final = "s3.endpoint"
S3_REGION: Final = ("s3.region", "client.region")
S3_ACCESS_KEY_ID: Final = ("s3.access-key-id", "client.access-key-id")
S3_SECRET_ACCESS_KEY: Final = ("s3.secret-access-key", "client.secret-access-key")
S3_SESSION_TOKEN: Final = ("s3.session-token", "client.session-token")
S3_PATH_STYLE: Final = "s3.path-style-access"
S3_VIRTUAL: Final = "s3.force-virtual-addressing"
S3_ANONYMOUS: Final = "s3.anonymous"
S3_USE_ENVIRONMENT: Final = "s3.use-environment"
S3_ENCRYPTION: Final = "s3.sse.type"
S3_ENCRYPTION_KEY: Final = "s3.sse.key"
CONNECT_TIMEOUT: Final = "s3.connect-timeout"
REQUEST_TIMEOUT: Final = "s3.request-timeout"
GCS_TOKEN: Final = "gcs.oauth2.token"
GCS_ENDPOINT: Final = "gcs.service.host"
GCS_ANONYMOUS: Final = "gcs.no-auth"
AZURE_ACCOUNT: Final = "adls.account-name"
AZURE_KEY: Final = "adls.account-key"
AZURE_SAS: Final = "adls.sas-token"
AZURE_TOKEN: Final = "adls.token"
AZURE_ENDPOINT: Final = "adls.endpoint"
AZURE_ANONYMOUS: Final = "adls.anonymous"
AZURE_KEY_NAMES: Final = (AZURE_KEY, "adls.auth.shared-key.account.key")
AZURE_ACCOUNT_NAMES: Final = (AZURE_ACCOUNT, "adls.auth.shared-key.account.name")
ROLE_ARN: Final = ("client.assume-role.arn", "s3.role-arn", "client.role-arn")
ROLE_SESSION: Final = ("client.assume-role.session-name", "s3.role-session-name", "client.role-session-name")
ROLE_REGION: Final = "client.assume-role.region"
ROLE_EXTERNAL_ID: Final = "client.assume-role.external-id"
ROLE_SECONDS: Final = "client.assume-role.timeout-sec"
ROLE_ENDPOINT: Final = "client.assume-role.endpoint"
CREDENTIAL_ENDPOINTS: Final = "credentials.endpoints"
"""Endpoints named by a service or a location that the user trusts with their own credentials."""
PROXY: Final = ("s3.proxy-uri", "http-client.proxy-endpoint")

ROLES: Final = frozenset({*ROLE_ARN, *ROLE_SESSION, ROLE_REGION, ROLE_EXTERNAL_ID, ROLE_SECONDS, ROLE_ENDPOINT})
"""Only the user may set these: a service must not decide to whom the user's credentials are shown."""
SECRETS: Final = frozenset(
    {
        *S3_SECRET_ACCESS_KEY,
        *S3_SESSION_TOKEN,
        GCS_TOKEN,
        *AZURE_KEY_NAMES,
        AZURE_SAS,
        AZURE_TOKEN,
        ROLE_EXTERNAL_ID,
        HDFS_TOKEN,
        *PROXY,
    }
)
"""The properties whose values grant access."""

NOT_BUILT: Final = {
    "s3.signer": "signing by a server",
    "s3.remote-signing-enabled": "signing by a server",
    "s3.acceleration-enabled": "transfer acceleration",
    "s3.use-arn-region-enabled": "ARNs of buckets",
}
"""Properties that would change authentication or the server; ignoring them would be worse than refusing them."""
S3_KEYS_END: Final = "s3.session-token-expires-at-ms"
KEYS_OF: Final = "frazil.keys-of"
"""The owner of vended credentials, so that later ones replace them."""
PROPERTIES: Final = frozenset(
    {
        S3_ENDPOINT,
        *S3_REGION,
        *S3_ACCESS_KEY_ID,
        *S3_SECRET_ACCESS_KEY,
        *S3_SESSION_TOKEN,
        S3_PATH_STYLE,
        S3_VIRTUAL,
        S3_ANONYMOUS,
        S3_USE_ENVIRONMENT,
        S3_ENCRYPTION,
        S3_ENCRYPTION_KEY,
        GCS_TOKEN,
        GCS_ENDPOINT,
        GCS_ANONYMOUS,
        *AZURE_ACCOUNT_NAMES,
        *AZURE_KEY_NAMES,
        AZURE_SAS,
        AZURE_TOKEN,
        AZURE_ENDPOINT,
        AZURE_ANONYMOUS,
        *ROLES,
        *PROXY,
        CONNECT_TIMEOUT,
        REQUEST_TIMEOUT,
        *NOT_BUILT,
    }
)
"""All supported properties."""


def is_known(name: str) -> bool:
    """Return whether a property is supported; those for one Azure account end with its name."""
    return name in PROPERTIES or name.startswith(f"{AZURE_SAS}.")


def is_secret(name: str) -> bool:
    """Return whether a property's value grants access."""
    return name in SECRETS or name.startswith(f"{AZURE_SAS}.")


def first_of(properties: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """Return the first of several properties that is set, or None."""
    return next((properties[name] for name in names if name in properties), None)


def is_true(properties: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """Return whether a property is true."""
    text = properties.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise InvalidPropertyError(f"Cannot use the property {name}: its value {text!r} is neither true nor false")
    return text.lower() == "true"
