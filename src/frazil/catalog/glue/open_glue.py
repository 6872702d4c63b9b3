"""Open AWS Glue's data catalog: which region and account, and as whom.

Properties have the names that Iceberg Java and PyIceberg gave them. Credentials are those of `glue.*`, else of
`client.*`, else of `s3.*` if no other S3 endpoint is set: credentials of another store are not sent to Amazon.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from frazil.catalog.glue.glue_client import GlueClient
from frazil.catalog.glue.glue_pointers import GlueCatalog, GluePointers
from frazil.errors import InvalidPropertyError, InvalidRequestError, UnsupportedError
from frazil.storage.assume_role import RoleCredentials, role_of
from frazil.storage.base import Storage
from frazil.storage.environment_credentials import EnvironmentCredentials
from frazil.storage.object_properties import S3_ENDPOINT, S3_USE_ENVIRONMENT, is_true
from frazil.storage.origin import Origin, check_region, parse_endpoint
from frazil.storage.sign_v4 import CredentialSource, S3Credentials

ENDPOINT: Final = "glue.endpoint"
CATALOG_ID: Final = "glue.id"
REGION: Final = ("glue.region", "client.region", "s3.region")
KEY_ID: Final = "glue.access-key-id"
SECRET: Final = "glue.secret-access-key"
SESSION_TOKEN: Final = "glue.session-token"
SKIP_ARCHIVE: Final = "glue.skip-archive"
MAX_RETRIES: Final = "glue.max-retries"
_NOT_BUILT: Final = {
    "glue.profile-name": "choosing a profile by name; s3.use-environment uses this machine's own",
    "glue.lakeformation-enabled": "Lake Formation",
}
_IGNORED: Final = frozenset({"glue.skip-name-validation", "glue.retry-mode", "glue.account-id"})
PROPERTIES: Final = frozenset(
    {
        ENDPOINT,
        CATALOG_ID,
        "glue.region",
        KEY_ID,
        SECRET,
        SESSION_TOKEN,
        SKIP_ARCHIVE,
        MAX_RETRIES,
        *_NOT_BUILT,
        *_IGNORED,
    }
)
"""Every property of a connection to Glue, beside those of storages."""
SECRETS: Final = frozenset({SECRET, SESSION_TOKEN})
"""Properties with secret values."""


def open_glue(
    name: str,
    warehouse: str,
    storage: Storage,
    properties: Mapping[str, str],
    *,
    delete_roots: tuple[str, ...] = (),
) -> GlueCatalog:
    """Open the data catalog of a region."""
    for unbuilt, what in _NOT_BUILT.items():
        if properties.get(unbuilt, "false").lower() != "false":
            raise UnsupportedError(f"Cannot use the property {unbuilt}: {what} is not built")
    region = next((properties[candidate] for candidate in REGION if candidate in properties), None)
    if region is None:
        raise InvalidRequestError("Cannot connect to Glue: there is no region", hint="Set client.region.")
    check_region(region)
    tail = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    own = properties.get(ENDPOINT)
    endpoint = Origin(f"glue.{region}.{tail}") if own is None else parse_endpoint(ENDPOINT, own)
    retries = properties.get(MAX_RETRIES, "10")
    if not (retries.isascii() and retries.isdigit() and len(retries) < 3):
        raise InvalidPropertyError(f"Cannot use the property {MAX_RETRIES}: {retries[:40]!r} is not a number below 100")
    client = GlueClient(
        endpoint,
        region,
        _credentials(properties),
        catalog_id=properties.get(CATALOG_ID),
        max_retries=int(retries),
    )
    pointers = GluePointers(client, warehouse=warehouse, skips_archive=is_true(properties, SKIP_ARCHIVE, default=True))
    return GlueCatalog(name, warehouse, pointers, storage, delete_roots=delete_roots)


def _credentials(properties: Mapping[str, str]) -> CredentialSource:
    if KEY_ID in properties or SECRET in properties:
        # No role is assumed with credentials for Glue itself.
        return _pair(properties, "glue") or _missing()
    source = _pair(properties, "client")
    if source is None and (S3_ENDPOINT not in properties or ENDPOINT in properties):
        source = _pair(properties, "s3")
    if source is None and is_true(properties, S3_USE_ENVIRONMENT):
        source = EnvironmentCredentials()
    if source is None:
        source = _missing()
    role = role_of(properties)
    return source if role is None else RoleCredentials(source, role)


def _pair(properties: Mapping[str, str], prefix: str) -> CredentialSource | None:
    key_id, secret = properties.get(f"{prefix}.access-key-id"), properties.get(f"{prefix}.secret-access-key")
    if key_id is None or secret is None:
        return None
    source = S3Credentials(key_id, secret, properties.get(f"{prefix}.session-token"))
    return lambda: source


def _missing() -> CredentialSource:
    raise InvalidRequestError(
        "Cannot connect to Glue: there are no credentials",
        hint="Set client.access-key-id and client.secret-access-key, glue.access-key-id and glue.secret-access-key, or "
        f"{S3_USE_ENVIRONMENT} for those of this machine's profile or role.",
    )
