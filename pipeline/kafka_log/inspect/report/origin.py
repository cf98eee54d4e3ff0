"""How a report was made, and commands that show more of the same logs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka_log.logs.partition_filters import Numbers, format_numbers

_EVERY_OPTION = ("topic", "partition", "include", "replicas")
_OPTIONS: Mapping[str, Sequence[str]] = {
    "check": ("topic", "partition", "include"),
    "groups": ("topic", "partition"),
    "metadata": ("topic", "partition"),
}
"""Selection options that a command takes over from the report; others take all."""


def format_selection(
    topics: Sequence[str] | None,
    numbers: Sequence[Numbers] | None,
    include: Sequence[str],
    replicas: str | None,
) -> dict[str, str]:
    """Return the values of the selection options that were given, by name, as on a command line."""
    values = {
        "topic": ",".join(topics or ()),
        "partition": ",".join(map(format_numbers, numbers or ())),
        "include": ",".join(include),
        "replicas": replicas or "",
    }
    return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True)
class Origin:
    """How a report was made.

    Attributes:
        paths: The paths that were read.
        selection: Values of the selection options that were given, by name.
        own_options: Further options of the report, as words of a command line.
        begun_ms: Time when reading began, in milliseconds since 1970.
        ended_ms: Time when reading ended.
        title: Heading of the page.
        has_replicas: Whether several directories hold one partition.
        now_ms: Time given as ``--now``, at which the log was in this state; None if it was not given.
    """

    paths: Sequence[str]
    selection: Mapping[str, str]
    own_options: Sequence[str]
    begun_ms: int
    ended_ms: int
    title: str
    has_replicas: bool = False
    now_ms: int | None = None

    def write_command(self, name: str, more: str = "", *, one_copy: bool = False) -> str:
        """Return the command line that runs the command ``name`` of kafka-log on the same logs,
        quoted for a shell. It has those selection options of the report that the command takes, and
        ``more`` last, as it is. With ``one_copy``, add ``--replicas=newest`` if partitions have
        several copies and the report's options do not choose one.
        """
        words = list(self.paths)
        for option in _OPTIONS.get(name, _EVERY_OPTION):
            if option in self.selection:
                words.append(f"--{option}={self.selection[option]}")
        if one_copy and self.has_replicas and "replicas" not in self.selection:
            words.append("--replicas=newest")
        return " ".join(["kafka-log", name, *map(shlex.quote, words), *([more] if more else [])])

    def write_own_command(self) -> str:
        """Return the command line that made the report."""
        return self.write_command("report", shlex.join(self.own_options))
