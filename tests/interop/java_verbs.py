"""What SQL has no words for, through the classes of Iceberg's Java runtime. Run by the process of `java_worker.py`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession


def _table(spark: SparkSession, name: str) -> Any:
    jvm: Any = spark._jvm
    spark.table(name)  # loads the catalog by the settings of this session, not of the one that is active
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)


def _each(iterable: Any) -> Iterator[Any]:
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


def delete_equal(spark: SparkSession, name: str, column: str, values: list[str | None]) -> None:
    """Delete rows by an equality delete file over one column of text, of a table without partitions."""
    jvm: Any = spark._jvm
    table = _table(spark, name)
    schema = table.schema().select([column])
    ids = spark.sparkContext._gateway.new_array(jvm.int, 1)  # type: ignore[union-attr]
    ids[0] = table.schema().findField(column).fieldId()
    factory = jvm.org.apache.iceberg.data.GenericAppenderFactory(table.schema(), table.spec(), ids, schema, None)
    out = table.io().newOutputFile(f"{table.location()}/data/{uuid.uuid4().hex}-deletes.parquet")
    encrypted = jvm.org.apache.iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(out)
    writer = factory.newEqDeleteWriter(encrypted, jvm.org.apache.iceberg.FileFormat.PARQUET, None)
    for value in values:
        record = jvm.org.apache.iceberg.data.GenericRecord.create(schema)
        record.setField(column, value)
        writer.write(record)
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def statistics(spark: SparkSession, name: str) -> dict[str, tuple[str, float]]:
    """Return, by column, how many different values the statistics file says there are, and what its sketch says."""
    jvm: Any = spark._jvm
    sketches = jvm.org.apache.iceberg.shaded.org.apache.datasketches
    table = _table(spark, name)
    found: dict[str, tuple[str, float]] = {}
    for file in table.statisticsFiles():
        if file.snapshotId() != table.currentSnapshot().snapshotId():
            continue
        reader = jvm.org.apache.iceberg.puffin.Puffin.read(table.io().newInputFile(file.path())).build()
        for pair in _each(reader.readAll(reader.fileMetadata().blobs())):
            blob = pair.first()
            data = jvm.org.apache.iceberg.util.ByteBuffers.toByteArray(pair.second())
            estimate = sketches.theta.Sketches.wrapSketch(sketches.memory.Memory.wrap(data)).getEstimate()
            column = table.schema().findColumnName(blob.inputFields()[0])
            found[column] = (blob.properties()["ndv"], estimate)
        reader.close()
    return found


def partition_statistics(spark: SparkSession, name: str) -> list[dict[str, Any]]:
    """Return the rows of the partition statistics file of the current snapshot, of a table partitioned by text."""
    jvm: Any = spark._jvm
    text = jvm.java.lang.Class.forName("java.lang.CharSequence")
    table = _table(spark, name)
    scan = table.newPartitionStatisticsScan().useSnapshot(table.currentSnapshot().snapshotId()).scan()
    rows = []
    for one in _each(scan):
        rows.append(
            {
                "partition": {"kind": one.partition().get(0, text)},
                "spec_id": one.specId(),
                "data_record_count": one.dataRecordCount(),
                "data_file_count": one.dataFileCount(),
                "total_data_file_size_in_bytes": one.totalDataFileSizeInBytes(),
                "position_delete_record_count": one.positionDeleteRecordCount(),
                "position_delete_file_count": one.positionDeleteFileCount(),
                "equality_delete_record_count": one.equalityDeleteRecordCount(),
                "equality_delete_file_count": one.equalityDeleteFileCount(),
                "dv_count": one.dvCount(),
                "last_updated_snapshot_id": one.lastUpdatedSnapshotId(),
            }
        )
    scan.close()
    return rows


def stream(spark: SparkSession, name: str, checkpoint: str, options: dict[str, str]) -> list[list[int]]:
    """Read a table as a stream up to now; return the column `id` of each batch."""
    seen: list[list[int]] = []
    query = (
        spark.readStream.format("iceberg")
        .options(**options)
        .load(name)
        .writeStream.foreachBatch(lambda rows, _: seen.append(sorted(row.id for row in rows.collect())))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    if not query.awaitTermination(300):
        query.stop()
        raise TimeoutError("the stream did not end")
    return seen


VERBS = {one.__name__: one for one in (delete_equal, statistics, partition_statistics, stream)}


def run(spark: SparkSession, verb: str, *arguments: Any) -> Any:
    """Carry out a verb by its name."""
    return VERBS[verb](spark, *arguments)
