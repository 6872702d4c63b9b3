"""Properties that frazil does not honour, with reasons, for the documentation, `frazil doctor` and table checks."""

from __future__ import annotations

from typing import Final

from frazil.spec.frozen_map import FrozenMap

NOT_HONOURED: Final = FrozenMap(
    {
        "compatibility.snapshot-id-inheritance.enabled": "manifest entries may always have or inherit snapshot ids",
        "identifier-fields.rely": "identifier fields are not used by the optimiser",
        "write.manifest-lists.enabled": "snapshots always name a manifest list",
        "write.spark.auto-schema-evolution.enabled": "MERGE WITH SCHEMA EVOLUTION may always change the schema",
        "write.upsert.enabled": "used by Flink only",
        "write.parquet.row-group-check-max-record-count": "row groups are measured as they are written",
        "write.parquet.shred-variants": "variants are written whole",
        "write.parquet.variant-inference-buffer-size": "variants are written whole",
        "write.parquet.bloom-filter-adaptive-enabled": "the size follows from the number of values",
        "write.delete.parquet.row-group-check-min-record-count": "delete files are written at once",
        "write.delete.parquet.row-group-check-max-record-count": "delete files are written at once",
        "write.orc.block-size-bytes": "file system blocks are not supported",
        "write.delete.orc.block-size-bytes": "file system blocks are not supported",
        "read.split.metadata-target-size": "metadata tables are read in this process",
        "read.data-planning-mode": "scans are planned in this process",
        "read.delete-planning-mode": "scans are planned in this process",
        "read.parquet.vectorization.enabled": "files are read by Spark's built-in reader, with Spark's settings",
        "read.parquet.vectorization.batch-size": "files are read by Spark's built-in reader, with Spark's settings",
        "read.orc.vectorization.enabled": "files are read by Spark's built-in reader, with Spark's settings",
        "read.orc.vectorization.batch-size": "files are read by Spark's built-in reader, with Spark's settings",
        "encryption.data-key-length": "encrypted tables are refused",
    }
)
"""Properties without effect, and why."""

REFUSED: Final = FrozenMap(
    {
        "encryption.key-id": "encrypted tables are not written",
        "write.location-provider.impl": "Java classes are not supported",
    }
)
"""Properties of tables that cannot be written, and why."""
