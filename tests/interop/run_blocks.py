"""Run blocks of documentation in a Spark session, each in a state of tables of its own.

It knows nothing of frazil, so that the same file runs over attached lakes and in the process with Iceberg's Java
runtime. Blocks come as JSON would have them (`jar_blocks.py` makes them); SQL runs as it stands, Scala as the Python
that says the same.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.functions import partitioning as by

_BEGINS = re.compile(r"\n(?=(?:ALTER|DELETE|UPDATE|MERGE|INSERT|DROP|CREATE|SELECT|CALL|USE|SET spark)\b)")
_WHOLE = re.compile(r"^(?:ALTER|DELETE|UPDATE|DROP|SET spark|USE|CALL|SELECT \* FROM \S+$)", re.IGNORECASE)
_OF_SNAPSHOTS = {
    "s": "snapshot_id",
    "t": "cast(committed_at AS string)",
    "m": "unix_millis(committed_at)",
    "e": "unix_seconds(committed_at) + 1",
}
_OF_SPARK = re.compile(r"^CREATE TABLE (spark_catalog\.\S+)")
_ANSWERS = re.compile(r"^(?:SELECT|SHOW|DESCRIBE|CALL)\b", re.IGNORECASE)


def run(spark: SparkSession, blocks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what came of each block, by key: the error, or the answers; and the tables as it left them."""
    with tempfile.TemporaryDirectory(prefix="frazil-pages-") as folder:
        return _Runner(spark, folder).run(blocks)


