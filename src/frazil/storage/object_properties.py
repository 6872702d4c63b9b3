"""The properties that say which object store, where, and as whom, by the names other implementations gave them."""

from __future__ import annotations

from typing import Final

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

SECRETS: Final = frozenset({*S3_SECRET_ACCESS_KEY, *S3_SESSION_TOKEN, GCS_TOKEN})
"""The properties whose values let whoever reads them in."""

NOT_BUILT: Final = {
    "s3.signer": "signing by a server",
    "s3.remote-signing-enabled": "signing by a server",
    "s3.role-arn": "assuming a role",
    "client.role-arn": "assuming a role",
    "client.assume-role.arn": "assuming a role",
    "s3.proxy-uri": "a proxy",
    "s3.acceleration-enabled": "transfer acceleration",
    "s3.use-arn-region-enabled": "ARNs of buckets",
}
"""Properties that change who asks or whom; leaving them out of account would be worse than refusing."""
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
        CONNECT_TIMEOUT,
        REQUEST_TIMEOUT,
        *NOT_BUILT,
    }
)
"""Every property that is looked at."""
