"""The Hadoop file system that Spark needs for a lake in an object store: its package, and settings with credentials.

Spark ships Hadoop without what reads S3 and Azure's store. `hadoop-aws` and `hadoop-azure` of the very version that
Spark ships read them; others do not load. Settings are for the lake's bucket or account alone, and Spark shows nobody
the credentials among them (`spark.redaction.regex`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from frazil.catalog.base import NO_PLACE
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
)
from frazil.storage.object_service import first_of
from frazil.storage.store_accounts import AZURE, S3, StoreAccount, Stores, store_of

PACKAGES = "spark.jars.packages"
_JARS = "spark.jars"
_S3 = ("s3", "s3a", "s3n")
_AZURE = ("abfs", "abfss")
_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_PER_BUCKET = "fs.s3a.bucket."
_PROVIDERS = "org.apache.hadoop.fs.s3a."
_JAR = re.compile(r"hadoop-client-(?:api|runtime)-(\d+(?:\.\d+)*)\.jar")


def hadoop_version() -> str | None:
    """Return which Hadoop this Spark ships; None where it brings none of its own."""
    for path in sorted(Path(_find_spark_home(), "jars").glob("hadoop-client-*.jar")):
        found = _JAR.fullmatch(path.name)
        if found is not None:
            return found[1]
    return None


def package_of(location: str) -> str | None:
    """Return the package with which Spark reads files at a location; None where it needs none, or none is known."""
    scheme, version = urlsplit(location).scheme, hadoop_version()
    name = "hadoop-aws" if scheme in _S3 else "hadoop-azure" if scheme in _AZURE else None
    return None if name is None or version is None else f"org.apache.hadoop:{name}:{version}"


def place_of_files(warehouse: str, stores: Stores) -> str:
    """Return where a lake's files are, of which a service may tell no more than how its store is reached."""
    if warehouse != NO_PLACE:
        return warehouse
    if stores.names_store(S3):
        return "s3://"
    return "abfss://" if stores.names_store(AZURE) else warehouse


def add_package(settings: MutableMapping[str, Any], location: str) -> None:
    """Add the package for files at a location to Spark's settings; one that they have, of any version, stays."""
    package = package_of(location)
    if package is None:
        return
    given, name = str(settings.get(PACKAGES, "")), package.split(":")[1]
    if f":{name}:" not in given and f"{name}-" not in str(settings.get(_JARS, "")):
        settings[PACKAGES] = f"{given},{package}" if given else package


def settings_of(location: str, stores: Stores) -> dict[str, str]:
    """Return a session's settings for files at a location: which class reads them, where, and as whom.

    What a catalog service names is not among them: other lakes of the session would be sent there with their own
    credentials. It goes with each read and write (`hadoop_options`).
    """
    store = store_of(location)
    if store is None or urlsplit(location).netloc == "":
        # Credentials are for one bucket or account, never for all.
        return {}
    stores.check_location(location)
    account = stores.account(store)
    found = account_settings(location, account)
    return {name: value for name, value in found.items() if _PER_BUCKET not in name} if account.is_strange else found


def account_settings(location: str, account: StoreAccount) -> dict[str, str]:
    """Return Spark's settings for files at a location, in the account that belongs to it."""
    parts = urlsplit(location)
    if parts.scheme in _AZURE:
        return _azure_settings(parts.netloc.rpartition("@")[2], account)
    if parts.scheme not in _S3:
        return {}
    properties = account.properties
    found = {"spark.hadoop.fs.s3.impl": _CLASS, "spark.hadoop.fs.s3a.impl": _CLASS}
    prefix = f"spark.hadoop.{_PER_BUCKET}{parts.netloc}."
    endpoint = properties.get(S3_ENDPOINT)
    key, secret, token = (
        first_of(properties, spellings) for spellings in (S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, S3_SESSION_TOKEN)
    )
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
    # Hadoop would otherwise look for credentials of its own, and sign for an endpoint that only the service names.
    is_strange = account.is_strange and account.credentials is None
    if is_strange or properties.get(S3_ANONYMOUS, "false").lower() == "true":
        own["aws.credentials.provider"] = f"{_PROVIDERS}AnonymousAWSCredentialsProvider"
    elif key is not None:
        provider = "SimpleAWSCredentialsProvider" if token is None else "TemporaryAWSCredentialsProvider"
        own["aws.credentials.provider"] = f"{_PROVIDERS}{provider}"
    return found | {prefix + name: value for name, value in own.items() if value is not None}


