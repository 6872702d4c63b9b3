"""The Hadoop file system that Spark needs for a lake in an object store: its package, and settings for its keys.

Spark ships Hadoop without what reads S3. `hadoop-aws` of the very version that Spark ships reads it; another one does
not load. Settings are for the lake's bucket alone, and Spark shows nobody the keys among them
(`spark.redaction.regex`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.find_spark_home import _find_spark_home

from frazil.storage.object_properties import (
    S3_ACCESS_KEY_ID,
    S3_ANONYMOUS,
    S3_ENDPOINT,
    S3_PATH_STYLE,
    S3_REGION,
    S3_SECRET_ACCESS_KEY,
    S3_SESSION_TOKEN,
    S3_VIRTUAL,
)

PACKAGES = "spark.jars.packages"
_S3 = ("s3", "s3a", "s3n")
_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_PROVIDERS = "org.apache.hadoop.fs.s3a."
_JAR = re.compile(r"hadoop-client-(?:api|runtime)-(\d+(?:\.\d+)*)\.jar")


def hadoop_version() -> str | None:
    """Return which Hadoop this Spark ships; None where it brings none of its own."""
    for one in sorted(Path(_find_spark_home(), "jars").glob("hadoop-client-*.jar")):
        found = _JAR.fullmatch(one.name)
        if found is not None:
            return found[1]
    return None


def s3_package() -> str | None:
    """Return the name of the package with which this Spark reads S3."""
    version = hadoop_version()
    return None if version is None else f"org.apache.hadoop:hadoop-aws:{version}"


def package_of(place: str) -> str | None:
    """Return the package with which Spark reads files of a place; None where it needs none, or none is known."""
    return s3_package() if urlsplit(place).scheme in _S3 else None


def settings_of(place: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings for files of a place: which class reads them, where, and as whom."""
    parts = urlsplit(place)
    if parts.scheme not in _S3:
        return {}
    found = {"spark.hadoop.fs.s3.impl": _CLASS, "spark.hadoop.fs.s3a.impl": _CLASS}
    prefix = f"spark.hadoop.fs.s3a.bucket.{parts.netloc}."
    endpoint = properties.get(S3_ENDPOINT)
    key, secret, token = (_first(properties, one) for one in (S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, S3_SESSION_TOKEN))
    own: dict[str, str | None] = {
        "endpoint": endpoint,
        "endpoint.region": _first(properties, S3_REGION) or ("us-east-1" if endpoint else None),
        "access.key": key,
        "secret.key": secret,
        "session.token": token,
    }
    if endpoint is not None:
        own["connection.ssl.enabled"] = str(not endpoint.startswith("http:")).lower()
        own["path.style.access"] = str(properties.get(S3_VIRTUAL, "false").lower() != "true").lower()
    if S3_PATH_STYLE in properties:
        own["path.style.access"] = properties[S3_PATH_STYLE].lower()
    if properties.get(S3_ANONYMOUS, "false").lower() == "true":
        own["aws.credentials.provider"] = f"{_PROVIDERS}AnonymousAWSCredentialsProvider"
    elif key is not None:
        kind = "SimpleAWSCredentialsProvider" if token is None else "TemporaryAWSCredentialsProvider"
        own["aws.credentials.provider"] = f"{_PROVIDERS}{kind}"
    return found | {prefix + name: value for name, value in own.items() if value is not None}


def missing_line(place: str) -> str:
    """Return the line that a session lacks to read files of a place."""
    package = package_of(place)
    if package is None:
        return f"Give Spark a Hadoop file system for {urlsplit(place).scheme}: files."
    return f'Start it with .config("{PACKAGES}", "{package}"), or with frazil.session(…), which does.'


def _first(properties: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((properties[one] for one in names if one in properties), None)
