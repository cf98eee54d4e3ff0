"""What the names of directories and files say."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args
from uuid import UUID

# Ids are 22 letters of base64. The last one stands for two bits: no name ends in a digit then, as those of a broker's own partitions
# do.
_ID = r"(?P<id>[A-Za-z0-9_-]{21}[AQgw])"
_REMOTE_PARTITION = re.compile(rf"(?P<topic>.+)-(?P<partition>[0-9]+)-{_ID}\Z", re.S)
_REMOTE_SEGMENT = re.compile(rf"(?P<base>[0-9]{{20}})-{_ID}\.log\Z")
TIERED_STORAGE_DIRECTORY = "kafka-tiered-storage"
"""The directory that it makes in the one that it is given."""


def remote_partition(name: str) -> tuple[str, int] | None:
    """Topic and partition of a directory's name, None for other names."""
    found = _REMOTE_PARTITION.match(name)
    return None if found is None else (found["topic"], int(found["partition"]))


def remote_segment(name: str) -> int | None:
    """The base offset that the name of a segment says, None for other files."""
    found = _REMOTE_SEGMENT.match(name)
    return None if found is None else int(found["base"])


def parse_remote_ids(path: Path) -> tuple[UUID | None, UUID | None]:
    """The ids of the topic and the segment that the path of a segment says."""
    return _id(_REMOTE_PARTITION, path.parent.name), _id(_REMOTE_SEGMENT, path.name)


def _id(pattern: re.Pattern[str], name: str) -> UUID | None:
    found = pattern.match(name)
    return None if found is None else UUID(bytes=base64.urlsafe_b64decode(found["id"] + "=="))


_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]+)\Z", re.S)
_DATED = re.compile(
    r"(?:(?P<copied>.+)[-._ ])?(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])\Z",
    re.S,
)
_SPECIAL = re.compile(r"(?P<name>.+)\.[0-9a-f]{32,}-(?P<state>delete|stray|future)\Z", re.S)
_SEGMENT = re.compile(r"(?P<base>[0-9]{20})\.log(?:\.(?P<state>deleted|cleaned|swap))?\Z")
_SNAPSHOT = re.compile(r"(?P<base>[0-9]{20})-[0-9]{10}\.checkpoint(?:\.deleted)?\Z")

_MARKED = ("-delete", "-stray", "-future")
_MARKED_AS_BROKERS_READ = re.compile(r"\S+-\S+\.\S+-(?:delete|stray|future)\Z")
_NUMBER_AS_BROKERS_READ = re.compile(r"\+?[0-9]+\Z")
_LARGEST_PARTITION = (1 << 31) - 1
_NO_LOGS = frozenset({"remote-log-index-cache"})
"""Directories that brokers pass over when they look for logs."""

CLUSTER_METADATA = "__cluster_metadata"
"""The topic of the metadata of a cluster."""

LOG_START = "log-start-offset-checkpoint"
RECOVERY_POINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
META = "meta.properties"
CHECKPOINTS = (LOG_START, RECOVERY_POINT, HIGH_WATERMARK, CLEANER)

BROKER_FILE_NAMES = _NO_LOGS | {
    LOCK,
    CLEAN_SHUTDOWN,
    META,
    "bootstrap.checkpoint",
    ".kafka-log-batches.json",
    *CHECKPOINTS,
}
"""What a log directory has beside the directories of its partitions."""

State = Literal[
    "live",
    "deleted",
    "cleaned",
    "swap",
    "delete",
    "stray",
    "future",
    "snapshot",
    "remote",
    "unfinished",
]
"""What a segment is to its broker: ``live``; a file that is about to be deleted, or that a cleaner writes (``cleaned``) or puts into
the place of others (``swap``); of a directory that is about to be deleted (``delete``), that no broker knows (``stray``), or that
moves to another disk (``future``); a ``snapshot`` of the metadata, which has batches as well; a copy in tiered storage, as Kafka's
LocalTieredStorage keeps it (``remote``), or one that was not finished, or whose deletion has begun, as the topic
``__remote_log_metadata`` says (``unfinished``)."""

