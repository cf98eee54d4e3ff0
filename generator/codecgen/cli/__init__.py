"""Command line of codecgen: parses arguments and runs a command."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from codecgen import directories
from codecgen.cli import (
    evolution_commands,
    explain_commands,
    format_commands,
    schema_commands,
    value_commands,
)
from codecgen.cli.common import COULD_NOT_RUN, EXIT_CODES, FINDINGS, GOOD, UsageError, report_errors
from codecgen.runtime import completion
from codecgen.runtime.standard_output import discard_stdout
from codecgen.runtime.version import RELEASE
from codecgen.targets.registry import ON_REQUEST, TARGETS, TEMPLATED

__all__ = ["COULD_NOT_RUN", "FINDINGS", "GOOD", "UsageError", "main"]

_SEGMENT = "samples/kafka-4.x/codecs-0/00000000000000000000.log"
_SCHEMA_DIRECTORY = "schema directory, which holds codecgen.yaml"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Return 0 if it succeeded, 1 if it reported findings, 2 if it could not run:
    UsageError (also for wrong arguments), TemplateFilesError, OutputError and OSError are printed
    to standard error. Return 2 without a message, and close standard error, if the reader of a pipe
    has gone. Before, make standard output and error replace characters that they cannot encode.
    ``argv`` defaults to the process's arguments. ``--help`` and ``--version`` raise SystemExit.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character is no reason to fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")

    def run_command() -> int:
        """Parse the arguments and run the command that they name. Return its exit code."""
        arguments = _parser().parse_args(argv)
        command: Callable[[argparse.Namespace], int] = arguments.run
        code = command(arguments)
        sys.stdout.flush()
        return code

    try:
        code = report_errors(run_command)
    except BrokenPipeError:
        discard_stdout()
        sys.stderr.close()  # which may be the same pipe
        return COULD_NOT_RUN
    try:
        sys.stdout.flush()
    except OSError:  # its first error was reported
        discard_stdout()
    return code


def _complete(arguments: argparse.Namespace) -> int:
    """Run ``codecgen completion``. Return the exit code."""
    print(completion.script(_parser(), arguments.shell))
    return GOOD


class _Parser(argparse.ArgumentParser):
    """A parser that raises UsageError for invalid arguments, and OSError if it cannot print help."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a help text or the version. Raise OSError if it cannot be written."""
        print(message, end="", file=file or sys.stderr, flush=True)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with a hint at ``--help``."""
        raise UsageError(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    """Return the parser with all commands and their options. Each command sets ``run`` to its
    function.
    """
    parser = _Parser(
        prog="codecgen",
        description="Generate parsers, builders, Arrow codecs and documentation from YAML schemas of binary formats.",
        epilog=(
            "examples:\n"
            "  codecgen check schemas\n"
            "  codecgen generate schemas --out generated\n"
            "  codecgen explain record_batch.crc\n"
            "  codecgen diff message 0 1\n"
            f"  codecgen parse record_batch {_SEGMENT} --many\n"
            f"\n{EXIT_CODES}\n"
            "\ncodecgen COMMAND --help shows the options and examples of a command."
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"codecgen {RELEASE}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(
        name: str, run: Callable[[argparse.Namespace], int], about: str, *examples: str
    ) -> argparse.ArgumentParser:
        lines = "".join(f"  codecgen {example}\n" for example in examples)
        epilog = f"examples:\n{lines}\n{EXIT_CODES}"
        sub = commands.add_parser(
            name,
            help=about,
            description=about[0].upper() + about[1:] + ".",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(run=run)
        return sub

    check = add(
        "check",
        schema_commands.check,
        "check the schemas of a directory, without writing anything",
        "check schemas",
    )
    check.add_argument("directory", metavar="DIR", type=Path, help=_SCHEMA_DIRECTORY)

    rewrite = add(
        "fmt",
        format_commands.fmt,
        "rewrite schema files in the canonical form, comments kept",
        "fmt schemas",
        "fmt schemas/reading.yaml --diff",
        "fmt schemas --check",
    )
    rewrite.add_argument(
        "path",
        metavar="PATH",
        type=Path,
        nargs="?",
        default=Path("schemas"),
        help="schema directory, or a file in one (default: schemas)",
    )
    rewrite.add_argument(
        "--check",
        action="store_true",
        help="write nothing, and exit with 1 if a file would change",
    )
    rewrite.add_argument(
        "--diff",
        action="store_true",
        help="write nothing, and print what would change; exit with 1 if anything would",
    )

    generate = add(
        "generate",
        schema_commands.generate,
        "generate codecs and documentation from schemas",
        "generate schemas --out generated",
        "generate schemas --out generated --check",
        "generate schemas --out generated --watch",
        "generate schemas --out old --targets docs --as-of 0.11.0",
    )
    generate.add_argument("directory", metavar="DIR", type=Path, help=_SCHEMA_DIRECTORY)
    generate.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        required=True,
        help="output directory, created if it is missing",
    )
    generate.add_argument(
        "--targets",
        metavar="NAME,...",
        help=f"targets to generate: {', '.join((*TARGETS, *ON_REQUEST))} (default: {','.join(TARGETS)})",
    )
    generate.add_argument(
        "--as-of",
        metavar="RELEASE",
        help="generate the formats as they were in this release (default: the newest)",
    )
    generate.add_argument(
        "--templates",
        metavar="DIR",
        type=Path,
        help="directory with templates (*.j2) that replace the target's own of the same name; "
        f"for one target of {', '.join(TEMPLATED)}",
    )
    how = generate.add_mutually_exclusive_group()
    how.add_argument(
        "--check",
        action="store_true",
        help="write nothing, and exit with 1 if a file in --out would change",
    )
    how.add_argument(
        "--watch",
        action="store_true",
        help="generate again after each change of the schemas or templates, until Ctrl-C",
    )

    explain = add(
        "explain",
        explain_commands.explain,
        "explain a layout, field, bit, enum, choice or diagnostic",
        "explain record_batch.attributes.compression",
        "explain message@0.crc --schemas schemas",
        "explain --program record_batch",
        "explain C012",
    )
    explain.add_argument(
        "name",
        metavar="NAME",
        help="name with dots between its parts, such as record_batch.crc, or the id of a diagnostic or of a rule of breaking, such as C012 or B006",
    )
    explain.add_argument(
        "--program",
        action="store_true",
        help="print the steps by which a generated reader reads the layout NAME, or a writer writes the view NAME",
    )
    _add_schemas(explain)

    diff = add(
        "diff",
        explain_commands.diff,
        "show what changed in a layout between two versions or two releases, or in all schemas since another state",
        "diff message 0 1",
        "diff record_batch 0.11.0 3.1.0",
        "diff --against v1.0 --schemas schemas",
    )
    diff.add_argument("layout", metavar="LAYOUT", nargs="?", help="name of a layout or a text")
    diff.add_argument(
        "before",
        metavar="FROM",
        nargs="?",
        help="older version of the layout, such as 0, or release, such as 0.11.0",
    )
    diff.add_argument(
        "after", metavar="TO", nargs="?", help="newer version of the layout, or release"
    )
    _add_against(diff, required=False)
    _add_schemas(diff)

    breaking = add(
        "breaking",
        evolution_commands.breaking,
        "report changes since another state of the schemas that old readers or old data cannot survive (exit code 1; 2 if it could not compare)",
        "breaking --against v1.0 --schemas schemas",
        "breaking --against ../released/schemas",
        "explain B006",
    )
    _add_against(breaking, required=True)
    _add_schemas(breaking)

    parse = add(
        "parse",
        value_commands.parse,
        "parse bytes and show each field with its position and value",
        f"parse record_batch {_SEGMENT} --many",
        f"parse record_batch {_SEGMENT} --length 103 --yaml",
        "parse message@0 samples/kafka-2.8/v0-0/00000000000000000000.log --at 48 --length 49 --json",
    )
    _add_named(parse)
    parse.add_argument("file", metavar="FILE", help="file with the bytes, - for standard input")
    parse.add_argument(
        "--at",
        metavar="BYTE",
        type=_byte,
        default=0,
        help="position of the first byte to parse, such as 500 or 0x1f4 (default %(default)s)",
    )
    parse.add_argument(
        "--length",
        metavar="N",
        type=_byte,
        help="number of bytes to parse (default: to the end of FILE)",
    )
    parse.add_argument(
        "--many",
        action="store_true",
        help="parse one value after the other, to the end of the bytes (default: one value)",
    )
    form = parse.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="print values as JSON, with --many one per line"
    )
    form.add_argument(
        "--yaml", action="store_true", help="print values as YAML, the input of codecgen build"
    )
    parse.add_argument(
        "--lenient",
        action="store_true",
        help="accept deviations that the schemas list for lenient readers, and report each",
    )
    parse.add_argument("--hex", action="store_true", help="read FILE as hexadecimal text")

    build = add(
        "build",
        value_commands.build,
        "build bytes from values in YAML or JSON",
        "build record_batch values.yaml --out batch.bin",
        f"parse record_batch {_SEGMENT} --length 103 --yaml | codecgen build record_batch - --hex",
    )
    _add_named(build)
    build.add_argument(
        "file",
        metavar="VALUES",
        help="file with the values in YAML or JSON, written as in the examples of schemas, - for standard input",
    )
    where = build.add_mutually_exclusive_group()
    where.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help="file to write the bytes to (default: standard output)",
    )
    where.add_argument("--hex", action="store_true", help="print the bytes as hexadecimal text")
    build.add_argument(
        "--overwrite", action="store_true", help="replace the file of --out if it exists"
    )

    init = add(
        "init",
        schema_commands.init,
        "create a schema directory with an example and a test",
        "init my_format",
        "init audit --uses kafka_codecs",
        "init audit --dir formats/audit",
    )
    init.add_argument("name", metavar="NAME", help="name of the format, such as my_format")
    init.add_argument(
        "--uses", metavar="PACKAGE", help="installed package whose schemas the new schemas use"
    )
    init.add_argument(
        "--dir", metavar="DIR", type=Path, help="directory to create (default: ./NAME)"
    )

    bring = add(
        "import",
        schema_commands.import_kafka_json,
        "write schema files from Kafka's message definitions",
        "import kafka-json kafka/clients/src/main/resources/common/message --out schemas",
        "import kafka-json definitions --out schemas --force",
    )
    bring.add_argument(
        "language",
        metavar="LANGUAGE",
        choices=["kafka-json"],
        help="language of the definitions: kafka-json, Kafka's message definitions",
    )
    bring.add_argument(
        "directory",
        metavar="DIR",
        type=Path,
        help="directory with the definitions (*.json), also in directories below it",
    )
    bring.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        required=True,
        help="schema directory to write to, created if it is missing",
    )
    bring.add_argument(
        "--force", action="store_true", help="replace files that differ (default: exit with 2)"
    )

    add(
        "json-schema",
        explain_commands.print_json_schema,
        "print a JSON Schema of the schema language, for editors",
        "json-schema > schemas/codecgen.schema.json",
    )
    shells = add("completion", _complete, completion.ABOUT, "completion bash")
    shells.add_argument("shell", choices=completion.SHELLS, help="shell to print the script for")
    shells.epilog = completion.note("codecgen")
    return parser


def _add_named(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a codec: ``layout``, ``--given`` and ``--schemas``."""
    parser.add_argument(
        "layout", metavar="LAYOUT", help="name of a layout, layout@version, or a choice"
    )
    parser.add_argument(
        "--given",
        metavar="VALUE",
        help="value that selects the layout of a choice, if the bytes themselves do not tell it; or the values that a layout "
        'gets from outside, as name=value,name=value; an array is a JSON list, and bytes in it are {"hex": "00ff"}',
    )
    _add_schemas(parser)


def _byte(text: str) -> int:
    """Return a number of bytes, from at most 18 decimal digits or ``0x`` and at most 15 hexadecimal
    digits. Raise ArgumentTypeError for other text and for negative numbers.
    """
    if not re.fullmatch(r"[0-9]{1,18}|0[xX][0-9a-fA-F]{1,15}", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of bytes: write a number such as 500 or 0x1f4"
        )
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)


def _add_against(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the option ``--against``, which names an older state of the schemas."""
    parser.add_argument(
        "--against",
        metavar="STATE",
        required=required,
        help="older state of the schema directory: a directory, or a revision of its git repository",
    )


def _add_schemas(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--schemas``; its value is the path of the schema directory that it names,
    which need not exist (default: ./schemas, else the installed schemas).
    """
    parser.add_argument(
        "--schemas",
        metavar="DIR",
        type=directories.named,
        default="",
        help="schema directory, or installed package with schemas (default: ./schemas, else the installed schemas)",
    )
