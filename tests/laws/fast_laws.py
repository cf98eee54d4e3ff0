"""Laws about fast parsers and builders: values, bytes, errors and findings are those of the field-by-field codec."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from codecgen.runtime.errors import CodecError
from codecgen.runtime.fast_path import without_fast_paths
from codecgen.runtime.located_bytes import Limits, Session, Source
from codecgen.runtime.parsed import Parsed
from tests.laws.memory import Broken

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"strict": False},
    {"strict": False, "rules": True, "torn": True},
)
"""Options of sessions: strict, lenient, and lenient with rules."""


def same_either_way(codec: Any, data: bytes, limits: Limits) -> None:
    """Parse bytes with fast parsers and without, strictly, leniently, and leniently with rules. Raises Broken."""
    for options in OPTIONS:
        fast = outcome(codec, data, Session(limits=limits, **options))
        with without_fast_paths():
            slow = outcome(codec, data, Session(limits=limits, **options))
        if fast != slow:
            wrong = next((a, b) for a, b in zip(fast, slow, strict=True) if a != b)
            raise Broken(
                f"{codec!r}: {data.hex()} with {options} is parsed to {wrong[0]} by the fast parser, "
                f"not to {wrong[1]}"
            )


def same_in_windows(codec: Any, data: bytes, limits: Limits, r: random.Random, number: int) -> None:
    """Read windows of longer bytes with fast parsers and without: neither uses what follows the window. Raises Broken."""
    longer = data + data + bytes(64)
    for end in [len(data), *(r.randint(0, len(data) + 20) for _ in range(number))]:
        fast = read_window(codec, longer, end, limits)
        with without_fast_paths():
            slow = read_window(codec, longer, end, limits)
        if fast != slow:
            raise Broken(f"{codec!r}: {longer.hex()} to {end} is read as {fast}, not as {slow}")


def read_window(codec: Any, data: bytes, end: int, limits: Limits) -> tuple[Any, ...]:
    """What is read in a window that begins after some bytes, and the position after it; or the error."""
    source = Source(b"\x01\x02" + data, Session(limits=limits), pos=2, end=2 + end)
    try:
        return tree(codec.read(source, None)), source.pos
    except CodecError as error:
        return shown(error)


def outcome(codec: Any, data: bytes, session: Session) -> tuple[Any, ...]:
    """What a parse gives: the value, the error, the findings, and what the session knows then."""
    value, error = None, None
    try:
        parsed = codec.parse_whole(data, 100, session)
        value = tree(parsed), repr(parsed)
    except CodecError as raised:
        error = shown(raised)
    findings = [shown(finding) for finding in session.findings]
    return value, error, findings, session.section, session.depth, session.nesting


def built_either_way(codec: Any, value: Any) -> bool:
    """Build a value with fast builders and without, and return whether it can be built. Raises Broken if one way gives
    other bytes or another error than the other, or changes the value.
    """
    before = tree(value)
    fast = build_outcome(codec, value)
    with without_fast_paths():
        slow = build_outcome(codec, value)
    if fast != slow:
        raise Broken(f"{codec!r}: {value!r} is built to {fast} by the fast builder, not to {slow}")
    if tree(value) != before:
        raise Broken(f"{codec!r}: a builder changes the value {value!r}")
    return isinstance(fast, str)


def build_outcome(codec: Any, value: Any) -> Any:
    """What a build gives: the bytes in hex, or the error. A value of a strange type may give an error of Python."""
    try:
        return codec.build(value).hex()
    except CodecError as error:
        return shown(error)
    except Exception as error:
        return type(error), str(error)


def shown(error: CodecError) -> tuple[Any, ...]:
    return type(error), str(error), error.reason, error.where


def tree(value: Any) -> Any:
    """A value with its classes, the order of its items, and what else its containers know."""
    if isinstance(value, dict):
        known = dict(vars(value)) if isinstance(value, Parsed) else {}
        each = sorted(value._array().of_each) if isinstance(value, Parsed) else None
        return (
            type(value),
            [(name, tree(item)) for name, item in value.items()],
            each,
            tree_of(known),
        )
    if isinstance(value, list):
        return type(value), [tree(item) for item in value]
    return type(value), repr(value)


def tree_of(known: dict[str, Any]) -> list[Any]:
    """The same of objects beside the items."""
    return [(name, list(_parts(value))) for name, value in sorted(known.items())]


def _parts(value: Any) -> Iterator[Any]:
    if is_dataclass(value):
        for one in fields(value):
            yield one.name, tree(getattr(value, one.name))
    else:
        yield tree(value)
