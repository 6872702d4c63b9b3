"""Nothing that the jar takes is unknown here: the texts in its classes that name options, settings and properties.

The jar is read as an archive; no JVM is started.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from frazil.jar import options as o
from frazil.maintenance.rewrite_options import DATA_OPTIONS, SIZE_OPTIONS, ZORDER_OPTIONS
from frazil.spec import properties as p
from tests.interop.java_runtime import PACKAGE

pytestmark = pytest.mark.interop

_SPARK, _ACTIONS = "org/apache/iceberg/spark", "org/apache/iceberg/actions"
_SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}
"""Bytes of the constants in a class file that are no text, by their tag."""


@pytest.fixture(scope="module")
def jar() -> Iterable[zipfile.ZipFile]:
    _, name, version = PACKAGE.split(":")
    found = next(Path.home().glob(f".ivy2*/**/*{name}-{version}.jar"), None)
    if found is None:
        pytest.skip(f"{PACKAGE} is not in the cache of Ivy")
    with zipfile.ZipFile(found) as archive:
        yield archive


def texts_in(jar: zipfile.ZipFile, name: str) -> set[str]:
    """Return the texts that a class uses as values. Java Virtual Machine Specification, "The Constant Pool"."""
    data = jar.read(f"{name}.class")
    (count,) = struct.unpack_from(">H", data, 8)
    texts: dict[int, str] = {}
    used: list[int] = []
    offset, index = 10, 1
    while index < count:
        tag = data[offset]
        if tag == 1:
            (length,) = struct.unpack_from(">H", data, offset + 1)
            texts[index] = data[offset + 3 : offset + 3 + length].decode("utf-8", "replace")
            offset += 3 + length
        else:
            if tag == 8:
                used += struct.unpack_from(">H", data, offset + 1)
            offset += _SIZES[tag]
        # Long and double constants take two places.
        index += 2 if tag in (5, 6) else 1
    return {texts[one] for one in used}


def names_of(*lists: Iterable[o.Option]) -> set[str]:
    return {option.name.rstrip("*").rstrip(".") for one in lists for option in one}


def test_every_read_option_of_the_jar_is_listed(jar: zipfile.ZipFile) -> None:
    found = texts_in(jar, f"{_SPARK}/SparkReadOptions")
    assert "split-size" in found
    assert found <= names_of(o.READ, o.STREAM_READ)


def test_every_write_option_of_the_jar_is_listed(jar: zipfile.ZipFile) -> None:
    found = texts_in(jar, f"{_SPARK}/SparkWriteOptions")
    assert "target-file-size-bytes" in found
    assert found <= names_of(o.WRITE, o.STREAM_WRITE)


def test_every_session_setting_of_the_jar_is_listed(jar: zipfile.ZipFile) -> None:
    found = {one.rstrip(".") for one in texts_in(jar, f"{_SPARK}/SparkSQLProperties") if one.startswith("spark.")}
    assert "spark.sql.iceberg.distribution-mode" in found
    assert found <= names_of(o.SETTINGS)


def test_every_table_property_of_the_jar_is_listed(jar: zipfile.ZipFile) -> None:
    found = {one for one in texts_in(jar, "org/apache/iceberg/TableProperties") if "." in one}
    assert "write.format.default" in found
    assert found <= {*p.TABLE_PROPERTIES, *p.VIEW_PROPERTIES, *p.COLUMN_PROPERTIES, *p.RETIRED_PROPERTIES}


def test_every_rewrite_option_of_the_jar_is_listed(jar: zipfile.ZipFile) -> None:
    def options(*classes: str) -> set[str]:
        found = {one for name in classes for one in texts_in(jar, name)}
        return {one for one in found if re.fullmatch(r"[a-z]+(-[a-z]+)+([.][a-z-]+)?", one)}

    own = options(
        f"{_ACTIONS}/RewriteDataFiles",
        f"{_ACTIONS}/SizeBasedFileRewritePlanner",
        f"{_ACTIONS}/BinPackRewriteFilePlanner",
        f"{_SPARK}/actions/SparkShufflingDataRewritePlanner",
        f"{_SPARK}/actions/SparkZOrderFileRewriteRunner",
    )
    assert "min-input-files" in own
    assert own <= {*DATA_OPTIONS, *ZORDER_OPTIONS}
    deletes = options(f"{_ACTIONS}/RewritePositionDeleteFiles", f"{_ACTIONS}/SizeBasedFileRewritePlanner")
    assert deletes - {"output-spec-id"} <= set(SIZE_OPTIONS)
