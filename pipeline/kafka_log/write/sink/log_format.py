"""Settings of written logs, and the job that driver and tasks share."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from codecgen.runtime.compression import compress
from codecgen.runtime.errors import CodecError
from kafka_codecs import TimestampType
from kafka_log.segment.versions import NEWEST, codecs_of, has_field, refuse_unwritten
from kafka_log.write.encoding import CODECS

TIMESTAMP_TYPES = tuple(kind.label for kind in TimestampType)
"""Kafka's ``message.timestamp.type``, by their numbers."""

MAX_PARTITIONS = 1_000_000
MAX_BATCH = 1 << 28
MAX_SEGMENT = (1 << 31) - 1
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")
TOPIC_RULE = "use 1 to 249 characters of a-z, A-Z, 0-9, ., _ and -, but not . or .. alone"
_ID = re.compile(r"[A-Za-z0-9_-]{22}\Z")


class FormatError(ValueError):
    """Raised for a setting that cannot be used.

    Attributes:
        name: The argument.
        reason: What is wrong with it.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def now_ms() -> int:
    """Return the current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def is_topic(name: str) -> bool:
    """Return whether Kafka allows a name for a topic."""
    return _TOPIC.match(name) is not None and name not in (".", "..")


@dataclass(frozen=True, slots=True)
class LogFormat:
    """Settings of written logs. Raises :class:`FormatError` for a setting that cannot be used."""

    topic: str | None = None
    partitions: int | None = None
    codec: str = "none"
    level: int | None = None
    batch_bytes: int = 16384
    batch_records: int | None = None
    segment_bytes: int = 1 << 30
    magic: int = NEWEST
    timestamp_type: str | None = None
    topic_id: str | None = None

    def __post_init__(self) -> None:
        for name in (
            "partitions",
            "level",
            "batch_bytes",
            "batch_records",
            "segment_bytes",
            "magic",
        ):
            if not isinstance(value := getattr(self, name), int | None) or isinstance(value, bool):
                raise FormatError(name, f"{value!r} is not a whole number")
        if self.topic is not None and not is_topic(self.topic):
            raise FormatError(
                "topic",
                f"{self.topic!r} is not a topic name: {TOPIC_RULE}",
            )
        if self.codec not in CODECS:
            raise FormatError("codec", f"{self.codec!r} is not one of {', '.join(CODECS)}")
        try:
            refuse_unwritten(self.magic)
        except ValueError as error:
            raise FormatError("magic", str(error)) from None
        if self.codec not in codecs_of(self.magic):
            raise FormatError(
                "codec",
                f"message format {self.magic} (magic) does not have {self.codec}; it has:"
                f" {', '.join(codecs_of(self.magic))}",
            )
        if self.timestamp_type is not None and self.timestamp_type not in TIMESTAMP_TYPES:
            listed = ", ".join(TIMESTAMP_TYPES)
            raise FormatError("timestamp_type", f"{self.timestamp_type!r} is not one of {listed}")
        if self.timestamp_type is not None and not has_field(self.magic, "timestamp_type"):
            raise FormatError(
                "timestamp_type",
                f"message format {self.magic} (magic) has no timestamps: leave it out, or write magic 1 or 2",
            )
        for name, most in (
            ("partitions", MAX_PARTITIONS),
            ("batch_bytes", MAX_BATCH),
            ("batch_records", MAX_BATCH),
            ("segment_bytes", MAX_SEGMENT),
        ):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= most:
                raise FormatError(name, f"{value} is not in 1..{most}")
        if self.level is not None:
            if self.codec == "none":
                raise FormatError(
                    "level",
                    f"{self.level} was given, but the codec is none: name a codec that has levels",
                )
            try:
                compress(self.codec, b"", level=self.level)
            except CodecError as error:
                raise FormatError("level", error.reason) from None
        if self.topic_id is not None:
            if self.topic is None:
                raise FormatError("topic_id", "it needs a topic: each topic has an id of its own")
            if not _ID.match(self.topic_id):
                raise FormatError(
                    "topic_id", f"{self.topic_id!r} is not a topic id: Kafka's have 22 characters"
                )


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A job that writes to the log directory ``target``.

    ``counts`` are the numbers of partitions of existing topics; ``created_ms`` is the timestamp of records without one.
    """

    target: str
    format: LogFormat
    overwrite: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    passed: tuple[str, ...] = ()
    """Columns that rows may have, and that are not written."""
    missing: tuple[str, ...] = ()
    """The target and its parents that did not exist before the job, the deepest first."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created_ms: int = field(default_factory=now_ms)

    def partitions_of(self, topic: str) -> int:
        """Return the number of partitions that the records of a topic are spread over."""
        return self.format.partitions or self.counts.get(topic, 1)

    def to_json(self) -> str:
        """Return the job as JSON, for tasks."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the job that :meth:`to_json` wrote. Raise FormatError for a setting that cannot be
        used; ValueError, KeyError or TypeError for any other text.
        """
        made: dict[str, Any] = json.loads(text)
        made["format"] = LogFormat(**made["format"])
        for name in ("passed", "missing"):
            made[name] = tuple(made[name])
        return cls(**made)