STATES: tuple[State, ...] = get_args(State)

Include = str | Iterable[str]
"""States of segments as people write them: names, one text with commas between names, ``all``."""

ALL = "all"
"""Every state."""


def parse_include(include: Include | None) -> tuple[State, ...]:
    """The states that are asked for beside ``live``, each once, in the order of :data:`STATES`. Raises ValueError for a name that is none."""
    names = [include] if isinstance(include, str) else list(include or ())
    wanted: set[State] = set()
    for name in names:
        for word in name.split(",") if isinstance(name, str) else [name]:
            wanted.update(_states(word.strip().lower() if isinstance(word, str) else word))
    return tuple(state for state in STATES[1:] if state in wanted)


def _states(word: object) -> Iterable[State]:
    if word == ALL:
        return STATES
    found = [state for state in STATES if state == word]
    if not found:
        raise ValueError(f"no state is called {word!r}; known: {', '.join(STATES)}, {ALL}")
    return found


OFFSET_TOO_LARGE = "its name says more than an offset can be: no broker starts with it"

BROKER_FILE_KINDS = {
    ".index": "an offset index",
    ".timeindex": "a time index",
    ".txnindex": "a transaction index",
    ".snapshot": "a producer snapshot",
    "leader-epoch-checkpoint": "a leader epoch checkpoint",
    "leader_epoch_checkpoint": "a leader epoch checkpoint",
    "-offset-checkpoint": "an offset checkpoint",
    META: "the properties of a log directory",
    "partition.metadata": "the metadata of a partition",
    "quorum-state": "the state of a quorum",
}
"""Files that brokers keep beside segments, by the ends of their names."""


def prevents_broker_start(name: str) -> bool:
    """Whether a broker that finds a directory with this name in its log directory does not start: it is not in the form of topic-partition,
    nor of topic-partition.id-delete, -stray or -future (Kafka's ``UnifiedLog.parseTopicPartitionName``)."""
    if name in _NO_LOGS:
        return False
    if name.endswith(_MARKED):
        if not _MARKED_AS_BROKERS_READ.match(name):
            return True
        name = name.rpartition(".")[0]
    topic, _, number = name.rpartition("-")
    is_number = _NUMBER_AS_BROKERS_READ.match(number)
    return not topic or is_number is None or int(number) > _LARGEST_PARTITION


def parse_live_partition_name(directory: Path) -> tuple[str, int] | None:
    """Topic and partition of a directory's name, None for other names (also those that a broker is about to
    delete, holds as stray, or has not swapped in yet)."""
    found = parse_partition_name(directory)
    return None if found is None or found[2] != "live" else found[:2]


def parse_partition_name(directory: Path) -> tuple[str, int, State] | None:
    """Topic, partition and state of a directory's name, None for other names, also for those with a number that no partition has."""
    special = _SPECIAL.match(directory.name)
    name = special["name"] if special else directory.name
    state: State = special["state"] if special else "live"  # type: ignore[assignment]
    found = _PARTITION.match(name)
    named = (found["topic"], int(found["partition"])) if found else None
    if named is None and (named := remote_partition(directory.name)) is not None:
        state = "remote"
    if named is None or named[1] > _LARGEST_PARTITION:
        return None
    return *named, state


def strip_date_suffix(name: str) -> str | None:
    """Return what a day of a year follows in a name, empty if it is all; None without one. People name copies so, and such names have the
    form of a partition's."""
    found = _DATED.match(name)
    return None if found is None else found["copied"] or ""


def parse_segment_name(name: str) -> tuple[int, State] | None:
    """The base offset and the state that the name of a file says, None for files that have no batches."""
    found = _SEGMENT.match(name)
    if found is not None:
        state: State = found["state"] or "live"  # type: ignore[assignment]
        return int(found["base"]), state
    snapshot, remote = _SNAPSHOT.match(name), remote_segment(name)
    if snapshot is not None:
        return int(snapshot["base"]), "snapshot"
    return None if remote is None else (remote, "remote")
