"""What the names of directories and files in tiered storage say, as Kafka's LocalTieredStorage gives them."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from uuid import UUID

# Ids are 22 letters of base64. The last one stands for two bits: no name ends in a digit then, as those of a broker's own partitions
# do.
_ID = r"(?P<id>[A-Za-z0-9_-]{21}[AQgw])"
_PARTITION = re.compile(rf"(?P<topic>.+)-(?P<partition>[0-9]+)-{_ID}\Z", re.S)
_SEGMENT = re.compile(rf"(?P<base>[0-9]{{20}})-{_ID}\.log\Z")
TIER = "kafka-tiered-storage"
"""The directory that it makes in the one that it is given."""


def remote_partition(name: str) -> tuple[str, int] | None:
    """Topic and partition of a directory's name, None for other names."""
    found = _PARTITION.match(name)
    return None if found is None else (found["topic"], int(found["partition"]))


def remote_segment(name: str) -> int | None:
    """The base offset that the name of a segment says, None for other files."""
    found = _SEGMENT.match(name)
    return None if found is None else int(found["base"])


def ids_of(path: Path) -> tuple[UUID | None, UUID | None]:
    """The ids of the topic and the segment that the path of a segment says."""
    return _id(_PARTITION, path.parent.name), _id(_SEGMENT, path.name)


def _id(pattern: re.Pattern[str], name: str) -> UUID | None:
    found = pattern.match(name)
    return None if found is None else UUID(bytes=base64.urlsafe_b64decode(found["id"] + "=="))
