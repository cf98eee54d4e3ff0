"""Read input bytes and parse them as one layout, up to the first error."""

from __future__ import annotations

import mmap
import os
import re
import stat
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import construct

from codecgen.plan import LayoutPlan
from codecgen.runtime.errors import CodecError, LimitError, ParseError, TrailingError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.nouns import count_noun
from codecgen.values.named_codec import NamedCodec


@dataclass(frozen=True, slots=True)
class Reading:
    """Result of parsing bytes ``start`` to ``end`` (excluded) of the input.

    ``plan`` is None where the bytes do not say which layout they are of. ``trace`` has (path, first byte, byte after the
    last, in a decompressed stream?) of every field. ``findings`` are what a lenient parser noticed; with an ``error``,
    ``value`` has what was parsed before it.
    """

    plan: LayoutPlan | None
    start: int
    end: int
    value: Any
    trace: tuple[tuple[str, int, int, bool], ...]
    findings: tuple[ParseError, ...]
    error: CodecError | None


def read_one(named: NamedCodec, given: Input, start: int, end: int, *, strict: bool) -> Reading:
    """Return the result of parsing one layout from byte ``start`` up to byte ``end`` at most (not
    included); its ``end`` is where the parser stopped. A CodecError is not raised but stored in the
    result, with the values parsed before it. Bytes after the layout are no error here. If
    ``strict`` is False, tolerated deviations are findings.
    """
    trace: list[tuple[str, int, int, bool]] = []
    begun: dict[str, Any] = {}
    session = Session(strict=strict, file=given.name, trace=trace, begun=begun, given=named.given)
    source = Source(given.data, session, pos=start, end=end)
    plan, value, error = None, None, None
    try:
        plan = named.layout_of_bytes(source)
        value = named.codec.read(source, None)
    except CodecError as found:
        value, error = assemble_partial(begun), found
    return Reading(plan, start, source.pos, value, tuple(trace), tuple(session.findings), error)


def check_all_read(reading: Reading, given: Input, end: int, *, strict: bool) -> Reading:
    """Return ``reading`` with a TrailingError if bytes follow the layout before ``end``, as a
    finding if the reader is lenient and the layout tolerates trailing bytes. Return it unchanged if
    none follow, or if it has an error or no layout.
    """
    if reading.plan is None or reading.error is not None or reading.end == end:
        return reading
    where = Source(given.data, Session(file=given.name), end=end).where(reading.end)
    error = TrailingError(
        f"{count_noun(end - reading.end, 'byte follows', 'bytes follow')} the {reading.plan.name}",
        where,
    )
    tolerated = not strict and "trailing_bytes" in reading.plan.layout.accepts
    if tolerated:
        return replace(reading, findings=(*reading.findings, error))
    return replace(reading, error=error)


def has_trailing_bytes_only(reading: Reading) -> bool:
    """Return whether the only error is that bytes follow the layout."""
    error = reading.error
    return isinstance(error, TrailingError) and error.where.schema is None


def check_progress(reading: Reading, given: Input) -> Reading:
    """Return ``reading`` with a LimitError if the layout took no bytes, because parsing many would
    never end. Otherwise, or if it has an error, return it unchanged.
    """
    if reading.error is not None or reading.end > reading.start:
        return reading
    where = Source(given.data, Session(file=given.name)).where(reading.end)
    error = LimitError("a layout of no bytes would repeat here without end", where)
    return replace(reading, error=error)


def assemble_partial(begun: dict[str, Any]) -> Any:
    """Return the mapping of the values that were parsed before an error, or an empty one. ``begun``
    has the unfinished layouts and arrays by path; each is put into its parent, which changes them.
    """
    for path, value in reversed(begun.items()):
        if not path:
            continue
        if path.endswith("]"):
            around, _, number = path[:-1].rpartition("[")
            items = begun[around]
            if len(items) == int(number):
                items.append(value)
        else:
            around, _, name = path.rpartition(".")
            begun[around].setdefault(name, value)
    return begun.get("", construct.Container())


MAX_BYTES = 1 << 28
"""The bytes that are read of what cannot be mapped: standard input, pipes, hex text."""
_NOT_HEX = re.compile(r"[^0-9a-fA-F\s]")


class InputError(Exception):
    """The input cannot be read. The text says why."""


@dataclass(frozen=True, slots=True)
class Input:
    """Bytes of the input, and the name of their source for messages."""

    name: str
    data: bytes | memoryview


def open_input(path: str, *, hex_text: bool = False) -> Input:
    """Return the name and bytes of a file or of standard input (``-``). A regular file is
    memory-mapped, unless it is empty or ``hex_text`` is given; its size has no limit. Raise
    InputError if other input has more than ``MAX_BYTES`` or, with ``hex_text``, is no hexadecimal
    text; OSError if the file cannot be read.
    """
    if path == "-":
        name, data = "standard input", _read(sys.stdin.buffer, "standard input")
        return Input(name, _from_hex(data, name) if hex_text else data)
    with Path(path).open("rb") as file:
        if hex_text:
            return Input(path, _from_hex(_read(file, path), path))
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return Input(path, _read(file, path))
        if status.st_size == 0:
            return Input(path, b"")
        return Input(path, memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))


def read_input(path: str) -> Input:
    """Return the name and all bytes of a file or of standard input (``-``). Raise InputError if
    they are more than ``MAX_BYTES``; OSError if the file cannot be read.
    """
    if path == "-":
        return Input("standard input", _read(sys.stdin.buffer, "standard input"))
    with Path(path).open("rb") as file:
        return Input(path, _read(file, path))


def _read(file: BinaryIO, name: str) -> bytes:
    """Return all bytes of a stream. Raise InputError if they are more than ``MAX_BYTES``."""
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(
            f"{name} has more than {MAX_BYTES} bytes, the limit of standard input, pipes, hexadecimal text and values; only a regular file of bytes may be larger"
        )
    return data


def _from_hex(data: bytes, name: str) -> bytes:
    """Return the bytes of hexadecimal text; white space is ignored. Raise InputError, with line and
    column, at a character that is no digit, and for an odd number of digits.
    """
    text = data.decode("utf-8", "replace")
    bad = _NOT_HEX.search(text)
    if bad is not None:
        line = text.count("\n", 0, bad.start()) + 1
        column = bad.start() - text.rfind("\n", 0, bad.start())
        raise InputError(f"{name}:{line}:{column}: {bad[0]!r} is not a hexadecimal digit")
    digits = "".join(text.split())
    if len(digits) % 2:
        raise InputError(
            f"{name}: {len(digits)} hexadecimal digits, which is an odd number: each byte needs two"
        )
    return bytes.fromhex(digits)
