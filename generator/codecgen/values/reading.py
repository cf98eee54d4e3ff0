"""Bytes parsed as one layout, as far as they go: what there is of the values when an error ends it, and the error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import construct

from codecgen.plan import LayoutPlan
from codecgen.runtime.errors import CodecError, LimitError, ParseError, TrailingError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.values.inputs import Input
from codecgen.values.named import Named


@dataclass(frozen=True, slots=True)
class Reading:
    """What was parsed: bytes ``start`` to ``end`` (not included) of the input.

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


def read_one(named: Named, given: Input, start: int, end: int, *, strict: bool) -> Reading:
    """One layout from the byte ``start`` on; ``end`` is where the bytes end for it."""
    trace: list[tuple[str, int, int, bool]] = []
    begun: dict[str, Any] = {}
    session = Session(strict=strict, file=given.name, trace=trace, begun=begun)
    source = Source(given.data, session, pos=start, end=end)
    plan, value, error = None, None, None
    try:
        plan = named.layout_of_bytes(source)
        value = named.codec.read(source, None)
    except CodecError as found:
        value, error = gathered(begun), found
    return Reading(plan, start, source.pos, value, tuple(trace), tuple(session.findings), error)


def to_the_end(reading: Reading, given: Input, end: int, *, strict: bool) -> Reading:
    """The same, of bytes that are one whole layout: with an error when bytes follow it."""
    if reading.plan is None or reading.error is not None or reading.end == end:
        return reading
    where = Source(given.data, Session(file=given.name), end=end).where(reading.end)
    error = TrailingError(f"{end - reading.end} bytes follow the {reading.plan.name}", where)
    tolerated = not strict and "trailing_bytes" in reading.plan.layout.accepts
    if tolerated:
        return replace(reading, findings=(*reading.findings, error))
    return replace(reading, error=error)


def bytes_follow(reading: Reading) -> bool:
    """Whether all is well but for the bytes that follow."""
    error = reading.error
    return isinstance(error, TrailingError) and error.where.schema is None


def one_of_many(reading: Reading, given: Input) -> Reading:
    """The same, of bytes that others follow: with an error when it took none, of which there would be no end."""
    if reading.error is not None or reading.end > reading.start:
        return reading
    where = Source(given.data, Session(file=given.name)).where(reading.end)
    error = LimitError("a layout that takes no bytes here: there is no end of them", where)
    return replace(reading, error=error)


def gathered(begun: dict[str, Any]) -> Any:
    """The value that an error ended, from the layouts and arrays that were begun, by path: each one stands in what is
    around it, if it does not yet."""
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
