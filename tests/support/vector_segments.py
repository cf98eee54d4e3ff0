"""Reference segments with what Kafka reads from them."""

from __future__ import annotations

import json
from typing import Any

from tests.paths import VECTORS

MANIFEST = [json.loads(line) for line in (VECTORS / "MANIFEST.jsonl").read_text().splitlines()]


SEGMENTS = {m["file"]: m["mode"] for m in MANIFEST if m["mode"] and m["file"].endswith(".log")}


DIFFERENCES = {
    "features/v2-empty-compressed-attr.log": (
        "A batch whose count is 0 and whose codec is gzip, with no compressed bytes: the reference opens the stream "
        "before it looks at the count, and fails on the missing gzip header. We look at the count first, and give "
        "the same records: none."
    ),
}
"""Where we differ, and why. Everything else agrees in every value."""


def expected(file: str) -> list[dict[str, Any]]:
    path = (VECTORS / file).with_suffix(".expected.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def well_formed() -> list[str]:
    folders = ("matrix", "features", "control", "compacted")
    rejected = {
        "control/bad-keys.log",
        "control/end-txn-bad-values.log",
        "control/leader-change-layout-1.log",
    }
    crafted = {
        "features/v2-none-invalid-utf8-header-key.log",
        "features/v2-record-attributes-nonzero.log",
        "features/v2-unknown-batch-attribute-bits.log",
        "features/v0-gzip-inner-v1.log",
        "features/v0-gzip-inner-relative.log",
        "features/v1-gzip-inner-v0.log",
        "features/v2-none-timestamp-overflow.log",
        "features/v2-nonmonotonic-offset-deltas.log",
        "control/gzip-control.log",
    }
    skip = rejected | crafted
    return sorted(f for f in SEGMENTS if f.split("/")[0] in folders and f not in skip)
