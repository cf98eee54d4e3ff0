"""Command line of codecgen: parses arguments and runs a command."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from codecgen import directories, output
from codecgen.cli import explain_commands, schema_commands, value_commands
from codecgen.cli.common import COULD_NOT_RUN, FINDINGS, GOOD, UsageError, say
from codecgen.runtime import completion
from codecgen.runtime.version import RELEASE
from codecgen.template_files import TemplateFilesError

__all__ = ["COULD_NOT_RUN", "FINDINGS", "GOOD", "UsageError", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Return 0 if it succeeded, 1 if it reported findings, 2 if it could not run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a terminal that cannot show a character is no reason to fail
            stream.reconfigure(errors="replace")
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
        command: Callable[[argparse.Namespace], int] = arguments.run
        return command(arguments)
    except (UsageError, TemplateFilesError, output.OutputError) as error:
        say(f"codecgen: {error}")
        return COULD_NOT_RUN
    except BrokenPipeError:
        sys.stderr.close()
        return COULD_NOT_RUN
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        say(f"codecgen: {what}")
        return COULD_NOT_RUN


def _complete(arguments: argparse.Namespace) -> int:
    """Run ``codecgen completion``. Return the exit code."""
    print(completion.script(_parser(), arguments.shell))
    return GOOD


class _Parser(argparse.ArgumentParser):
    """A parser that raises UsageError for invalid arguments."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with a hint at ``--help``."""
        raise UsageError(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    """Return the parser with all commands."""
    parser = _Parser(
        prog="codecgen",
        description="Binary formats as YAML in, codecs and documents out.",
        epilog=(
            "examples:\n"
            "  codecgen check schemas\n"
            "  codecgen generate schemas --out generated\n"
            "  codecgen explain record_batch.crc\n"
            "  codecgen diff message 0 1\n"
            "  codecgen parse record_batch segment.log --many\n"
            "\nexit codes: 0 good, 1 findings, 2 could not run"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"codecgen {RELEASE}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(
        name: str, run: Callable[[argparse.Namespace], int], about: str, *examples: str
    ) -> argparse.ArgumentParser:
        epilog = "examples:\n" + "".join(f"  codecgen {example}\n" for example in examples)
        sub = commands.add_parser(
            name,
            help=about,
            description=about[0].upper() + about[1:] + ".",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(run=run)
        return sub

    check = add("check", schema_commands.check, "check a schema directory", "check schemas")
    check.add_argument(
        "directory", metavar="DIR", type=Path, help="the directory with codecgen.yaml"
    )

    generate = add(
        "generate",
        schema_commands.generate,
        "write codecs and documents",
        "generate schemas --out generated",
        "generate schemas --out generated --targets construct",
        "generate schemas --out old --as-of 0.11.0",
        "generate schemas --out generated --check",
        "generate schemas --out site --targets docs --templates my-templates",
    )
    generate.add_argument(
        "directory", metavar="DIR", type=Path, help="the directory with codecgen.yaml"
    )
    generate.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="where the files go"
    )
    generate.add_argument(
        "--targets",
        metavar="A,B",
        help="only these of construct, docs, arrow; html, kaitai and template only if named",
    )
    generate.add_argument(
        "--as-of", metavar="RELEASE", help="the formats as they were at a release"
    )
    generate.add_argument(
        "--templates",
        metavar="DIR",
        type=Path,
        help="templates (*.j2) that take the place of a target's own, by name",
    )
    generate.add_argument(
        "--check", action="store_true", help="write nothing; findings when something would change"
    )

    explain = add(
        "explain",
        explain_commands.explain,
        "say what a layout, field, bit, enum, choice or diagnostic is",
        "explain record_batch",
        "explain record_batch.crc",
        "explain record_batch.attributes.compression",
        "explain message@0.crc --schemas path/to/schemas",
        "explain --program record_batch",
        "explain C012",
    )
    explain.add_argument("name", metavar="NAME", help="a name, with dots between the parts")
    explain.add_argument(
        "--program",
        action="store_true",
        help="what a reader of the layout NAME does, or a writer of the view NAME, step by step",
    )
    _add_schemas(explain)

    diff = add(
        "diff",
        explain_commands.diff,
        "say what changed between two versions or two releases of a layout",
        "diff message 0 1",
        "diff record_batch 0.11.0 3.1.0",
    )
    diff.add_argument("layout", metavar="LAYOUT", help="a layout, or a text")
    diff.add_argument("before", metavar="FROM", help="a version of the layout, or a release")
    diff.add_argument("after", metavar="TO", help="likewise")
    _add_schemas(diff)

    parse = add(
        "parse",
        value_commands.parse,
        "show bytes field by field",
        "parse record_batch batch.bin",
        "parse message@0 segment.log --at 0x1f4 --length 61",
        "parse record_batch segment.log --many",
        "parse record_batch batch.bin --yaml > values.yaml",
        "parse body --given weather --hex - < body.txt",
    )
    _add_named(parse)
    parse.add_argument("file", metavar="FILE", help="the bytes; - for standard input")
    parse.add_argument(
        "--at", metavar="OFFSET", type=_byte, default=0, help="the first byte: 500 or 0x1f4"
    )
    parse.add_argument("--length", metavar="N", type=_byte, help="no more bytes than these")
    parse.add_argument(
        "--many", action="store_true", help="one after the other, to the end of the bytes"
    )
    form = parse.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="the values as JSON; with --many one a line"
    )
    form.add_argument("--yaml", action="store_true", help="the values as YAML, as build takes them")
    parse.add_argument(
        "--lenient", action="store_true", help="take what lenient readers take, and note it"
    )
    parse.add_argument("--hex", action="store_true", help="FILE is hexadecimal text")

    build = add(
        "build",
        value_commands.build,
        "write the bytes of values",
        "build record_batch values.yaml --out batch.bin",
        "build message@1 values.yaml --hex",
        "parse record_batch old.bin --yaml | codecgen build record_batch - --out new.bin",
    )
    _add_named(build)
    build.add_argument(
        "file",
        metavar="VALUES",
        help="YAML or JSON, as in the examples of schemas; - for standard input",
    )
    where = build.add_mutually_exclusive_group()
    where.add_argument("--out", metavar="FILE", type=Path, help="where the bytes go")
    where.add_argument("--hex", action="store_true", help="print them as hexadecimal text")
    build.add_argument("--overwrite", action="store_true", help="replace FILE when it exists")

    init = add(
        "init",
        schema_commands.init,
        "begin a schema directory, with an example and a test of it",
        "init my_format",
        "init audit --uses kafka_codecs",
        "init audit --dir formats/audit",
    )
    init.add_argument("name", metavar="NAME", help="what the format is called, as in my_format")
    init.add_argument(
        "--uses", metavar="PACKAGE", help="an installed package whose schemas the new one uses"
    )
    init.add_argument(
        "--dir", metavar="DIR", type=Path, help="where the files go; ./NAME by default"
    )

    bring = add(
        "import",
        schema_commands.import_kafka_json,
        "write schema files for definitions of another language",
        "import kafka-json kafka/clients/src/main/resources/common/message --out schemas",
        "import kafka-json definitions --out schemas --force",
    )
    bring.add_argument(
        "language",
        metavar="LANGUAGE",
        choices=["kafka-json"],
        help="kafka-json: Kafka's message definitions",
    )
    bring.add_argument(
        "directory", metavar="DIR", type=Path, help="where the definitions are, or lie below"
    )
    bring.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="the schema directory"
    )
    bring.add_argument("--force", action="store_true", help="replace files that differ")

    add(
        "json-schema",
        explain_commands.print_json_schema,
        "print a JSON Schema of the schema language, for editors",
        "json-schema > schemas/codecgen.schema.json",
    )
    shells = add("completion", _complete, completion.ABOUT, "completion bash")
    shells.add_argument("shell", choices=completion.SHELLS)
    shells.epilog = completion.note("codecgen")
    return parser


def _add_named(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a codec."""
    parser.add_argument("layout", metavar="LAYOUT", help="a layout, layout@version, or a choice")
    parser.add_argument(
        "--given",
        metavar="VALUE",
        help="the value that decides for a choice whose bytes do not say",
    )
    _add_schemas(parser)


def _byte(text: str) -> int:
    """Return a number of bytes, decimal or hexadecimal after ``0x``. Raise ArgumentTypeError for other text."""
    if not re.fullmatch(r"[0-9]{1,18}|0[xX][0-9a-fA-F]{1,15}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes, as 500 or 0x1f4")
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)


def _add_schemas(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--schemas``."""
    parser.add_argument(
        "--schemas",
        metavar="DIR",
        type=directories.named,
        default="",
        help="a directory, or a package that brings its schemas; ./schemas by default, or else those that are installed",
    )
