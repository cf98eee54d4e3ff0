"""Command line tool ``kafka-log``: reads, checks, copies and exports logs without a broker."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from codecgen.runtime import completion
from codecgen.runtime.arrow.view import NoKernelsError
from codecgen.runtime.errors import CodecError
from codecgen.runtime.extras import missing
from codecgen.runtime.standard_output import discard_stdout
from codecgen.runtime.version import RELEASE
from codecgen.runtime.working_directory import is_working_directory_gone
from kafka_log.cli import interruption
from kafka_log.cli.common import (
    COULD_NOT_RUN,
    EXIT_CODES,
    GOOD,
    PROBLEMS,
    EngineError,
)
from kafka_log.cli.messages import print_message, warnings_as_messages
from kafka_log.cli.output import has_bytes
from kafka_log.cli.ranges import join_dashed_values
from kafka_log.cli.selection import describe_unknown_arguments
from kafka_log.cli.suggestions import SuggestingParser, find_command
from kafka_log.cli.working_directory import ADVICE, has_relative_path
from kafka_log.logs.partitions import DirectoryError, NotFoundError
from kafka_log.segment.kernels import NotGeneratedError
from kafka_log.segment.similar_names import suggest_similar
from kafka_log.segment.urls import is_url

COMMANDS = {
    "overview": "kafka_log.inspect.overview.command",
    "browse": "kafka_log.inspect.browse.command",
    "ls": "kafka_log.cli.ls",
    "stat": "kafka_log.inspect.statistics.command",
    "check": "kafka_log.inspect.check.command",
    "explain": "kafka_log.inspect.check.explain_command",
    "report": "kafka_log.inspect.report.command",
    "diff": "kafka_log.inspect.diff.command",
    "dump": "kafka_log.inspect.dump.command",
    "hexdump": "kafka_log.inspect.hexdump.command",
    "txn": "kafka_log.inspect.transactions.command",
    "producers": "kafka_log.inspect.producers.command",
    "groups": "kafka_log.inspect.groups.command",
    "coordinator": "kafka_log.inspect.groups.coordinator_command",
    "metadata": "kafka_log.inspect.metadata.command",
    "keys": "kafka_log.inspect.keys.command",
    "schemas": "kafka_log.inspect.schemas.command",
    "sql": "kafka_log.cli.sql",
    "export": "kafka_log.cli.export",
    "salvage": "kafka_log.cli.salvage",
    "merge": "kafka_log.inspect.merge.command",
    "cut": "kafka_log.cli.cut",
    "reindex": "kafka_log.cli.reindex",
    "convert": "kafka_log.cli.convert",
}
"""Modules of the commands, in the order of the help. Each has HELP, EXAMPLES, ``add_arguments`` and ``run_command``."""

TASKS = {
    "look at logs": (
        *("overview", "browse", "ls", "stat", "dump"),
        *("keys", "schemas", "sql", "hexdump"),
    ),
    "find out what happened": (
        *("check", "explain", "report", "diff", "txn"),
        *("producers", "groups", "coordinator", "metadata"),
    ),
    "take data out": ("export",),
    "repair and copy": ("salvage", "merge", "cut", "reindex", "convert"),
}
"""Commands by task, for ``kafka-log`` alone."""

EXAMPLES = """\
  kafka-log samples/kafka-4.x
  kafka-log check samples/kafka-4.x
  kafka-log dump samples/kafka-4.x/codecs-0 --offsets 10:20
  kafka-log export samples/kafka-4.x --topic codecs --out orders
  kafka-log salvage samples/kafka-4.x --topic codecs --out recovered
