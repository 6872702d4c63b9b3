"""Runs statements on Spark with planted credentials, through a proxy; prints what became of each as JSON.

python -m tests.hostile.planted_worker PROXY-PORT JAR,JAR,… CASES

CASES is JSON: for each name of a lake the address of its service, the properties of the user, the statements, and
further settings of Hadoop. The session has the settings that `frazil.session` gives for the lakes' buckets, which are
named as the lakes are, and credentials of its own for all buckets, in settings and in a store of keys.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from contextlib import ExitStack, suppress
from typing import Any

from pyspark.sql import SparkSession

import frazil
from frazil.spark.jvm.file_systems import settings_of
from frazil.storage.choose import stores_of

PLANTED_KEY = "planted-in-a-store"


def main() -> None:
    port, jars, cases = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    proxy = {"http-client.proxy-endpoint": f"http://127.0.0.1:{port}"}
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.task.maxFailures", "1")
        .config("spark.hadoop.fs.s3a.proxy.host", "127.0.0.1")
        .config("spark.hadoop.fs.s3a.proxy.port", port)
        .config("spark.hadoop.fs.s3a.access.key", "AKIAPLANTED0004")
        .config("spark.hadoop.fs.s3a.secret.key", "planted-in-the-session")
        .config("spark.hadoop.fs.s3a.session.token", "planted-token-of-the-session")
        .config("spark.hadoop.fs.s3a.attempts.maximum", "1")
        .config("spark.hadoop.fs.s3a.retry.limit", "0")
    )
    outcomes: dict[str, list[str]] = {}
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lakes = {}
        for name, case in cases.items():
            for key, value in case["settings"].items():
                builder = builder.config(f"spark.hadoop.{key}", value)
            lake = frazil.connect(case["address"], name=name, properties={**case["properties"], **proxy})
            lakes[name] = stack.enter_context(lake)
            # A session is not opened over an endpoint that gets no credentials; here the other lakes' session goes on.
            with suppress(frazil.InvalidRequestError):
                for key, value in settings_of(f"s3://{name}/t", stores_of(lake.catalog.storage)).items():
                    builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        plant_key_store(spark, stack.enter_context(tempfile.TemporaryDirectory()), list(cases))
        for name, lake in lakes.items():
            frazil.attach(spark, lake, name=name)
            outcomes[name] = []
            for statement in cases[name]["statements"]:
                try:
                    spark.sql(statement).collect()
                    outcomes[name].append("")
                except Exception as error:
                    outcomes[name].append(f"{error}")
        spark.stop()
    print(json.dumps(outcomes), flush=True)


def plant_key_store(spark: SparkSession, folder: str, buckets: list[str]) -> None:
    """Give the session credentials in a store of keys, which Hadoop asks before it looks at settings."""
    jvm: Any = spark.sparkContext._jvm
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set("hadoop.security.credential.provider.path", f"localjceks://file{folder}/planted.jceks")
    gateway: Any = spark.sparkContext._gateway
    key = gateway.new_array(jvm.char, len(PLANTED_KEY))
    for place, character in enumerate(PLANTED_KEY):
        key[place] = character
    store = jvm.org.apache.hadoop.security.alias.CredentialProviderFactory.getProviders(settings).get(0)
    for prefix in ("fs.s3a", *(f"fs.s3a.bucket.{bucket}" for bucket in buckets)):
        for name in ("access.key", "secret.key", "session.token"):
            store.createCredentialEntry(f"{prefix}.{name}", key)
    store.flush()


if __name__ == "__main__":
    main()
