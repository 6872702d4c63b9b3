"""Properties that frazil does not honour, each with its reason: pages, the doctor and checks of tables read them."""

from __future__ import annotations

from typing import Final

from frazil.spec.frozen_map import FrozenMap

NOT_HONOURED: Final = FrozenMap(
    {
        "compatibility.snapshot-id-inheritance.enabled": "entries are read with and without ids, whatever it says",
        "identifier-fields.rely": "nothing here relies on them",
        "write.manifest-lists.enabled": "snapshots always name a manifest list",
        "write.spark.auto-schema-evolution.enabled": "MERGE WITH SCHEMA EVOLUTION may always change the schema",
        "write.upsert.enabled": "Flink's",
        "write.parquet.row-group-check-max-record-count": "row groups are measured as they are written",
        "write.parquet.shred-variants": "variants are written whole",
        "write.parquet.variant-inference-buffer-size": "variants are written whole",
        "write.parquet.bloom-filter-adaptive-enabled": "the size is what the number of values asks for",
        "write.delete.parquet.row-group-check-min-record-count": "delete files are written in one go",
        "write.delete.parquet.row-group-check-max-record-count": "delete files are written in one go",
        "write.orc.block-size-bytes": "files have no blocks here",
        "write.delete.orc.block-size-bytes": "files have no blocks here",
        "read.split.metadata-target-size": "metadata tables are read in this process",
        "read.data-planning-mode": "scans are planned in this process",
        "read.delete-planning-mode": "scans are planned in this process",
        "read.parquet.vectorization.enabled": "Spark's own reader reads, by its settings",
        "read.parquet.vectorization.batch-size": "Spark's own reader reads, by its settings",
        "read.orc.vectorization.enabled": "Spark's own reader reads, by its settings",
        "read.orc.vectorization.batch-size": "Spark's own reader reads, by its settings",
        "encryption.data-key-length": "encrypted tables are refused",
        "engine.hive.enabled": "Hive's",
        "engine.hive.lock-enabled": "Hive's",
    }
)
"""Properties that change nothing, and why."""

REFUSED: Final = FrozenMap(
    {
        "encryption.key-id": "encrypted tables are not written",
        "write.location-provider.impl": "Java classes are not run",
    }
)
"""Properties of tables that are not written, and why."""
