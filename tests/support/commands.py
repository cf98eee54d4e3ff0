"""Commands of ``kafka-log`` by what they take."""

from __future__ import annotations

from kafka_log.cli import COMMANDS

LOG_COMMANDS = tuple(name for name in COMMANDS if name not in ("explain", "browse"))
"""Commands that read logs, and end then."""
