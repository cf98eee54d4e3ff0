"""What stores are opened with: options as fsspec calls them (``storage.key``), or as Hadoop does (``fs.s3a.access.key``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark_kafka_log.hadoop_stores import of_hadoop
from pyspark_kafka_log.options import OptionError

_OWN = "storage."


def storage_options(url: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The options of fsspec's class for a URL, by those of Spark; ``storage.`` goes before Hadoop's. Names are in small letters, as
    all options of stores are. Raises :class:`OptionError`, which shows no value."""
    found = of_hadoop(
        url, {name: text for name, text in given.items() if not name.startswith(_OWN)}
    )
    for name, text in given.items():
        if name.startswith(_OWN):
            found[name.removeprefix(_OWN)] = _value(name, text)
    return found


def _value(name: str, text: str) -> Any:
    """A text, true or false, or a JSON object or list."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise OptionError(name, "it begins as JSON does, and is none") from None
