"""Small directories of Kafka's message definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codecgen.diagnostics import Diagnostic
from codecgen.importers import kafka_json

MESSAGE = {
    "type": "data",
    "name": "Parcel",
    "validVersions": "0-3",
    "flexibleVersions": "2+",
    "fields": [],
}
WEIGHT = {"name": "Weight", "type": "int32", "versions": "0+"}


def definitions(directory: Path, *messages: dict[str, Any] | str) -> Path:
    """A directory with the definitions, one to a file."""
    directory.mkdir(parents=True, exist_ok=True)
    for i, message in enumerate(messages):
        text = message if isinstance(message, str) else json.dumps({**MESSAGE, **message})
        (directory / f"{i}.json").write_text(text, encoding="utf-8")
    return directory


def findings(tmp_path: Path, *messages: dict[str, Any] | str) -> list[Diagnostic]:
    return list(kafka_json.find(definitions(tmp_path, *messages)).findings)


def field(**keys: Any) -> dict[str, Any]:
    """A message with one field."""
    return {"fields": [{"name": "Weight", "type": "int32", "versions": "0+", **keys}]}
