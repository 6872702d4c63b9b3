"""`frazil.session()`: which lakes settings name, and what Spark is told about their files."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import frazil
from frazil.catalog.base import NO_PLACE
from frazil.errors import InvalidRequestError
from frazil.spark.jvm.file_systems import (
    add_package,
    hadoop_version,
    missing_line,
    package_of,
    place_of_files,
    settings_of,
)
from frazil.spark.jvm.session_builder import lakes_of
from frazil.storage.store_accounts import Stores

BUCKET = "spark.hadoop.fs.s3a.bucket.data."


def test_builder_settings_define_lakes() -> None:
    found = lakes_of(
        {
            "spark.frazil.lake.a.warehouse": "/srv/a",
            "spark.frazil.lake.b.warehouse": "s3://data/b",
            "spark.frazil.lake.b.catalog": "postgresql://host/db",
            "spark.frazil.lake.b.catalog-name": "prod",
            "spark.frazil.lake.b.property.s3.region": "eu-central-1",
            "spark.app.name": "x",
        }
    )
    assert list(found) == ["a", "b"]
    assert found["b"].catalog == "postgresql://host/db"
    assert found["b"].catalog_name == "prod"
    assert found["b"].properties == {"s3.region": "eu-central-1"}


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"spark\.frazil\.lake\.a\.wharehouse"):
        lakes_of({"spark.frazil.lake.a.wharehouse": "/srv/a"})
    with pytest.raises(InvalidRequestError, match=r"lake\.a\.warehouse is not set"):
        lakes_of({"spark.frazil.lake.a.catalog": "sqlite:///x"})


def test_lake_secrets_are_not_shown() -> None:
    settings = {"spark.frazil.lake.a.warehouse": "w", "spark.frazil.lake.a.property.s3.secret-access-key": "hidden"}
    assert "hidden" not in repr(lakes_of(settings))


def test_lake_on_s3_adds_the_hadoop_s3_package() -> None:
    assert package_of("s3://data/lake") == f"org.apache.hadoop:hadoop-aws:{hadoop_version()}"
    assert package_of("abfss://c@a.dfs.core.windows.net/lake") == f"org.apache.hadoop:hadoop-azure:{hadoop_version()}"
    assert package_of("/srv/lake") is None
    assert package_of("file:///srv/lake") is None
    assert str(package_of("s3://data/lake")) in missing_line("s3://data/lake")


def test_user_packages_are_kept_beside_store_packages() -> None:
    s3, azure = "s3://data/lake", "abfss://c@a.dfs.core.windows.net/lake"
    settings = {"spark.jars.packages": "a:b:1"}
    add_package(settings, s3)
    add_package(settings, azure)
    add_package(settings, "/srv/lake")
    add_package(settings, s3)
    assert settings["spark.jars.packages"] == f"a:b:1,{package_of(s3)},{package_of(azure)}"
    chosen = {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.0.0"}
    add_package(chosen, s3)
    assert chosen == {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.0.0"}
    by_file = {"spark.jars": "/opt/hadoop-aws-3.4.1.jar"}
    add_package(by_file, s3)
    assert by_file == {"spark.jars": "/opt/hadoop-aws-3.4.1.jar"}


def test_lakes_are_opened_before_spark_starts_to_load_their_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "frazil.toml").write_text(
        f"""
        [catalog.prod]
        uri = "sqlite:///{tmp_path}/prod.db"
        warehouse = "s3://bucket/prod"
        s3.access-key-id = "id"
        s3.secret-access-key = "key"
        s3.region = "eu-central-1"
        """
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    azure = "abfss://c@a.dfs.core.windows.net/lake"
    builder = frazil.session("prod")
    builder.lake("other", azure, catalog=f"sqlite:///{tmp_path}/other.db", properties={"adls.account-key": "a2V5"})
    opened = {name: builder._open(lake) for name, lake in builder._lakes.items()}
    assert opened["lake"].location == "s3://bucket/prod"
    found = settings_of(opened["lake"].location, opened["lake"].stores)
    assert found["spark.hadoop.fs.s3a.bucket.bucket.access.key"] == "id"
    assert "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net" in settings_of(azure, opened["other"].stores)
    assert "key" not in repr(opened)
    for lake in opened.values():
        add_package(builder._options, lake.location)
        lake.close()
    assert builder._options["spark.jars.packages"] == f"{package_of('s3://x')},{package_of('abfss://x')}"


def test_service_without_a_location_adds_its_store_package_and_no_global_credentials() -> None:
    keys = {"s3.access-key-id": "id", "s3.secret-access-key": "key"}
    assert package_of(place_of_files(NO_PLACE, Stores(keys))) == package_of("s3://data")
    assert settings_of(place_of_files(NO_PLACE, Stores(keys)), Stores(keys)) == {}
    assert package_of(place_of_files(NO_PLACE, Stores({"adls.account-name": "a"}))) == package_of("abfss://c@a/lake")
    assert package_of(place_of_files(NO_PLACE, Stores())) is None
    assert place_of_files("s3://data/lake", Stores()) == "s3://data/lake"


def test_credentials_are_limited_to_the_bucket_of_the_lake() -> None:
    keys = {"s3.access-key-id": "id", "s3.secret-access-key": "key", "s3.endpoint": "http://127.0.0.1:9000"}
    found = settings_of("s3://data/lake", Stores(keys))
    assert found[f"{BUCKET}access.key"] == "id"
    assert found[f"{BUCKET}secret.key"] == "key"
    assert found[f"{BUCKET}endpoint"] == "http://127.0.0.1:9000"
    assert found[f"{BUCKET}path.style.access"] == "true"
    assert found[f"{BUCKET}connection.ssl.enabled"] == "false"
    assert found["spark.hadoop.fs.s3.impl"].endswith("S3AFileSystem")
    assert not any("fs.s3a.access" in one for one in found)
    assert settings_of("/srv/lake", Stores(keys)) == {}
    anonymous = settings_of("s3://data/lake", Stores({"s3.anonymous": "true"}))
    assert anonymous[f"{BUCKET}aws.credentials.provider"].endswith("AnonymousAWSCredentialsProvider")


def test_builders_do_not_share_options() -> None:
    frazil.session("a").config("spark.x", "1")
    assert "spark.x" not in frazil.session("b")._options


def test_missing_settings_are_an_error_before_start() -> None:
    with pytest.raises(AttributeError, match="nothing_of_sparks"):
        frazil.session("a").nothing_of_sparks("db.t")


@pytest.mark.extended
def test_script_starts_with_the_configured_lakes(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        textwrap.dedent(
            """
            import frazil

            spark = frazil.session().appName("job").getOrCreate()
            spark.sql("create namespace if not exists pond.db")
            spark.sql("create table pond.db.t as select 7 id")
            print(spark.table("pond.db.t").collect())
            more = frazil.session("other").getOrCreate()
            more.sql("create namespace lake.db")
            straight = frazil.session("other")
            print(straight.table("pond.db.t").count(), straight.sql("select 1 a").collect())
            print(more.catalog.databaseExists("lake.db"), more.table("pond.db.t").count())
            """
        )
    )
    local = ("spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1", "spark.master=local[1]")
    settings = [f"spark.frazil.lake.pond.warehouse={tmp_path / 'pond'}", "spark.ui.enabled=false", *local]
    home = Path(sys.modules["pyspark"].__file__ or "").parent
    arguments = [part for one in settings for part in ("--conf", one)]
    done = subprocess.run(
        [str(home / "bin" / "spark-submit"), *arguments, str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={"PYSPARK_PYTHON": sys.executable, "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)},
        check=False,
    )
    assert "[Row(id=7)]" in done.stdout, done.stderr[-3000:]
    assert done.stdout.splitlines()[-2:] == ["1 [Row(a=1)]", "True 1"], done.stderr[-3000:]
    with frazil.connect(tmp_path / "pond") as lake:
        assert lake.table("db.t").scan().to_arrow().num_rows == 1


def test_azure_credentials_are_limited_to_their_account() -> None:
    place = "abfss://c@account.dfs.core.windows.net/lake"
    assert settings_of(place, Stores({"adls.account-key": "k"})) == {
        "spark.hadoop.fs.azure.account.key.account.dfs.core.windows.net": "k"
    }
    given = {"adls.sas-token": "?sig=all", "adls.sas-token.account": "sig=own", "adls.sas-token.other": "sig=other"}
    assert settings_of(place, Stores(given)) == {
        "spark.hadoop.fs.azure.account.auth.type.account.dfs.core.windows.net": "SAS",
        "spark.hadoop.fs.azure.sas.fixed.token.account.dfs.core.windows.net": "sig=own",
    }
