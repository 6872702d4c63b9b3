"""Streams in tests: run one until it has read what is there, and keep its batches."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

Rows = list[tuple[Any, ...]]


def add(spark: SparkSession, *ids: int, name: str = "lake.db.t", value: str = "a") -> None:
    """Append rows as one file."""
    rows = [(one, value) for one in ids]
    spark.createDataFrame(rows, "id bigint, v string").coalesce(1).writeTo(name).append()


@dataclass
class Streams:
    """Runs streams with checkpoints under a folder."""

    folder: Path
    progress: list[dict[str, Any]] = field(default_factory=list)

    def run(self, frame: DataFrame, checkpoint: str = "checkpoint", **trigger: Any) -> list[Rows]:
        """Read what is there; return the rows of each batch in order."""
        seen: list[Rows] = []
        query = (
            frame.writeStream.foreachBatch(lambda rows, _: seen.append(sorted(map(tuple, rows.collect()))))
            .option("checkpointLocation", str(self.folder / checkpoint))
            .trigger(**(trigger or {"availableNow": True}))
            .start()
        )
        try:
            assert query.awaitTermination(300)
        finally:
            query.stop()
        self.progress = [json.loads(one.json) for one in query.recentProgress]
        return seen

    def ids(self, frame: DataFrame, checkpoint: str = "checkpoint", **trigger: Any) -> list[list[int]]:
        """Read what is there; return the first column of each batch."""
        return [[row[0] for row in rows] for rows in self.run(frame, checkpoint, **trigger)]