class _Runner:
    def __init__(self, spark: SparkSession, folder: str) -> None:
        self.spark = spark
        self.folder = folder
        self.made = 0
        self.state: tuple[Any, ...] | None = None
        self.catalog = "spark_catalog"
        self.of_spark: set[str] = set()
        """Tables in Spark's own catalog; SHOW TABLES does not show those of Iceberg."""

    def run(self, blocks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        found = {}
        for block in blocks:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found[block["key"]] = self.run_block(block)
            except Exception as error:
                found[block["key"]] = {"error": told(error), "answers": [], "tables": {}}
                self.state = None
        self.clear()
        return found

    def run_block(self, block: dict[str, Any]) -> dict[str, Any]:
        wanted = (block["catalog"], block["state"], tuple(block["before"]))
        if self.state != wanted:
            self.clear()
            self.made += 1
            Path(self.folder, str(self.made)).mkdir()
            self.catalog = block["catalog"]
            for text in [*block["tables"], *block["before"]]:
                self.sql(self.known(text, block))
        self.state = wanted if block["reads"] else None
        answers: list[Any] = []
        try:
            if block["language"] == "sql":
                text = block["wrap"].replace("{block}", block["text"]) if block["wrap"] else block["text"]
                for at, statement in enumerate(statements(text)):
                    for between in block["between"] if at else ():
                        self.sql(self.known(between, block))
                    answers += self.look(statement, self.sql(self.fill(statement, block)))
            else:
                answers += self.run_python(block)
            left = self.left(block)
        finally:
            for text in block["after"]:
                self.sql(text)
        return {"error": None, "answers": answers, "tables": left}

    def sql(self, text: str) -> DataFrame:
        self.of_spark |= set(_OF_SPARK.findall(text))
        try:
            return self.spark.sql(text)
        except Exception as error:
            raise Refused(f"{' '.join(text.split())}: {told(error)}") from error

    def look(self, statement: str, frame: DataFrame) -> list[Any]:
        if not _ANSWERS.match(statement):
            return []
        return [[frame.columns, len(frame.collect())]]

    def run_python(self, block: dict[str, Any]) -> list[Any]:
        names = {"spark": self.spark, "col": col, "lit": lit, "days": by.days}
        for name, query in block["frames"].items():
            text = self.known(query, block)
            names[name] = self.spark.readStream.table(text) if block["streams"] else self.spark.sql(text).alias(name)
        for name, value in block["values"].items():
            names[name] = self.known(value, block)
        answers: list[Any] = []
        for line in in_python(self.fill(block["text"], block)):
            target, code = line
            made = eval(code, names)
            names[target or "_"] = made
            if isinstance(made, DataFrame):
                answers.append([made.columns, self.count_stream(made) if made.isStreaming else len(made.collect())])
            elif hasattr(made, "processAllAvailable"):
                try:
                    made.processAllAvailable()
                finally:
                    made.stop()
            elif made is not None:
                answers.append([[], made])
        return answers

    def count_stream(self, frame: DataFrame) -> int:
        rows: list[int] = []
        query = (
            frame.writeStream.foreachBatch(lambda batch, _: rows.append(batch.count()))
            .option("checkpointLocation", f"{self.folder}/{self.made}/seen")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sum(rows)

    def left(self, block: dict[str, Any]) -> dict[str, Any]:
        """Return the tables that the block is about as it left them: their columns and rows."""
        seen: dict[str, Any] = {}
        for name in block["looks"]:
            try:
                frame = self.spark.table(f"{block['catalog']}.{name}")
                rows = sorted(str(tuple(row)) for row in frame.collect())
                seen[name] = [frame.schema.simpleString(), rows]
            except Exception:
                seen[name] = "none"
        return seen

    def clear(self) -> None:
        """Leave no table and no view behind."""
        self.state = None
        self.spark.sql("USE spark_catalog.default")
        while self.of_spark:
            self.spark.sql(f"DROP TABLE IF EXISTS {self.of_spark.pop()}")
        for catalog in sorted({self.catalog, "spark_catalog"}):
            spaces = [row[0] for row in self.spark.sql(f"SHOW NAMESPACES IN `{catalog}`").collect()]
            for space in {*spaces, "default"} if catalog == "spark_catalog" else spaces:
                within = f"`{catalog}`.`{space}`"
                if catalog != "spark_catalog":
                    for row in self.spark.sql(f"SHOW VIEWS IN {within}").collect():
                        if not row[2]:
                            self.spark.sql(f"DROP VIEW {within}.`{row[1]}`")
                for row in self.spark.sql(f"SHOW TABLES IN {within}").collect():
                    if not row[2]:
                        self.spark.sql(f"DROP TABLE IF EXISTS {within}.`{row[1]}`")
        for row in self.spark.sql("SHOW VIEWS").collect():
            self.spark.catalog.dropTempView(row[1])

    def fill(self, text: str, block: dict[str, Any]) -> str:
        """Put in what the page leaves open."""
        for old, new in block["fill"].items():
            text = text.replace(old, new)
        return self.known(text, block)

    def known(self, text: str, block: dict[str, Any]) -> str:
        """Put in ids, times and places of this run."""
        names = set(re.findall(r"<<(\w+)>>", text))
        for name in names:
            text = text.replace(f"<<{name}>>", str(self.value(name, block)))
        return text

    def value(self, name: str, block: dict[str, Any]) -> Any:
        """Return what a name stands for; `s1`, `t1` and `m1` are the first snapshot's id, time, and milliseconds."""
        table = block["about"]
        if name == "folder":
            return f"{self.folder}/{self.made}"
        if name == "wap":
            return self.one(f"snapshot_id FROM {table}.snapshots WHERE summary['wap.id'] IS NOT NULL", 0)
        at = int(name[1:]) - 1 if name[1:].isdigit() else None
        if at is not None and name[0] in _OF_SNAPSHOTS:
            return self.one(f"{_OF_SNAPSHOTS[name[0]]} FROM {table}.snapshots ORDER BY committed_at", at)
        files = [row[0] for row in self.spark.sql(f"SELECT file FROM {table}.metadata_log_entries").collect()]
        if at is not None:
            return files[at].rpartition("/")[2]
        uri = files[0].rpartition("/metadata/")[0]
        return {"file": files[-1], "uri": uri, "location": re.sub(r"^file:/+", "/", uri)}[name]

    def one(self, query: str, at: int) -> Any:
        return self.spark.sql(f"SELECT {query}").collect()[at][0]


class Refused(Exception):
    """A statement failed; with its text."""


def told(error: BaseException) -> str:
    """Return an error in one line."""
    if isinstance(error, Refused):
        return str(error)
    lines = [line.strip(" :") for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(("An error occurred while calling", "at "))]
    return f"{type(error).__name__}: {' '.join(said[:2])}"[:400]


def statements(text: str) -> list[str]:
    """Return the statements of a block. Some pages end them by a semicolon, some by the line or an empty line."""
    plain = re.sub(r"--[^\n]*", "", text)
    found = []
    for part in plain.split(";"):
        pieces: list[str] = []
        for piece in _BEGINS.split(part.strip()):
            if pieces and not _ends(pieces[-1], piece):
                pieces[-1] += "\n" + piece
            else:
                pieces.append(piece)
        found += [piece.strip() for piece in pieces if piece.strip()]
    return found


def _ends(before: str, after: str) -> bool:
    """Return whether a statement ends where another word that can begin one stands at the start of a line."""
    if before.endswith("\n") or not before.strip():
        return True
    first = after.split(None, 1)[0].upper()
    return first in {"ALTER", "DELETE", "MERGE", "INSERT", "DROP", "CALL"} and _WHOLE.match(before) is not None


def in_python(scala: str) -> list[tuple[str, str]]:
    """Return a block of Scala as Python: for each statement the name it is kept under, and the expression."""
    text = re.sub(r"(?<!:)//[^\n]*", "", scala)
    text = re.sub(r"val \w+: DataFrame = \.\.\.", "", text)
    for old, new in (
        (r'\$"([^"]+)"', r'col("\1")'),
        (r"===", "=="),
        (r"\b(\d+)L\b", r"\1"),
        (r"SparkReadOptions\.(\w+)", lambda found: f'"{found[1].lower()}"'),
        (r"Trigger\.ProcessingTime\((\d+), TimeUnit\.MINUTES\)", r'processingTime="\1 minutes"'),
        (r"Long\.toString\((\w+)\)", r"\1"),
        (r'Map\(("[^"]+") -> ([^)]*\))\)', r"{\1: \2}"),
    ):
        text = re.sub(old, new, text)
    found: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if line.lstrip().startswith(".") and found:
            found[-1] += line.strip()
        else:
            found.append(line.strip())
    parts = [re.fullmatch(r"(?:val (\w+) = )?(.*)", one) for one in found]
    return [(part[1] or "", part[2].strip()) for part in parts if part is not None]
