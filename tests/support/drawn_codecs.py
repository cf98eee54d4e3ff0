"""Codecs of the log formats alone, generated from changed schemas as a package of their own."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = "drawn_codecs"
"""The package's name."""


def read_log_schemas(schemas: Path) -> dict[str, str]:
    """Return the texts, by path in ``schemas``, of the log formats and their views, for codecs in PACKAGE."""
    found = {
        p.relative_to(schemas).as_posix(): p.read_text("utf-8") for p in schemas.rglob("*.yaml")
    }
    wanted = re.compile(r"codecgen\.yaml|records/.*|views/(batches|records)\.yaml")
    found = {name: text for name, text in found.items() if wanted.fullmatch(name)}
    del found["records/control_record_value.yaml"]  # what is in it lies elsewhere
    manifest = found["codecgen.yaml"].replace("kafka_codecs", PACKAGE)
    return found | {"codecgen.yaml": manifest}
