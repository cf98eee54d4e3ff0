"""Commands of ``kafka-log`` by what they take."""

from __future__ import annotations

from kafka_log.cli import COMMANDS

LOG_COMMANDS = tuple(name for name in COMMANDS if name != "explain")
"""Commands that read logs."""
