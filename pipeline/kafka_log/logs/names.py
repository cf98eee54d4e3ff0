"""Parsing of the names of partition directories and segment files, and the names of files that brokers keep beside them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from kafka_log.segment.similar_names import suggest_similar

# Ids are 22 letters of base64. The last letter encodes two bits, so that it is never a digit, unlike the end of a live partition's name.
_ID = r"(?P<id>[A-Za-z0-9_-]{21}[AQgw])"
_REMOTE_PARTITION = re.compile(rf"(?P<topic>.+)-(?P<partition>[0-9]+)-{_ID}\Z", re.S)
_REMOTE_SEGMENT = re.compile(rf"(?P<base>[0-9]{{20}})-{_ID}\.log\Z")
TIERED_STORAGE_DIRECTORY = "kafka-tiered-storage"
"""The directory that Kafka's LocalTieredStorage creates in its base directory."""


def parse_remote_ids(path: Path) -> tuple[UUID | None, UUID | None]:
    """Return the topic id and the segment id in the path of a segment in tiered storage. An id is None if its name has another form."""
    return parse_remote_topic_id(path.parent), _id(_REMOTE_SEGMENT, path.name)


def parse_remote_topic_id(directory: Path) -> UUID | None:
    """Return the topic id in the name of a partition directory in tiered storage, None for any other name."""
    return _id(_REMOTE_PARTITION, directory.name)


def _id(pattern: re.Pattern[str], name: str) -> UUID | None:
    """Return the id in a name, None if the name does not match ``pattern``."""
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
"""Directories that brokers ignore when they load logs."""

CLUSTER_METADATA = "__cluster_metadata"
"""The internal topic of cluster metadata."""
CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
REMOTE_LOG_METADATA = "__remote_log_metadata"

INTERNAL_TOPICS = (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    SHARE_GROUP_STATE,
    CLUSTER_METADATA,
    REMOTE_LOG_METADATA,
)
"""Kafka's internal topics."""

LOG_START = "log-start-offset-checkpoint"
RECOVERY_POINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LEADER_EPOCHS = "leader-epoch-checkpoint"
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
"""Names of files and directories in a log directory that are not partitions."""

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
"""State of a segment, given by the name of its file or directory:

- ``live``: part of the log.
- ``deleted``: file that the broker is about to delete.
- ``cleaned``: file that a log cleaner is writing.
- ``swap``: cleaned file that is about to replace others.
- ``delete``: in a directory that the broker is about to delete.
- ``stray``: in a directory that the broker does not know.
- ``future``: in a directory that is being moved to another disk.
- ``snapshot``: metadata snapshot, which consists of batches too.
- ``remote``: copy in tiered storage, as LocalTieredStorage names it.
- ``unfinished``: remote copy that is not complete or is being deleted, according to ``__remote_log_metadata``.
"""

STATES: tuple[State, ...] = get_args(State)

Include = str | Iterable[str]
"""States of segments as a user writes them: names, one text with commas between names, or ``all``."""

ALL = "all"
"""The word for every state."""


def parse_include(include: Include | None) -> tuple[State, ...]:
    """Return the segment states in ``include`` (one text with commas, or several) other than
    ``live``, each once, in the order of :data:`STATES`. ``all`` stands for all states; None for
    none. Upper case and spaces around names are accepted. Raise ValueError for an unknown or empty
    name, also for ``""``; TypeError if ``include`` cannot be iterated.
    """
    names = [include] if isinstance(include, str) else list(include or ())
    wanted: set[State] = set()
    for name in names:
        for word in name.split(",") if isinstance(name, str) else [name]:
            wanted.update(_states(word.strip().lower() if isinstance(word, str) else word))
    return tuple(state for state in STATES[1:] if state in wanted)


def _states(word: object) -> Iterable[State]:
    """Return the state named ``word`` as a list, all states for ``all``. Raise ValueError for any
    other value.
    """
    if word == ALL:
        return STATES
    found = [state for state in STATES if state == word]
    if not found:
        hint = suggest_similar(word, (*STATES, ALL)) if isinstance(word, str) else ""
        raise ValueError(
            f"{word!r} is not a state of segments; known: {', '.join(STATES)}, {ALL}{hint}"
        )
    return found


