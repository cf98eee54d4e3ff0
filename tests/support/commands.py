"""Commands of ``kafka-log`` by what they take."""

from __future__ import annotations

from pathlib import Path

from kafka_log.cli import COMMANDS, parser
from kafka_log.cli.suggestions import find_command

LOG_COMMANDS = tuple(name for name in COMMANDS if name not in ("explain", "browse"))
"""Commands that read logs, and end then."""

_OPTIONS = {
    "cut": ("--offsets", "0:1000000"),
    "convert": ("--codec", "zstd"),
}
_QUERY = "select count(*) from records"


def command_line(command: str, logs: Path, out: Path) -> list[str]:
    """Return the words of one of LOG_COMMANDS, with options such as ``dump --batches`` or alone, that read all of ``logs``.
    Commands that compare or merge logs read it twice; what a command writes goes to ``out``. ``hexdump`` reads the first segment."""
    name, *options = command.split()
    paths = [str(logs)]
    if name == "hexdump":
        paths = [str(min(logs.rglob("*.log")))]
    elif name in ("diff", "merge"):
        paths *= 2
    elif name == "coordinator":
        paths.insert(0, "group")
    elif name == "sql":
        paths.append(_QUERY)
    if "--out" in options_of(name) and name != "diff":
        options += ["--out", str(out)]
    return [name, *paths, *_OPTIONS.get(name, ()), *options]


def options_of(name: str) -> frozenset[str]:
    """Return the options of a command."""
    return frozenset(find_command(parser(name), name)._option_string_actions)
