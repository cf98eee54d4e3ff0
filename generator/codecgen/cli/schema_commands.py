"""The commands check, generate, init and import."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codecgen import directories, output
from codecgen.cli.common import (
    FINDINGS,
    GOOD,
    UsageError,
    load,
    paused_garbage_collection,
    print_diagnostics,
    print_message,
    print_result,
    release_of,
    report,
    sound,
)
from codecgen.cli.watching import watch
from codecgen.diagnostics import did_you_mean
from codecgen.plan import Plan, as_of, make_plan
from codecgen.runtime.nouns import count_noun
from codecgen.schema import loader
from codecgen.schema.loader import MANIFEST
from codecgen.schema.model import Model
from codecgen.targets.target_output import Emitted
from codecgen.template_files import TemplateFilesError, read_templates

if TYPE_CHECKING:
    from codecgen.importers.kafka_json import Definitions


@paused_garbage_collection()
def check(arguments: argparse.Namespace) -> int:
    """Run ``codecgen check``: check the schemas and run all default targets without writing. Return
    1 if there are diagnostics, else 0 after printing a summary. Raise UsageError if the directory
    is missing or no directory.
    """
    from codecgen.targets.registry import TARGETS

    begin = time.perf_counter()
    model, diagnostics, files = load(arguments.directory)
    if diagnostics or model is None:
        report(diagnostics, files)
        return FINDINGS
    if _emit(make_plan(model), list(TARGETS), {}) is None:
        return FINDINGS
    things = ", ".join(
        count_noun(len(items), what)
        for items, what in (
            (model.layouts, "layout"),
            (model.texts, "text"),
            (model.enums, "enum"),
            (model.choices, "choice"),
        )
    )
    seconds = time.perf_counter() - begin
    print_result(f"{count_noun(len(files), 'file')}, {things}: good ({seconds:.1f} s)")
    return GOOD


def generate(arguments: argparse.Namespace) -> int:
    """Run ``codecgen generate``: write the output of the targets. Return 1 if the schemas or
    targets have diagnostics or, with ``--check``, files would change; else 0. With ``--watch``
    print errors, and return 2 if the first run has one, else 0 after Ctrl-C. Without it raise
    UsageError for a missing directory, an unknown target or release or unsuitable ``--templates``;
    TemplateFilesError or OutputError if templates or output are unusable.
    """
    if arguments.watch:
        return watch(
            lambda: _read_input(arguments),
            lambda: _generate_once(arguments),
            str(arguments.directory),
        )
    return _generate_once(arguments)


def _read_input(arguments: argparse.Namespace) -> object:
    """Return the text of all schema files and templates that a run of ``codecgen generate`` reads,
    for comparison with those of another run; the error as text if they cannot be read.
    """
    try:
        files = directories.read_all_files(arguments.directory)
        return files, {} if arguments.templates is None else read_templates(arguments.templates)
    except (OSError, TemplateFilesError) as error:
        return str(error)


@paused_garbage_collection()
def _generate_once(arguments: argparse.Namespace) -> int:
    """Generate the files, or compare them with ``--check``. Return 1 if the schemas or targets have
    diagnostics or, with ``--check``, files would change; else 0. Raise UsageError for a missing
    directory, an unknown target or release or unsuitable ``--templates``; TemplateFilesError or
    OutputError if templates or output are unusable.
    """
    from codecgen.targets.registry import ON_REQUEST, TARGETS, TEMPLATED

    begin = time.perf_counter()
    names = _target_names(arguments.targets, TARGETS, ON_REQUEST)
    templates = _templates(arguments.templates, names, TEMPLATED)
    model = sound(arguments.directory)
    if model is None:
        return FINDINGS
    release = release_of(arguments.as_of, model)
    emitted = _emit(make_plan(as_of(model, release), release), names, templates)
    if emitted is None:
        return FINDINGS
    files = {name: result.files for name, result in emitted.items()}
    package = model.manifest.package
    summary = output.write_tree(arguments.out, package, files, dry_run=arguments.check)
    seconds = time.perf_counter() - begin
    if arguments.check:
        return _would_change(summary, arguments.out)
    for path in summary.kept:
        print_message(
            f"codecgen: {path} is no longer generated, but was changed by hand: it was not removed"
        )
    counts = ", ".join(
        f"{len(paths)} {what}"
        for paths, what in (
            (summary.written, "written"),
            (summary.unchanged, "unchanged"),
            (summary.removed, "removed"),
        )
    )
    print_result(f"{arguments.out}: {counts} ({', '.join(names)}; {seconds:.1f} s)")
    return GOOD


def _emit(
    plan: Plan, names: Sequence[str], templates: Mapping[str, str]
) -> dict[str, Emitted] | None:
    """Run the targets ``names`` and return their output by name. If one has errors, print these and
    return None; otherwise print notes and warnings. Write no files. ``templates`` go to the targets
    that take some. Raise KeyError for an unknown target, which the caller refuses before.
    """
    from codecgen.targets.registry import ON_REQUEST, TARGETS, TEMPLATED

    targets = {**TARGETS, **ON_REQUEST}
    emitted = {
        name: targets[name](plan, templates) if name in TEMPLATED else targets[name](plan)
        for name in names
    }
    texts = {**directories.texts_of(plan.model), **templates}
    errors = [d for result in emitted.values() for d in result.diagnostics]
    if errors:
        report(errors, texts)
        return None
    notes = [d for result in emitted.values() for d in result.notes]
    if notes:
        print_diagnostics(notes, texts, "note")
    for warning in (line for result in emitted.values() for line in result.warnings):
        print_message(f"codecgen: warning: {warning}")
    return emitted


def _templates(
    directory: Path | None, names: Sequence[str], templated: Mapping[str, object]
) -> Mapping[str, str]:
    """Return the text of the templates in a directory by name, or ``{}`` if it is None. Raise
    UsageError if it is None although target template needs it, or if not exactly one of ``names``
    takes templates; TemplateFilesError if it is unusable.
    """
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
    """Return the targets that ``wanted`` lists, separated by commas, in its order, without
    repetitions and empty items, or the usual ones if it is None. Raise UsageError for an unknown
    name, and if it lists none.
    """
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
    """Print the files that a run would write or remove, or that all are as they should be. Return 1
    if there are any, else 0.
    """
    for what, paths in (
        ("differs or is missing", summary.written),
        ("is left over", summary.removed),
    ):
        for path in paths:
            print_result(f"{path} {what}")
    if summary.changed:
        print_message(
            f"codecgen: {out} is not what the schemas give; run codecgen generate without --check"
        )
        return FINDINGS
    print_result(f"{out}: {count_noun(len(summary.unchanged), 'file')} as the schemas give them")
    return GOOD


def init(arguments: argparse.Namespace) -> int:
    """Run ``codecgen init``: write the starter files and print the next steps. Return 0. Raise
    UsageError if the name or used package is unsuitable or a file exists.
    """
    from codecgen import starter

    directory = arguments.dir or Path(arguments.name)
    try:
        files = starter.write(arguments.name, directory, arguments.uses)
    except starter.StarterError as error:
        raise UsageError(str(error)) from None
    print_result(f"{directory}: {', '.join(files)}")
    print_result("", "next:")
    for step in (f"cd {directory}", *starter.STEPS):
        print_result(f"  {step}")
    return GOOD


def import_kafka_json(arguments: argparse.Namespace) -> int:
    """Run ``codecgen import kafka-json``: write the schema files that are missing or differ. Return
    0, or 1, with nothing written, if a definition or the resulting schemas have findings. Raise
    UsageError if the source is no directory or has no definitions, or a file in the way differs and
    ``--force`` is not given.
    """
    from codecgen.importers import kafka_json as kafka

    begin = time.perf_counter()
    source: Path = arguments.directory
    out: Path = arguments.out
    if not source.is_dir():
        what = "is not a directory" if source.exists() else "does not exist"
        raise UsageError(f"{source} {what}; name the directory that holds the definitions")
    found = kafka.find(source)
    if not found.files and not found.findings:
        raise UsageError(f"{source} has no definition (*.json)")
    if found.findings:
        report(list(found.findings), found.texts())
        return FINDINGS
    with output.locked_directory(out):
        return _import_definitions(found, out, force=arguments.force, begin=begin)


def _import_definitions(found: Definitions, out: Path, *, force: bool, begin: float) -> int:
    """Write the schema files of definitions without findings below the locked directory ``out``.
    Return 0, or 1, with nothing written, if the resulting schemas have findings. Raise UsageError if
    a file in the way differs and ``force`` is False. ``begin`` is the value of ``perf_counter`` at
    the start of the command.
    """
    from codecgen.importers import kafka_json as kafka

    there = loader.read_files(out) if out.is_dir() else {}
    made = {} if MANIFEST in there else {MANIFEST: kafka.NEW_MANIFEST}
    known, _ = loader.load({**made, **there})
    spelling = "camel" if known is None else known.manifest.spelling
    imported = kafka.convert(found, spelling)
    others = {name: text for name, text in there.items() if name not in imported.files}
    known, _ = loader.load({**made, **others})
    if known is not None and _declared(known):
        imported = kafka.convert(found, spelling, _declared(known))
    files = _select_changed_files(out, {**made, **imported.files}, force=force)
    model, diagnostics, texts = directories.load_with(out, files)
    if diagnostics or model is None:
        print_message(f"codecgen: nothing is written, since {out} would have findings then")
        report(diagnostics, texts)
        return FINDINGS
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        output.write_whole(path, text.encode("utf-8"))
    for line in kafka.lines_about(imported):
        print_message(f"codecgen: {line}")
    messages = count_noun(len(found.messages) - len(imported.retired), "message")
    unchanged = len(made) + len(imported.files) - len(files)
    seconds = time.perf_counter() - begin
    print_result(
        f"{out}: {messages}, {count_noun(len(files), 'file')} written, {unchanged} unchanged"
        f" ({seconds:.1f} s)"
    )
    return GOOD


def _declared(model: Model) -> frozenset[str]:
    """Return the names of all declarations of a model."""
    return frozenset([*model.layouts, *model.enums, *model.choices, *model.texts])


def _select_changed_files(out: Path, files: Mapping[str, str], *, force: bool) -> dict[str, str]:
    """Return the files, by name, that are missing or differ below ``out``. Raise UsageError if one
    differs and ``force`` is False, or something that is no regular file has its path.
    """
    new = {}
    blocked = []
    for name, text in files.items():
        path = out / name
        if not os.path.lexists(path):
            new[name] = text
        elif path.is_symlink() or not path.is_file():
            raise UsageError(f"{path} exists and is not a file; move it away first")
        elif path.read_bytes() != text.encode("utf-8"):
            new[name] = text
            blocked.append(name)
    if blocked and not force:
        shown = ", ".join(blocked[:5]) + (", ..." if len(blocked) > 5 else "")
        raise UsageError(
            f"{out} already has {shown}; nothing was written: add --force to replace files that differ"
        )
    return new