OFFSET_TOO_LARGE = "the number in its name exceeds the largest offset: no broker starts with it"
NOT_A_SEGMENT_NAME = "its name is not that of a segment (20 digits and .log): no broker reads it; to read it, pass its path"

BROKER_FILE_KINDS = {
    ".index": "an offset index",
    ".timeindex": "a time index",
    ".txnindex": "a transaction index",
    ".snapshot": "a producer snapshot",
    LEADER_EPOCHS: "a leader epoch checkpoint",
    "leader_epoch_checkpoint": "a leader epoch checkpoint",
    "-offset-checkpoint": "an offset checkpoint",
    META: "the properties of a log directory",
    "partition.metadata": "the metadata of a partition",
    "quorum-state": "the state of a quorum",
}
"""Kinds of files that brokers keep beside segments, by the end of their names."""


def prevents_broker_start(name: str) -> bool:
    """Return whether a broker refuses to start if a directory with this name lies in its log
    directory: the name is neither TOPIC-NUMBER nor TOPIC-NUMBER.ID with ``-delete``, ``-stray`` or
    ``-future``, or the number exceeds 2^31 - 1. Return False for ``remote-log-index-cache``.

    Allowed names are topic-partition and topic-partition.id-delete, -stray or -future (``UnifiedLog.parseTopicPartitionName``).
    """
    if name in _NO_LOGS:
        return False
    if name.endswith(_MARKED):
        if not _MARKED_AS_BROKERS_READ.match(name):
            return True
        name = name.rpartition(".")[0]
    topic, _, number = name.rpartition("-")
    is_number = _NUMBER_AS_BROKERS_READ.match(number)
    return not topic or is_number is None or int(number) > _LARGEST_PARTITION


class PartitionName(NamedTuple):
    """Topic, partition number and state in the name of a partition directory."""

    topic: str
    partition: int
    state: State


def parse_live_partition_name(directory: Path) -> tuple[str, int] | None:
    """Return topic and partition in the name of a live partition directory, None for any other name."""
    name = parse_partition_name(directory)
    return None if name is None or name.state != "live" else (name.topic, name.partition)


def parse_partition_name(directory: Path) -> PartitionName | None:
    """Return topic, partition number and state in the name of a partition directory: ``live``, the
    state that a suffix such as ``-delete`` states, or ``remote`` for a directory of tiered storage.
    Return None if the name has another form, or its partition number exceeds 2^31 - 1.
    """
    special = _SPECIAL.match(directory.name)
    state: State = special["state"] if special else "live"  # type: ignore[assignment]
    found = _PARTITION.match(special["name"] if special else directory.name)
    if found is None:
        found, state = _REMOTE_PARTITION.match(directory.name), "remote"
    if found is None or (partition := int(found["partition"])) > _LARGEST_PARTITION:
        return None
    return PartitionName(found["topic"], partition, state)


def strip_date_suffix(name: str) -> str | None:
    """Return the part of a directory name before a date at its end (``2026-11-22``), without the
    ``-``, ``.``, ``_`` or blank between both; ``""`` if the whole name is a date. Return None if it
    does not end with a date.

    People add dates to names of copied directories. Such a name has the form of a partition's: ``orders-0-2026-11-22``.
    """
    found = _DATED.match(name)
    return None if found is None else found["copied"] or ""


_SEGMENT_ENDINGS = (".log", ".deleted", ".cleaned", ".swap", ".checkpoint")


def parse_segment_name(name: str) -> tuple[int, State] | None:
    """Return base offset and state in the file name of a segment (live, deleted and others),
    metadata snapshot (``snapshot``) or copy in tiered storage (``remote``). Return None for any
    other name.
    """
    if not name.endswith(
        _SEGMENT_ENDINGS
    ):  # most files beside segments: this is faster than the patterns
        return None
    if (found := _SEGMENT.match(name)) is not None:
        state: State = found["state"] or "live"  # type: ignore[assignment]
        return int(found["base"]), state
    if (found := _SNAPSHOT.match(name)) is not None:
        return int(found["base"]), "snapshot"
    found = _REMOTE_SEGMENT.match(name)
    return None if found is None else (int(found["base"]), "remote")
