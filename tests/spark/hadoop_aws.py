"""Hadoop's file system for S3, of the version that Spark ships, fetched once: 690 MB."""

from __future__ import annotations

import os
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from frazil.spark.jvm.file_systems import hadoop_version

CACHE = Path(os.environ.get("FRAZIL_JAVA_CACHE", Path.home() / ".cache" / "frazil-java"))
CENTRAL = "https://repo1.maven.org/maven2"


class CannotFetch(Exception):
    """The file system cannot be had here; the text says why."""


def hadoop_aws_jars() -> list[Path]:
    """Return the jars, fetched where they are missing."""
    version = hadoop_version()
    folder = CACHE / f"hadoop-aws-{version}"
    if not folder.is_dir():
        part = CACHE / f"hadoop-aws-{os.getpid()}.part"
        part.mkdir(parents=True, exist_ok=True)
        try:
            pom = _read(f"{CENTRAL}/org/apache/hadoop/hadoop-project/{version}/hadoop-project-{version}.pom")
            sdk = re.search(r"<aws-java-sdk-v2.version>([^<]+)", pom)
            streams = re.search(r"<amazon-s3-analyticsaccelerator-s3.version>([^<]+)", pom)
            if sdk is None:
                raise CannotFetch("Hadoop does not say which SDK it needs")
            _fetch(f"org/apache/hadoop/hadoop-aws/{version}/hadoop-aws-{version}.jar", part)
            _fetch(f"software/amazon/awssdk/bundle/{sdk[1]}/bundle-{sdk[1]}.jar", part)
            if streams is not None:
                name = "analyticsaccelerator-s3"
                _fetch(f"software/amazon/s3/analyticsaccelerator/{name}/{streams[1]}/{name}-{streams[1]}.jar", part)
        except (OSError, urllib.error.URLError) as error:
            shutil.rmtree(part)
            raise CannotFetch(f"hadoop-aws could not be had from Maven Central: {error}") from error
        part.rename(folder)
    return sorted(folder.glob("*.jar"))


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def _fetch(path: str, folder: Path) -> None:
    with (
        urllib.request.urlopen(f"{CENTRAL}/{path}", timeout=60) as answer,
        (folder / path.rpartition("/")[2]).open("wb") as out,
    ):
        shutil.copyfileobj(answer, out)
