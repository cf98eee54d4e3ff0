"""The damage columns ``crc_ok`` and ``damage`` of the view records, on request. The schemas do not define them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.model import Batch, Record, is_own_checksum
from kafka_log.segment.reader import batch_damage


@dataclass(frozen=True, slots=True)
class DamageColumn:
    """A damage column: its field, the function that computes it for a record of the reference codecs, and its value for good records."""

    field: pa.Field
    compute: Callable[[Batch, Record | None], Any]
    good: Any


def crc_ok(batch: Batch, record: Record | None) -> bool | None:
    """Return True if the checksums over a record (its own and that of its batch) are valid, and
    False if one is wrong. Return None if its batch could not be verified, since bytes are missing.
    """
    if record is not None and record.crc_error is not None:
        return False
    if batch.is_valid:
        return True
    return False if any(map(is_own_checksum, batch.findings)) else None


def damage(batch: Batch, record: Record | None) -> str | None:
    """Return the errors of a record and its batch, joined by ``; `` in one line. Return None if
    there are none.
    """
    wrong = batch_damage(batch)
    if record is not None and record.crc_error is not None and record.crc_error not in wrong:
        wrong = [record.crc_error, *wrong]
    return utf8("; ".join(map(str, wrong))) if wrong else None


COLUMNS: Mapping[str, DamageColumn] = {
    "crc_ok": DamageColumn(pa.field("crc_ok", pa.bool_()), crc_ok, True),
    "damage": DamageColumn(pa.field("damage", pa.string()), damage, None),
}
"""Damage columns by name, for the view records only."""