"""

_OTHER_COMMANDS = ("completion", "help")
"""Commands of which no module is imported."""
_OF_PATHS = tuple(filter(None, (os.sep, os.altsep)))
"""With one of these a word is a path, also if it does not exist."""

PATHS = """\
A path is a segment, a partition directory (topic-0), a broker's log directory, or a directory above log directories. The files \
in it are never changed, unless a query of sql writes there (copy).
"""


def _command_module(name: str) -> Any:
    """Import the module of a command and return it. Raise KeyError if there is no such command."""
    return import_module(COMMANDS[name])


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the argument parser of ``kafka-log`` with the commands ``only``, ``completion`` and
    ``help``. It has these two alone if ``only`` is one of them, and all commands if it is None or
    not the name of a command. The modules of these commands are imported.

    Importing all commands takes longer than many of them take to answer.
    """
    names = () if only in _OTHER_COMMANDS else (only,) if only in COMMANDS else COMMANDS
    modules = {name: _command_module(name) for name in names}
    main_parser = SuggestingParser(
        prog="kafka-log",
        usage="%(prog)s [-h] [-V] COMMAND ...\n       %(prog)s PATH ...",
        description="Inspect, check, export and repair Kafka log directories without a broker.",
        epilog=_epilog(EXAMPLES)
        + "\nkafka-log PATH is kafka-log overview PATH, and kafka-log help COMMAND is kafka-log COMMAND --help.\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    main_parser.add_argument("-V", "--version", action="version", version=f"kafka-log {RELEASE}")
    commands = main_parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog="kafka-log"
    )
    for name, module in modules.items():
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=_wrap_paragraphs(module.__doc__.partition("``: ")[2]),
            epilog=_epilog(module.EXAMPLES),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # --partition is not --partitions
        )
        module.add_arguments(command)
    shells = commands.add_parser(
        "completion",
        help=completion.ABOUT,
        description=completion.DESCRIPTION,
        epilog=completion.note("kafka-log"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shells.add_argument("shell", choices=completion.SHELLS, help="shell to print the script for")
    help_command = commands.add_parser("help", help="show the commands by task, or the help of one")
    help_command.add_argument(
        "about", nargs="?", metavar="COMMAND", choices=(*COMMANDS, *_OTHER_COMMANDS)
    )
    return main_parser


def format_tasks() -> str:
    """Return the overview of commands by task, with one line for each."""
    lines = ["usage: kafka-log COMMAND PATH ... [options]", "       kafka-log PATH ...", ""]
    for task, names in TASKS.items():
        lines.append(task)
        lines += [f"  {name:<12} {_command_module(name).HELP}" for name in names]
        lines.append("")
    lines += [
        "kafka-log PATH          what a directory holds, and what to type next",
        "kafka-log help COMMAND  options and examples of a command",
    ]
    return "\n".join(lines)


def _expand_shorthands(words: list[str]) -> list[str]:
    """Return the command line (at least one word) with short forms written out. ``overview`` is added before a path
    that comes first (a URL, something that exists, or a text with ``/``), and ``help COMMAND``
    becomes ``COMMAND --help``; other words stay. A command wins over a file of that name. Raise
    ValueError, with similar commands, if the first word is neither an option nor a command nor a
    path.
    """
    first = words[0]
    if first == "help" and len(words) == 2 and words[1] in (*COMMANDS, *_OTHER_COMMANDS):
        return [words[1], "--help"]
    if first.startswith("-") or first in COMMANDS or first in _OTHER_COMMANDS:
        return words
    if is_url(first) or os.path.lexists(first) or any(mark in first for mark in _OF_PATHS):
        return ["overview", *words]
    hint = suggest_similar(first, (*COMMANDS, *_OTHER_COMMANDS))
    raise ValueError(
        f"{first!r} is neither a command nor a file or directory; kafka-log help lists the commands{hint}"
    )


def _epilog(examples: str) -> str:
    """Return the end of a help text: examples, what a path is, exit codes."""
    return f"examples:\n{examples}\n{_wrap_paragraphs(PATHS)}\n\n{_wrap_paragraphs(EXIT_CODES)}\n"


def _wrap_paragraphs(text: str) -> str:
    """Return text with each paragraph wrapped at the width of the screen."""
    width = max(shutil.get_terminal_size().columns - 2, 58)
    return "\n\n".join(textwrap.fill(paragraph, width) for paragraph in text.split("\n\n"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (None: that of this process) and return the exit code. It is 0
    if all is good, or the reader of stdout has gone; 1 if problems were found; 2 if the command
    could not run, also without arguments. After Ctrl-C print a message and return 2. Raise
    SystemExit for invalid arguments (2), ``--help`` and ``--version`` (0). Print expected errors;
    unexpected exceptions pass through.
    """
    try:
        code = _run_command_line(argv)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as interrupt:
        print_message(interruption.format_message(interrupt))
        return COULD_NOT_RUN
    except BrokenPipeError:
        # The reader of our output has seen enough.
        discard_stdout()
        return GOOD
    except OSError as error:
        discard_stdout()
        print_message(f"standard output: {error}")
        return COULD_NOT_RUN


def _run_command_line(argv: Sequence[str] | None) -> int:
    """Parse the arguments, run the command and return its exit code; without arguments print the
    overview of commands and return 2. Print expected errors and return 1 for CodecError; 2 for
    DirectoryError, NotFoundError, EngineError, other OSErrors, and missing kernels, codecs or
    dependencies. Raise OSError without a file name if standard output cannot be written (BrokenPipeError if its reader has gone), SystemExit for
    invalid arguments, KeyboardInterrupt after Ctrl-C. Other exceptions pass.
    """
    if sys.stdout is None:  # closed by whoever started this
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    words = join_dashed_values(sys.argv[1:] if argv is None else argv)
    if not words:
        print(format_tasks())
        return COULD_NOT_RUN
    try:
        words = _expand_shorthands(words)
    except ValueError as error:
        parser("completion").error(str(error))
    command_parser = parser(*words[:1])
    options, unknown = command_parser.parse_known_args(words)
    if hasattr(options, "paths") and not any(word.startswith("-") for word in unknown):
        options.paths += unknown  # argparse takes paths before an option, or after it, not both
    elif unknown:
        known = find_command(command_parser, options.command)._option_string_actions
        command_parser.error(describe_unknown_arguments(options, unknown, known))
    is_printed = options.command != "export"  # which writes files of the format
    if is_printed and getattr(options, "format", None) in ("arrow", "parquet"):
        if sys.stdout.isatty():
            command_parser.error(
                f"--format {options.format} writes binary data, which a terminal cannot show: add > FILE"
            )
        if not has_bytes():
            command_parser.error(
                f"--format {options.format} writes binary data, but sys.stdout accepts only text: choose --format jsonl, or give sys.stdout a buffer"
            )
    if hasattr(sys.stdout, "reconfigure") and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8")  # keys and headers are any text
    try:
        if options.command == "help":
            print(format_tasks())
            return GOOD
        if options.command == "completion":
            print(completion.script(parser(), options.shell))
            return GOOD
        with warnings_as_messages():
            return int(_command_module(options.command).run_command(options))
    except BrokenPipeError:
        raise
    except CodecError as error:
        print_message(error)
        return PROBLEMS
    except NoKernelsError as error:
        print_message(f"{error}: use --engine construct or --engine auto")
        return COULD_NOT_RUN
    except NotGeneratedError as error:
        print_message(error)
        return COULD_NOT_RUN
    except ModuleNotFoundError as error:
        advice = missing(options.command, error)
        if advice is None:
            raise
        print_message(advice)
        return COULD_NOT_RUN
    except (DirectoryError, EngineError, NotFoundError, OSError) as error:
        # All other files that commands write have their names in errors.
        nameless = isinstance(error, OSError) and error.strerror and error.filename is None
        is_gone = is_working_directory_gone() and has_relative_path(options)
        if nameless and not is_gone:
            raise
        advice = f"; {ADVICE}" if is_gone else ""
        print_message(ADVICE if nameless else f"{error}{advice}")
        return COULD_NOT_RUN
