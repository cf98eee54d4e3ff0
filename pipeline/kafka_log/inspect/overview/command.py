"""``kafka-log overview``: Show what one wants to know first of a directory: topics, partitions, bytes, times, problems at both ends of each log, and commands
to type next. `kafka-log PATH` is the same. It ends after some seconds, and says what was left out.
"""

from __future__ import annotations

import argparse

from kafka_log.cli.common import (
    GOOD,
    PROBLEMS,
    add_paths,
    find_partitions,
    progress_of,
    screen_width,
)
from kafka_log.cli.output import binary_stdout
from kafka_log.cli.selection import PLACES, add_selection

HELP = "show sizes, times, problems at both ends of each log, and what to type next"
EXAMPLES = """\
  kafka-log overview samples/kafka-4.x
  kafka-log samples/kafka-4.x
  kafka-log samples/kafka-2.8 samples/kafka-4.x --topic 'c*'
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths and the options that select partitions to the parser of ``kafka-log overview``."""
    add_paths(command)
    add_selection(command, *PLACES)


def run_command(options: argparse.Namespace) -> int:
    """Print the overview. Return 1 if the quick check found problems, else 0. Raise NotFoundError or
    DirectoryError if no log matches the paths and options; OSError if a log directory cannot be listed.
    """
    from kafka_log.inspect.overview.quick_check import check_ends
    from kafka_log.inspect.overview.text import format_overview

    options.replicas = options.replicas or "keep"
    with progress_of("reading", None):
        partitions = find_partitions(options)
        found = check_ends(partitions)
    text = format_overview(partitions, found, options.paths, screen_width())
    out = binary_stdout()
    out.write(text.encode("utf-8", "backslashreplace"))
    out.flush()
    return PROBLEMS if found.problems else GOOD
