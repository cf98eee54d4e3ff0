"""The command import: definitions of formats in other languages, as schema files."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from pathlib import Path

from codecgen import directories, output
from codecgen.cli.loading import FINDINGS, GOOD, UsageError, count, report, say
from codecgen.schema import loader
from codecgen.schema.loader import MANIFEST
from codecgen.schema.model import Model


def kafka_json(arguments: argparse.Namespace) -> int:
    """Write schema files for Kafka's message definitions; none when something is wrong with one."""
    from codecgen.importers import kafka_json as kafka

    begin = time.perf_counter()
    source: Path = arguments.directory
    out: Path = arguments.out
    if not source.is_dir():
        what = "is not a directory" if source.exists() else "does not exist"
        raise UsageError(f"{source} {what}; name the directory that holds the definitions")
    found = kafka.find(source)
    if not found.files and not found.findings:
        raise UsageError(f"there is no definition (*.json) in {source}")
    if found.findings:
        report(list(found.findings), found.texts())
        return FINDINGS
    there = loader.read_files(out) if out.is_dir() else {}
    made = {} if MANIFEST in there else {MANIFEST: kafka.NEW_MANIFEST}
    known, _ = loader.load({**made, **there})
    spelling = "camel" if known is None else known.manifest.spelling
    imported = kafka.convert(found, spelling)
    others = {name: text for name, text in there.items() if name not in imported.files}
    known, _ = loader.load({**made, **others})
    if known is not None and _declared(known):
        imported = kafka.convert(found, spelling, _declared(known))
    files = _those_to_write(out, {**made, **imported.files}, force=arguments.force)
    model, diagnostics, texts = directories.load_with(out, files)
    if diagnostics or model is None:
        say(f"codecgen: nothing is written, since {out} would have findings then")
        report(diagnostics, texts)
        return FINDINGS
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        output.write_whole(path, text.encode("utf-8"))
    for line in kafka.lines_about(imported):
        say(f"codecgen: {line}")
    messages = count(len(found.messages) - len(imported.retired), "message")
    unchanged = len(made) + len(imported.files) - len(files)
    seconds = time.perf_counter() - begin
    print(
        f"{out}: {messages}, {count(len(files), 'file')} written, {unchanged} unchanged"
        f" ({seconds:.1f} s)"
    )
    return GOOD


def _declared(model: Model) -> frozenset[str]:
    return frozenset([*model.layouts, *model.enums, *model.choices, *model.texts])


def _those_to_write(out: Path, files: Mapping[str, str], *, force: bool) -> dict[str, str]:
    """The files that are not there as they are to be. Raises UsageError before one would be replaced."""
    new = {}
    blocked = []
    for name, text in files.items():
        path = out / name
        if not os.path.lexists(path):
            new[name] = text
        elif path.is_symlink() or not path.is_file():
            raise UsageError(f"{path} is there, and is no file; move it away first")
        elif path.read_bytes() != text.encode("utf-8"):
            new[name] = text
            blocked.append(name)
    if blocked and not force:
        shown = ", ".join(blocked[:5]) + (", ..." if len(blocked) > 5 else "")
        raise UsageError(f"in {out} stands already: {shown}; say --force to replace what differs")
    return new
