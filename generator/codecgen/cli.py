"""The command line: check, generate, explain, diff, json-schema."""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from codecgen import directories, output
from codecgen.check.releases import known_release
from codecgen.diagnostics import Diagnostic, did_you_mean, render
from codecgen.plan import as_of, make_plan
from codecgen.plan.as_of import release_key
from codecgen.schema import loader
from codecgen.schema.model import Model
from codecgen.schema.uses import within
from codecgen.template_files import TemplateFilesError, read_templates

GOOD, FINDINGS, COULD_NOT_RUN = 0, 1, 2


class UsageError(Exception):
    """The command cannot run. One line, with what to do next."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. 0: good; 1: findings; 2: it could not run."""
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
        _say(f"codecgen: {error}")
        return COULD_NOT_RUN
    except BrokenPipeError:
        sys.stderr.close()
        return COULD_NOT_RUN
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        _say(f"codecgen: {what}")
        return COULD_NOT_RUN


def _say(text: str) -> None:
    print(text, file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="codecgen",
        description="Binary formats as YAML in, codecs and documents out.",
        epilog=(
            "examples:\n"
            "  codecgen check schemas\n"
            "  codecgen generate schemas --out generated\n"
            "  codecgen explain record_batch.crc\n"
            "  codecgen diff message 0 1\n"
            "\nexit codes: 0 good, 1 findings, 2 could not run"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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

    check = add("check", _check, "check a schema directory", "check schemas")
    check.add_argument(
        "directory", metavar="DIR", type=Path, help="the directory with codecgen.yaml"
    )

    generate = add(
        "generate",
        _generate,
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
        _explain,
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
        _diff,
        "say what changed between two versions or two releases of a layout",
        "diff message 0 1",
        "diff record_batch 0.11.0 3.1.0",
    )
    diff.add_argument("layout", metavar="LAYOUT", help="a layout, or a text")
    diff.add_argument("before", metavar="FROM", help="a version of the layout, or a release")
    diff.add_argument("after", metavar="TO", help="likewise")
    _add_schemas(diff)

    init = add(
        "init",
        _init,
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

    add(
        "json-schema",
        _json_schema,
        "print a JSON Schema of the schema language, for editors",
        "json-schema > schemas/codecgen.schema.json",
    )
    return parser


def _add_schemas(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--schemas",
        metavar="DIR",
        type=directories.named,
        default="",
        help="a directory, or a package that brings its schemas; ./schemas by default, or else those that are installed",
    )


# ------------------------------------------------------------ loading


def load(directory: Path) -> tuple[Model | None, list[Diagnostic], Mapping[str, str]]:
    """A schema directory: its model (None when it cannot be had), all findings, and the text of its files."""
    if not directory.is_dir():
        what = "is not a directory" if directory.exists() else "does not exist"
        raise UsageError(f"{directory} {what}; name the directory that holds {loader.MANIFEST}")
    return directories.load(directory)


def _sound(directory: Path) -> Model | None:
    """The model of a directory without findings; None after the findings have been shown."""
    model, diagnostics, files = load(directory)
    if diagnostics or model is None:
        _report(diagnostics, files)
        return None
    return model


def _report(diagnostics: list[Diagnostic], files: Mapping[str, str]) -> None:
    _say(render(diagnostics, files))
    _say(f"codecgen: {_count(len(diagnostics), 'finding')}")


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _release(wanted: str | None, model: Model) -> str | None:
    """A release as the manifest writes it."""
    if wanted is None:
        return None
    known = model.manifest.releases
    if all(part.isdecimal() and part.isascii() for part in wanted.split(".")) and known_release(
        wanted, model.manifest
    ):
        return next(r for r in known if release_key(r) == release_key(wanted))
    hint = did_you_mean(wanted, known) or f"the manifest lists {', '.join(known) or 'none'}"
    raise UsageError(f"{wanted} is not a release of {model.manifest.title}; {hint}")


# ------------------------------------------------------------ commands


def _check(arguments: argparse.Namespace) -> int:
    begin = time.perf_counter()
    model, diagnostics, files = load(arguments.directory)
    if diagnostics or model is None:
        _report(diagnostics, files)
        return FINDINGS
    things = ", ".join(
        _count(len(items), what)
        for items, what in (
            (model.layouts, "layout"),
            (model.texts, "text"),
            (model.enums, "enum"),
            (model.choices, "choice"),
        )
    )
    seconds = time.perf_counter() - begin
    print(f"{_count(len(files), 'file')}, {things}: good ({seconds:.1f} s)")
    return GOOD


def _generate(arguments: argparse.Namespace) -> int:
    # What only this command needs is imported here.
    from codecgen.targets.registry import ON_REQUEST, TARGETS, TEMPLATED

    begin = time.perf_counter()
    names = _target_names(arguments.targets, TARGETS, ON_REQUEST)
    templates = _templates(arguments.templates, names, TEMPLATED)
    model = _sound(arguments.directory)
    if model is None:
        return FINDINGS
    release = _release(arguments.as_of, model)
    plan = make_plan(as_of(model, release), release)
    emitted = {
        name: TEMPLATED[name](plan, templates) if name in TEMPLATED else TARGETS[name](plan)
        for name in names
    }
    refused = [d for result in emitted.values() for d in result.diagnostics]
    if refused:
        _report(refused, {**directories.texts_of(model), **templates})
        return FINDINGS
    notes = [d for result in emitted.values() for d in result.notes]
    if notes:
        _say(render(notes, directories.texts_of(model), "note"))
    files = {name: result.files for name, result in emitted.items()}
    for warning in (line for result in emitted.values() for line in result.warnings):
        _say(f"codecgen: warning: {warning}")
    package = model.manifest.package
    summary = output.write_tree(arguments.out, package, files, dry_run=arguments.check)
    seconds = time.perf_counter() - begin
    if arguments.check:
        return _would_change(summary, arguments.out)
    for path in summary.kept:
        _say(f"codecgen: {path} is not generated any more, but was changed by hand: left as it is")
    counts = ", ".join(
        f"{len(paths)} {what}"
        for paths, what in (
            (summary.written, "written"),
            (summary.unchanged, "unchanged"),
            (summary.removed, "removed"),
        )
    )
    print(f"{arguments.out}: {counts} ({', '.join(names)}; {seconds:.1f} s)")
    return GOOD


def _templates(
    directory: Path | None, names: Sequence[str], templated: Mapping[str, object]
) -> Mapping[str, str]:
    """The templates of a directory, for the one target that takes them."""
    if directory is None and "template" in names:
        raise UsageError("target template needs --templates, the directory with its templates")
    if directory is None:
        return {}
    taking = [name for name in names if name in templated]
    if len(taking) != 1:
        what = "several of them take templates" if taking else "none of them takes templates"
        raise UsageError(
            f"--templates is for one target of {', '.join(templated)}, but {what}; name one with --targets"
        )
    return read_templates(directory)


def _target_names(
    wanted: str | None, usual: Mapping[str, object], on_request: Mapping[str, object]
) -> list[str]:
    if wanted is None:
        return list(usual)
    known = [*usual, *on_request]
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
            raise UsageError(f"unknown target {name!r}; {hint}")
    if not names:
        raise UsageError(f"--targets names none; known: {', '.join(known)}")
    return list(dict.fromkeys(names))


def _would_change(summary: output.Summary, out: Path) -> int:
    for what, paths in (
        ("differs or is missing", summary.written),
        ("is left over", summary.removed),
    ):
        for path in paths:
            print(f"{path} {what}")
    if summary.changed:
        _say(f"codecgen: {out} is not what the schemas give; run codecgen generate without --check")
        return FINDINGS
    print(f"{out}: {len(summary.unchanged)} files as the schemas give them")
    return GOOD


def _explain(arguments: argparse.Namespace) -> int:
    from codecgen import explain, explain_program

    advice = None if arguments.program else explain.diagnostic(arguments.name)
    if advice is not None:
        print(advice)
        return GOOD
    model = _sound(arguments.schemas)
    if model is None:
        return FINDINGS
    explained = explain_program.explain_program if arguments.program else explain.explain
    try:
        print(explained(model, arguments.name))
    except explain.UnknownName as error:
        raise UsageError(str(error)) from None
    return GOOD


def _diff(arguments: argparse.Namespace) -> int:
    from codecgen import diff

    model = _sound(arguments.schemas)
    if model is None:
        return FINDINGS
    model, name = within(model, arguments.layout)
    known = [*model.layouts, *model.texts]
    if name not in known:
        hint = did_you_mean(arguments.layout, known) or f"known: {', '.join(known)}"
        raise UsageError(f"unknown layout {arguments.layout!r}; {hint}")
    versions = model.layouts[name].versions if name in model.layouts else None
    sides = []
    for wanted in (arguments.before, arguments.after):
        if versions is not None and wanted.isdecimal() and wanted.isascii():
            if int(wanted) not in versions:
                raise UsageError(f"{name} has versions {versions}, not {wanted}")
            sides.append(diff.Side(f"version {wanted}", model, int(wanted)))
        else:
            release = _release(wanted, model)
            sides.append(diff.Side(str(release), as_of(model, release), None))
    if (sides[0].version is None) != (sides[1].version is None):
        raise UsageError("a version and a release cannot be compared; name two of a kind")
    print(diff.diff(name, *sides))
    return GOOD


def _init(arguments: argparse.Namespace) -> int:
    from codecgen import starter

    directory = arguments.dir or Path(arguments.name)
    try:
        files = starter.write(arguments.name, directory, arguments.uses)
    except starter.StarterError as error:
        raise UsageError(str(error)) from None
    print(f"{directory}: {', '.join(files)}")
    print("\nnext:")
    for step in (f"cd {directory}", *starter.STEPS):
        print(f"  {step}")
    return GOOD


def _json_schema(arguments: argparse.Namespace) -> int:
    from codecgen.json_schema import json_schema

    print(json.dumps(json_schema(), indent=2))
    return GOOD
