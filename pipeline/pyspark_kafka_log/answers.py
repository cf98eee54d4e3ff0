"""Answer common questions about logs with DataFrames made from DataFrames."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

TRANSACTION_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "producerId",
    "producerEpoch",
    "isTransactional",
    "isControl",
    "controlType",
)
"""Columns that :func:`transactions` needs."""


def transactions(records: DataFrame) -> DataFrame:
    """Return one row for each transaction in ``records``: each producer, topic partition and marker
    with at least one record before it. Read ``records`` with ``includeMetadata`` and
    ``includeControlRecords``: without markers every outcome is OPEN, with them COMMIT or ABORT, and
    OPEN if none follows. Ignore records outside of transactions, and markers without records. Spark
    raises AnalysisException for missing columns.

    Args:
        records: Rows read with ``includeControlRecords``, with :data:`TRANSACTION_COLUMNS`.

    Returns:
        ``outcome`` is COMMIT, ABORT, or OPEN for a transaction without a marker, which is going on or hangs. ``records`` counts its records,
        ``firstOffset`` and ``lastOffset`` are their offsets, ``markerOffset`` is the offset of the marker.
    """
    key = ["topic", "partition", "producerId"]
    marker = F.when(
        F.col("isControl") & F.col("controlType").isin("COMMIT", "ABORT"),
        F.struct("offset", "controlType"),
    )
    # The next marker of the same producer. From the last record to the first, since that way it is one pass.
    up_to_here = Window.partitionBy(*key).orderBy(F.col("offset").desc())
    up_to_here = up_to_here.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        records.where("isTransactional")
        .withColumn("marker", F.last(marker, ignorenulls=True).over(up_to_here))
        .where(~F.col("isControl"))
        .groupBy(*key, "marker")
        .agg(
            F.max("producerEpoch").alias("producerEpoch"),
            F.min("offset").alias("firstOffset"),
            F.max("offset").alias("lastOffset"),
            F.count(F.lit(1)).alias("records"),
        )
        .select(
            "topic",
            "partition",
            "producerId",
            "producerEpoch",
            F.coalesce("marker.controlType", F.lit("OPEN")).alias("outcome"),
            "records",
            "firstOffset",
            "lastOffset",
            F.col("marker.offset").alias("markerOffset"),
        )
    )