def hadoop_options(spark: SparkSession, storage: Storage, location: str) -> dict[str, str]:
    """Return options of one read or write that give Spark the credentials a catalog service gave for a table's files.

    Hadoop keeps file systems by their address; one with credentials of a table must not be another's. Those of S3 that
    end are sent to tasks anew, where the session has a JVM in reach.
    """
    account = reach_of(storage, location)
    if account is None or urlsplit(location).netloc == "":
        return {}
    properties = account.properties
    found = {name.removeprefix("spark.hadoop."): value for name, value in account_settings(location, account).items()}
    if not found:
        return {}
    found |= {f"fs.{scheme}.impl.disable.cache": "true" for scheme in (*_S3, *_AZURE)}
    keys = _keys_of(properties)
    if keys is None or not is_classic(spark) or urlsplit(location).scheme not in _S3:
        return found
    name = f"frazil {properties[KEYS_OF]}"
    if not deliver_keys(spark.sparkContext, name, keys, lambda: _keys_at(storage, location)):
        return found
    return found | {
        f"fs.s3a.bucket.{urlsplit(location).netloc}.aws.credentials.provider": CLASS,
        # The class comes with the application; Hadoop's own may be elsewhere.
        "fs.s3a.classloader.isolation": "false",
        NAME_SETTING: name,
        END_SETTING: str(keys[0]),
    }


def _keys_at(storage: Storage, location: str) -> Keys | None:
    account = reach_of(storage, location)
    return None if account is None else _keys_of(account.properties)


def _keys_of(properties: Mapping[str, str]) -> Keys | None:
    """Return credentials of S3 that end; None where there are none such."""
    key, secret, token = (
        first_of(properties, spellings) for spellings in (S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, S3_SESSION_TOKEN)
    )
    ends = properties.get(S3_KEYS_END, "")
    if key is None or secret is None or token is None or KEYS_OF not in properties:
        return None
    return (int(ends), key, secret, token) if ends.isascii() and ends.isdigit() and len(ends) <= 18 else None


def _azure_settings(host: str, account: StoreAccount) -> dict[str, str]:
    """Return Spark's settings for an account in Azure."""
    properties, name = account.properties, host.partition(".")[0]
    is_owned = account.is_vended or account.azure_hosts.owns(name, host.replace(".dfs.", ".blob.", 1))
    key = first_of(properties, AZURE_KEY_NAMES) if is_owned else None
    for_account = f"{AZURE_SAS}.{name}"
    queries = [
        found
        for found in properties
        if (found == AZURE_SAS and is_owned) or found == for_account or found.startswith(f"{for_account}.")
    ]
    own: dict[str, str] = {}
    if queries:
        own = {"account.auth.type": "SAS", "sas.fixed.token": properties[max(queries, key=len)].lstrip("?")}
    elif key is not None:
        own = {"account.key": key}
    return {f"spark.hadoop.fs.azure.{name}.{host}": value for name, value in own.items()}


def missing_line(location: str) -> str:
    """Return the line that a session lacks to read files at a location."""
    package = package_of(location)
    if package is None:
        return f"Give Spark a Hadoop file system for {urlsplit(location).scheme}: files."
    return f'Start it with .config("{PACKAGES}", "{package}"), or with frazil.session(…), which does.'
