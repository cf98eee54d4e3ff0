"""``meta.properties``: whose log directory it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from codecgen.runtime.errors import CodecError
from kafka_codecs import META_PROPERTIES
from kafka_log.logs.names import META
from kafka_log.logs.small_files import small_file

if TYPE_CHECKING:
    from kafka_codecs import MetaProperties


def broker_ids(directory: Path) -> MetaProperties | None:
    """What the file in a log directory says; None where there is none, or it cannot be read."""
    path = directory / META
    try:
        return META_PROPERTIES.parse(small_file(path), file=os.fspath(path), strict=False)
    except (OSError, CodecError):
        return None


def node_of(said: MetaProperties) -> int | None:
    """The id of the node, which older brokers call that of the broker."""
    return said.broker_id if said.node_id is None else said.node_id
