"""Laws about values as people see them: dumps, and YAML and JSON that build to the same bytes."""

from __future__ import annotations

import random
from types import ModuleType

from codecgen.runtime.errors import LimitError
from codecgen.values import documents, dump
from codecgen.values.named_codec import NamedCodec
from codecgen.values.reading import Input, Reading, read_one
from tests.laws.codec_laws import codec_of, samples
from tests.laws.made import Generated
from tests.laws.memory import Broken
from tests.laws.mutations import mutated


def value_laws(made: Generated, package: ModuleType, r: random.Random, mutants: int = 2) -> None:
    """Of every layout one value: what is shown of it, and of damaged bytes, and what it is built to again."""
    for name in made.facts.layouts:
        for version in made.facts.versions(name):
            named = NamedCodec(name, made.plan, codec_of(package, name, version))
            for _, data in samples(made, name, version, r, 1):
                if data is None:
                    continue
                built_again(named, data)
                for bad in (data, *mutated(data, r, mutants)):
                    all_is_shown(named, bad)


def built_again(named: NamedCodec, data: bytes) -> None:
    """Parsed values that are printed build to the same bytes, or, where they were compressed, to the same values."""
    reading = read_one(named, Input("law", data), 0, len(data), strict=True)
    if isinstance(reading.error, LimitError):
        return  # it decompresses to more than the limit of its own layout: builders do not ask
    if reading.error is not None:
        raise Broken(f"{named.name}: {data.hex()} is refused: {reading.error}")
    yaml = documents.format_yaml(reading.value)
    for text in (yaml, documents.format_json(reading.value)):
        try:
            built = documents.build_all(named, "law", text)
        except documents.BuildError as wrong:
            if _ambiguous(text):
                return
            reason = wrong.diagnostics[0].message
            raise Broken(f"{named.name}: {text} of {data.hex()} is refused: {reason}") from None
        if not any(inner for _, _, _, inner in reading.trace):
            if built != data and "nan" not in text:  # which of those that are no number is not said
                raise Broken(f"{named.name}: {text} gives {built.hex()}, not {data.hex()}")
            continue
        again = read_one(named, Input("law", built), 0, len(built), strict=True)
        if again.error is not None:
            raise Broken(f"{named.name}: what {text} gives is refused: {again.error}")


def _ambiguous(text: str) -> bool:
    """Whether a layout with one field, called hex, reads as bytes."""
    return "hex" in text


def all_is_shown(named: NamedCodec, data: bytes) -> None:
    """Every byte is in a piece, in order, each once; and there are lines for any width."""
    given = Input("law", data)
    for strict in (True, False):
        reading = read_one(named, given, 0, len(data), strict=strict)
        end = reading.end if reading.error is None else len(data)
        for stream, first, last in dump.list_streams(named.plan, reading, given, end):
            at = first
            for piece in stream.pieces:
                if piece.start != at or piece.end < at:
                    raise Broken(f"{named.name}: {piece} of {data.hex()} does not begin at {at}")
                at = piece.end
            if at != last:
                raise Broken(f"{named.name}: {last - at} bytes of {data.hex()} are not shown")
        lines(named, reading, given, end)


def lines(named: NamedCodec, reading: Reading, given: Input, end: int) -> None:
    for width in (None, 40, 100):
        for line in dump.dump(named.plan, reading, given, end, width):
            if not line.isprintable() or (width and len(line) > width):
                raise Broken(f"{named.name}: the line {line!r} of {width}")
