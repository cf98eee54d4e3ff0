"""The commands parse and build."""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from codecgen import directories, output
from codecgen.cli.common import (
    FINDINGS,
    GOOD,
    UsageError,
    print_message,
    print_result,
    report,
    sound,
)
from codecgen.diagnostics import printable, render
from codecgen.plan import make_plan
from codecgen.runtime.nouns import count_noun
from codecgen.schema.uses import within
from codecgen.targets.live_codecs import load_codecs
from codecgen.values import documents, dump, named_codec, reading


def parse(arguments: argparse.Namespace) -> int:
    """Run ``codecgen parse``: print each parsed layout. Return 0, or 1 if the schemas have
    diagnostics or bytes do not parse; the values before the error are printed. Deviations that
    ``--lenient`` accepts are only noted. Raise UsageError if the schema directory is missing, no
    codec has the name, ``--given`` does not fit it, or the input is too large, no hexadecimal text
    or shorter than ``--at`` and ``--length``; OSError if it cannot be read.
    """
    what = _find_codec(arguments)
    if what is None:
        return FINDINGS
    try:
        given = reading.open_input(arguments.file, hex_text=arguments.hex)
    except reading.InputError as error:
        raise UsageError(str(error)) from None
    start, end = _window(arguments, given)
    for index, one in enumerate(_readings(arguments, what, given, start, end)):
        _show(arguments, what, given, one, index, end)
        sys.stdout.flush()
        for finding in one.findings:
            print_message(f"codecgen: note: {finding}")
        if one.error is not None:
            print_message(f"codecgen: {one.error}")
            if reading.has_trailing_bytes_only(one):
                print_message(
                    "codecgen: say --many to parse one after the other, --length to parse less"
                )
            return FINDINGS
    return GOOD


def _find_codec(arguments: argparse.Namespace) -> named_codec.NamedCodec | None:
    """Return the codec that the arguments name, compiled in memory. If the schemas have diagnostics
    or cannot be expressed as codecs, print that and return None. Raise UsageError if no codec has
    this name or version, ``--given`` is missing, unknown or without meaning for it, or the schema
    directory is missing.
    """
    model = sound(arguments.schemas)
    if model is None:
        return None
    model, name = within(model, arguments.layout)
    plan = make_plan(model)
    codecs, unsupported = load_codecs(plan)
    if codecs is None:
        report(list(unsupported), directories.texts_of(model))
        return None
    try:
        return named_codec.find_codec(plan, codecs, name, arguments.given)
    except named_codec.UnknownCodecError as error:
        raise UsageError(str(error)) from None


def _window(arguments: argparse.Namespace, given: reading.Input) -> tuple[int, int]:
    """Return the first byte of the input to parse, and the byte after the last one. Raise
    UsageError if the input ends before one of them.
    """
    size, start = len(given.data), arguments.at
    end = max(size, start) if arguments.length is None else start + arguments.length
    if end > size:
        which = f"--at is {start}; the largest is {size}"
        if arguments.length is not None:
            length = f"--at {start} with --length {arguments.length}"
            which = f"{length} ends at byte {end}; reduce --at or --length"
        raise UsageError(f"{given.name} has {count_noun(size, 'byte')}, but {which}")
    return start, end


def _readings(
    arguments: argparse.Namespace,
    what: named_codec.NamedCodec,
    given: reading.Input,
    start: int,
    end: int,
) -> Iterator[reading.Reading]:
    """Yield the result of parsing one layout, which must take all bytes up to ``end``; with
    ``--many`` the results of one after the other, and none if there are no bytes. With ``--many``
    an error does not end this generator; the caller stops.
    """
    strict = not arguments.lenient
    if not arguments.many:
        one = reading.read_one(what, given, start, end, strict=strict)
        yield reading.check_all_read(one, given, end, strict=strict)
        return
    while start < end:
        one = reading.read_one(what, given, start, end, strict=strict)
        yield reading.check_progress(one, given)
        start = one.end


def _show(
    arguments: argparse.Namespace,
    what: named_codec.NamedCodec,
    given: reading.Input,
    one: reading.Reading,
    index: int,
    end: int,
) -> None:
    """Print ``one``, the result of parsing one layout of the input ``given``: its values as JSON
    (``--json``) or as YAML below a comment (``--yaml``), otherwise a dump of bytes, paths and
    values. After an error, the dump continues to byte ``end``, where the bytes to parse end.
    ``index`` counts from 0, and the YAML comment and the dump show it with ``--many``.
    """
    values, out = arguments.json or arguments.yaml, sys.stdout
    if values and isinstance(out, io.TextIOWrapper) and not out.isatty():
        out.reconfigure(encoding="utf-8")  # for programs, whatever the system writes else
    if arguments.json:
        print(documents.format_json(one.value, indent=None if arguments.many else 2))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    number = index if arguments.many else None
    lines = dump.format_heading(one, number, width)
    if arguments.yaml:
        if arguments.many:
            print("---")
        print(
            "".join(f"# {printable(line)}\n" for line in lines) + documents.format_yaml(one.value),
            end="",
        )
        return
    if index:
        print()
    shown = one.end if one.error is None else end
    for line in (*lines, *dump.dump(what.plan, one, given, shown, width)):
        print_result(line)


def build(arguments: argparse.Namespace) -> int:
    """Run ``codecgen build``: write the bytes to ``--out`` or standard output, or as text with
    ``--hex``. Return 0, or 1 if schemas or values have diagnostics. Raise UsageError if the output
    is a terminal, exists without ``--overwrite`` or has no directory, if ``--overwrite`` is given
    without ``--out``, if the schema directory is missing, if no codec has the name, if ``--given``
    does not fit it, or if the input is too large. Raise OSError if it cannot be read, or the output
    cannot be written.
    """
    out: Path | None = arguments.out
    if out is None and not arguments.hex and sys.stdout.isatty():
        raise UsageError(
            "bytes are not written to a terminal: name a file with --out, or add --hex"
        )
    if out is None and arguments.overwrite:
        raise UsageError("--overwrite is only allowed with --out")
    if out is None:
        return _build(arguments)
    if not out.parent.is_dir():
        raise UsageError(f"{out.parent} is not a directory")
    with output.locked_file(out):
        if out.exists() and not arguments.overwrite:
            raise UsageError(f"{out} exists and is unchanged: add --overwrite to replace it")
        return _build(arguments)


def _build(arguments: argparse.Namespace) -> int:
    """Write the bytes to the locked file ``--out`` or standard output. Return 0, or 1 if schemas or
    values have diagnostics. Raise UsageError if the schema directory is missing, no codec has the
    name, ``--given`` does not fit it, or the input is too large; OSError if it cannot be read, or
    the output cannot be written.
    """
    out: Path | None = arguments.out
    what = _find_codec(arguments)
    if what is None:
        return FINDINGS
    try:
        given = reading.read_input(arguments.file)
    except reading.InputError as error:
        raise UsageError(str(error)) from None
    text = bytes(given.data).decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    try:
        data = documents.build_all(what, given.name, text)
    except documents.BuildError as wrong:
        print_message(*render(wrong.diagnostics, {given.name: text}).rstrip("\n").split("\n"))
        return FINDINGS
    if out is not None:
        output.write_whole(out, data)
        print_result(f"{out}: {count_noun(len(data), 'byte')}")
    elif arguments.hex:
        print(data.hex())
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    return GOOD
