"""The Hadoop file system that Spark needs for a lake in an object store: its package, settings and credentials.

Spark ships Hadoop without its clients for S3 and Azure, `hadoop-aws` and `hadoop-azure`; only packages of the same
version load. Settings apply to the lake's bucket or account alone, and Spark redacts the credentials among them
(`spark.redaction.regex`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from frazil.catalog.base import NO_PLACE
from frazil.errors import InvalidRequestError
from frazil.spark.jvm.private_names import is_classic
from frazil.spark.jvm.vended_keys import CLASS, END_SETTING, NAME_SETTING, Keys, deliver_keys
from frazil.storage.base import Storage
from frazil.storage.choose import reach_of
from frazil.storage.object_properties import (
    AZURE_KEY_NAMES,
    AZURE_SAS,
    KEYS_OF,
    S3_ACCESS_KEY_ID,
    S3_ANONYMOUS,
    S3_ENDPOINT,
    S3_KEYS_END,
    S3_PATH_STYLE,
    S3_REGION,
    S3_SECRET_ACCESS_KEY,
    S3_SESSION_TOKEN,
    S3_VIRTUAL,
    first_of,
)
from frazil.storage.store_accounts import AZURE, S3, StoreAccount, Stores, store_of

PACKAGES = "spark.jars.packages"
_JARS = "spark.jars"
_S3 = ("s3", "s3a", "s3n")
_AZURE = ("abfs", "abfss")
_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_PER_BUCKET = "fs.s3a.bucket."
_PROVIDERS = "org.apache.hadoop.fs.s3a."
_HIDDEN = (
    "delegation.token.binding", "encryption.algorithm", "encryption.key", "security.credential.provider.path",
    "server-side-encryption-algorithm", "server-side-encryption.key",
)  # fmt: skip
"""Settings that make Hadoop send keys of the session, whatever the credentials of a bucket are."""
_KEY_STORES = "hadoop.security.credential.provider.path"
_NO_KEY_STORE = ","
"""A list without an entry; Hadoop's S3 file system takes an empty text for a path and does not start."""
_OTHER_SETTING = re.compile(r"\.assumed\.role\.")
"""In the name of a bucket this makes the setting one of another bucket; `${…}` in a value stands for a setting."""
_JAR = re.compile(r"hadoop-client-(?:api|runtime)-(\d+(?:\.\d+)*)\.jar")

_reached: WeakKeyDictionary[SparkContext, dict[str, tuple[str, dict[str, str]]]] = WeakKeyDictionary()
"""By place, the first lake of a session that has files there, and its settings."""


def hadoop_version() -> str | None:
    """Return the version of the Hadoop that Spark ships, or None if it ships none."""
    for path in sorted(Path(_find_spark_home(), "jars").glob("hadoop-client-*.jar")):
        match = _JAR.fullmatch(path.name)
        if match is not None:
            return match[1]
    return None


def package_of(location: str) -> str | None:
    """Return the package that Spark needs to read files at a location, or None if it needs none or none is known."""
    scheme, version = urlsplit(location).scheme, hadoop_version()
    name = "hadoop-aws" if scheme in _S3 else "hadoop-azure" if scheme in _AZURE else None
    return None if name is None or version is None else f"org.apache.hadoop:{name}:{version}"


def place_of_files(warehouse: str, stores: Stores) -> str:
    """Return the location of a lake's files; if a service does not name it, the scheme of the configured store."""
    if warehouse != NO_PLACE:
        return warehouse
    if stores.names_store(S3):
        return "s3://"
    return "abfss://" if stores.names_store(AZURE) else warehouse


def add_package(settings: MutableMapping[str, Any], location: str) -> None:
    """Add the package for files at a location to Spark's settings, unless some version of it is already there."""
    package = package_of(location)
    if package is None:
        return
    packages, name = str(settings.get(PACKAGES, "")), package.split(":")[1]
    if f":{name}:" not in packages and f"{name}-" not in str(settings.get(_JARS, "")):
        settings[PACKAGES] = f"{packages},{package}" if packages else package


