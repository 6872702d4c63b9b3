"""What Spark raises, said in frazil's words."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from frazil.errors import EngineError, MissingFileError
from frazil.spark.jvm.engine_errors import engine_errors

AMAZON = (
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3a://b/f.parquet#table=db.t&snapshot=1&hint=x\n"
    "Caused by: software.amazon.awssdk.services.s3.model.S3Exception: The provided token has expired. "
    "(Service: S3, Status Code: 400, Request ID: 1) (SDK Attempt Count: 1): ExpiredToken"
)
AZURE = (
    "Caused by: Operation failed: AuthenticationFailed, 403, GET, https://a.dfs.core.windows.net/c/f, "
    '"Signature not valid in the specified time frame: Start [...] - Expiry [...]"'
)


@pytest.mark.parametrize("text", [AMAZON, AZURE])
def test_expired_credentials_are_not_file_damage(text: str) -> None:
    with (
        pytest.raises(EngineError, match=r"Cannot read db\.t: the credentials for its files expired") as caught,
        engine_errors("read db.t"),
    ):
        raise PySparkException(text)
    assert caught.value.hint is not None
    assert "with new credentials" in caught.value.hint


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("FILE_NOT_EXIST", "java.io.FileNotFoundException: /f.parquet (No such file or directory)"),
        ("NO_HINT", "java.nio.file.NoSuchFileException: /f.parquet"),
    ],
)
def test_missing_file_is_recognised_whatever_java_reports(kind: str, cause: str) -> None:
    text = f"[FAILED_READ_FILE.{kind}] Error while reading file file:/f.parquet#table=db.t&snapshot=1&hint=x\n"
    with (
        pytest.raises(MissingFileError, match=r"Cannot read data file file:/f\.parquet: there is no such file"),
        engine_errors("read db.t"),
    ):
        raise PySparkException(f"{text}Caused by: {cause}\n")
