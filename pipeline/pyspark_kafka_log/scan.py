"""How tasks read splits: columns, policy, limits and types."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from codecgen.runtime.located_bytes import Limits
from kafka_log.segment.kernels import ENGINES, Engine
from kafka_log.segment.model import OnDamage, Policy
from pyspark_kafka_log.columns import DEFAULT_COLUMNS, Unit, schema, view_schema

if TYPE_CHECKING:
    from kafka_log.read.topic_views import TopicView

MAX_BYTES = 1 << 30
"""Maximum of ``batch_bytes``. A column holds less than twice as many bytes, so that 32-bit offsets always hold."""


@dataclass(frozen=True)
class Scan:
    """How tasks read splits: columns and types of their rows, and handling of damage.

    Raises:
        ValueError: For values out of range, unknown columns, and a policy that contradicts ``on_damage``.
    """

    columns: tuple[str, ...] = DEFAULT_COLUMNS
    policy: Policy = Policy.KAFKA
    on_damage: OnDamage = "raise"
    batch_rows: int = 16_384
    batch_bytes: int = 64 << 20
    limits: Limits = field(default_factory=Limits)
    engine: Engine = "auto"
    timestamp_unit: Unit = "us"
    view: str | None = None
    show_secrets: bool = False
    ends_corrupt_files: bool = False
    """Whether damage that would be raised ends its file: the rows before the damage stay, and the rest is lost."""

    def __post_init__(self) -> None:
        """Check the values. Raises ValueError as the class describes."""
        if self.batch_rows < 1:
            raise ValueError(f"batch_rows is {self.batch_rows}: it must be at least 1")
        if not 1 <= self.batch_bytes <= MAX_BYTES:
            raise ValueError(f"batch_bytes is {self.batch_bytes}: it must be in 1..{MAX_BYTES}")
        if self.engine not in ENGINES:
            raise ValueError(f"there is no engine {self.engine!r}; known: {', '.join(ENGINES)}")
        if self.policy is Policy.STRICT and self.on_damage != "raise":
            raise ValueError(
                "the policy strict stops at the first problem: on_damage must be raise"
            )
        if self.policy is Policy.SALVAGE and self.on_damage == "raise":
            raise ValueError(
                "the policy salvage continues after damage: on_damage must not be raise"
            )
        _ = self.schema  # an unknown column is an error here, not where the first row is

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        if self.view is not None:
            return view_schema(self.topic_view, self.timestamp_unit)
        return schema(self.columns, timestamp_unit=self.timestamp_unit)

    @cached_property
    def topic_view(self) -> TopicView:
        """The view of an internal topic that is read in place of records, with this scan's columns.
        Only for a scan with a view.
        """
        from kafka_log.read.topic_views import topic_view  # codecs of all that it has

        assert self.view is not None
        return topic_view(self.view, self.columns, show_secrets=self.show_secrets)