def settings_of(location: str, stores: Stores) -> dict[str, str]:
    """Return a session's settings for files at a location: the file system class, endpoint and credentials.

    Endpoints that a catalog service names are not among them: other lakes of the session would be sent there with
    their own credentials. They go with each read and write (`hadoop_options`).
    """
    store = store_of(location)
    if store is None or urlsplit(location).netloc == "":
        # Credentials apply to one bucket or account, never to all.
        return {}
    stores.check_location(location)
    account = stores.account(store)
    found = account_settings(location, account)
    return {name: value for name, value in found.items() if _PER_BUCKET not in name} if account.is_strange else found


def reach_files(spark: SparkSession, lake: str, location: str, stores: Stores) -> None:
    """Set how a session reaches a lake's files, as far as its own settings do not say.

    A bucket or account has one endpoint and one set of credentials in a session. Two lakes that give different ones
    would get a mixture, so the second is refused.
    """
    settings = settings_of(location, stores)
    place = urlsplit(location).netloc.rpartition("@")[2]
    own = {key: value for key, value in settings.items() if place in key}
    first, known = _reached.setdefault(spark.sparkContext, {}).setdefault(place, (lake, own))
    if first != lake and own and known and own != known:
        raise InvalidRequestError(
            f"Cannot attach lake {lake!r}: lake {first!r} of this session reaches {place!r} at another endpoint or "
            "with other credentials",
            hint="Open the lakes in sessions of their own, or give both the same properties.",
        )
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
    for key, value in settings.items():
        hadoop.setIfUnset(key.removeprefix("spark.hadoop."), value)


def account_settings(location: str, account: StoreAccount) -> dict[str, str]:
    """Return Spark's settings for files at a location with the credentials of its account."""
    parts = urlsplit(location)
    settings: dict[str, str] = {}
    if parts.scheme in _AZURE:
        settings = _azure_settings(parts.netloc.rpartition("@")[2], account)
    elif parts.scheme in _S3:
        settings = _s3_settings(location, account)
    for name, value in settings.items():
        if "${" in value or _OTHER_SETTING.search(name):
            raise InvalidRequestError(
                f"Cannot reach {location} on Spark: Hadoop reads what the lake says of it as names of its own settings",
                hint="Read and write it without Spark.",
            )
    return settings


def _s3_settings(location: str, account: StoreAccount) -> dict[str, str]:
    """Return Spark's settings for a bucket."""
    properties = account.properties
    settings = {"spark.hadoop.fs.s3.impl": _CLASS, "spark.hadoop.fs.s3a.impl": _CLASS}
    prefix = f"spark.hadoop.{_bucket_prefix(location)}"
    endpoint = properties.get(S3_ENDPOINT)
    key, secret, token = _s3_keys(properties)
    own: dict[str, str | None] = {
        "endpoint": endpoint,
        "endpoint.region": first_of(properties, S3_REGION) or ("us-east-1" if endpoint else None),
        "access.key": key,
        "secret.key": secret,
        "session.token": token,
    }
    if endpoint is not None:
        own["connection.ssl.enabled"] = str(not endpoint.startswith("http:")).lower()
        own["path.style.access"] = str(properties.get(S3_VIRTUAL, "false").lower() != "true").lower()
    if S3_PATH_STYLE in properties:
        own["path.style.access"] = properties[S3_PATH_STYLE].lower()
    # Otherwise Hadoop would find credentials of its own, and send them to an endpoint from the service.
    is_closed = key is None and (account.is_strange or account.is_vended)
    if is_closed or properties.get(S3_ANONYMOUS, "false").lower() == "true":
        own["aws.credentials.provider"] = f"{_PROVIDERS}AnonymousAWSCredentialsProvider"
    elif key is not None:
        provider = "SimpleAWSCredentialsProvider" if token is None else "TemporaryAWSCredentialsProvider"
        own["aws.credentials.provider"] = f"{_PROVIDERS}{provider}"
    return settings | {prefix + name: value for name, value in own.items() if value is not None}


