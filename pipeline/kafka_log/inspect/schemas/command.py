"""``kafka-log schemas``: List the schemas of a schema registry from its topic, and the topics whose keys and values use them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_log.cli.common import COULD_NOT_RUN, PROBLEMS, progress_of
from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import number_type
from kafka_log.cli.schemas import add_schemas
from kafka_log.cli.tables import add_table_arguments, add_wide, show, size_of

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "list schemas, and the topics that use them"
EXAMPLES = """\
  kafka-log schemas samples/schema-registry
  kafka-log schemas samples/schema-registry --topic orders --wide
"""

_HIDDEN = ("guid", "schema")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, the options that select partitions, the source of schemas and the output options
    of ``kafka-log schemas`` to its parser.
    """
    output = add_table_arguments(command)
    add_wide(output)
    reading = command.add_argument_group("reading")
    add_schemas(reading)
    count = reading.add_mutually_exclusive_group()
    count.add_argument(
        "--records",
        type=number_type("a number of records", 0),
        default=10_000,
        metavar="N",
        help="read the first N records of each partition to find the schemas that it uses (default %(default)s)",
    )
    count.add_argument(
        "--all-records",
        action="store_const",
        dest="records",
        const=None,
        help="read all records (default: the first ones)",
    )


def run_command(options: argparse.Namespace) -> int:
    """Print the schemas. Return 1 if records of the registry's topic or of logs are damaged or
    invalid (the problems are printed), 2 after the message of a ValueError: a source of schemas is
    invalid, or a topic or partition does not exist; else 0. Raise DirectoryError if a path or
    source holds no log or schemas, or two directories hold one partition without ``--replicas``;
    OSError if the source cannot be read.
    """
    problems: list[str] = []

    def answer(log: LogDirectory) -> pa.Table:
        """Return the table to print, and note problems."""
        with progress_of("reading", size_of(log)) as advance:
            found = log.schemas(
                source=options.schemas,
                records=options.records,
                on_problem=problems.append,
                advance=advance,
            )
        if options.format != "text":
            return found
        hidden = () if options.wide else _HIDDEN
        empty = [n for n in ("references",) if not any(found.column(n).to_pylist())]
        return found.drop_columns([*hidden, *empty])

    try:
        code = show(options, answer, "no schemas", has_bar=True, filtered=None)
    except ValueError as error:
        print_message(error)
        return COULD_NOT_RUN
    for problem in problems:
        print_message(problem)
    return PROBLEMS if problems else code