def hadoop_options(spark: SparkSession, storage: Storage, location: str) -> dict[str, str]:
    """Return options that pass the credentials vended for a table's files to one read or write of Spark.

    Hadoop caches file systems by address, so the cache is disabled: one table's credentials must not serve another. S3
    credentials that expire are renewed in tasks, if the session is a classic one.
    """
    account = reach_of(storage, location)
    if account is None or urlsplit(location).netloc == "":
        return {}
    properties = account.properties
    options = {name.removeprefix("spark.hadoop."): value for name, value in account_settings(location, account).items()}
    if not options:
        return {}
    options |= {f"fs.{scheme}.impl.disable.cache": "true" for scheme in (*_S3, *_AZURE)}
    if account.is_strange:
        options |= {f"{prefix}{name}": "" for prefix in ("fs.s3a.", _bucket_prefix(location)) for name in _HIDDEN}
        options[_KEY_STORES] = _NO_KEY_STORE
    keys = _keys_of(properties)
    if keys is None or not is_classic(spark) or urlsplit(location).scheme not in _S3:
        return options
    name = f"frazil {properties[KEYS_OF]}"
    if not deliver_keys(spark.sparkContext, name, keys, lambda: _keys_at(storage, location)):
        return options
    return options | {
        f"{_bucket_prefix(location)}aws.credentials.provider": CLASS,
        # The class is loaded with the application, not by Hadoop's isolated class loader.
        "fs.s3a.classloader.isolation": "false",
        NAME_SETTING: name,
        END_SETTING: str(keys[0]),
    }


def _keys_at(storage: Storage, location: str) -> Keys | None:
    account = reach_of(storage, location)
    return None if account is None else _keys_of(account.properties)


def _keys_of(properties: Mapping[str, str]) -> Keys | None:
    """Return S3 credentials that expire, or None if there are none."""
    key, secret, token = _s3_keys(properties)
    ends = properties.get(S3_KEYS_END, "")
    if key is None or secret is None or token is None or KEYS_OF not in properties:
        return None
    return (int(ends), key, secret, token) if ends.isascii() and ends.isdigit() and len(ends) <= 18 else None


def _s3_keys(properties: Mapping[str, str]) -> tuple[str | None, str | None, str | None]:
    """Return an access key id, its secret and a session token, or None for each.

    An empty value counts as missing: Hadoop would use one of the session in its place.
    """
    key, secret, token = (
        first_of(properties, spellings) or None
        for spellings in (S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, S3_SESSION_TOKEN)
    )
    return (None, None, None) if key is None or secret is None else (key, secret, token)


def _bucket_prefix(location: str) -> str:
    return f"{_PER_BUCKET}{urlsplit(location).netloc}."


def _azure_settings(host: str, account: StoreAccount) -> dict[str, str]:
    """Return Spark's settings for an Azure storage account."""
    properties, name = account.properties, host.partition(".")[0]
    is_owned = account.is_vended or account.azure_hosts.owns(name, host.replace(".dfs.", ".blob.", 1))
    key = first_of(properties, AZURE_KEY_NAMES) if is_owned else None
    for_account = f"{AZURE_SAS}.{name}"
    queries = [
        setting
        for setting in properties
        if (setting == AZURE_SAS and is_owned) or setting == for_account or setting.startswith(f"{for_account}.")
    ]
    own: dict[str, str] = {}
    if queries:
        own = {"account.auth.type": "SAS", "sas.fixed.token": properties[max(queries, key=len)].lstrip("?")}
    elif key is not None:
        own = {"account.key": key}
    return {f"spark.hadoop.fs.azure.{name}.{host}": value for name, value in own.items()}


def missing_line(location: str) -> str:
    """Return a hint with the setting that a session lacks to read files at a location."""
    package = package_of(location)
    if package is None:
        return f"Give Spark a Hadoop file system for {urlsplit(location).scheme}: files."
    return f'Start it with .config("{PACKAGES}", "{package}"), or with frazil.session(…), which does.'
