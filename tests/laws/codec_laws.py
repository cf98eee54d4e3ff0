"""Laws about parsers and builders of any layout."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from codecgen.runtime.errors import BuildError, CodecError, RuleBroken
from codecgen.runtime.located_bytes import Limits
from tests.laws import bytes_of
from tests.laws.bytes_of import Unfit, Unruly
from tests.laws.fast_laws import built_either_way, same_either_way, same_in_windows
from tests.laws.made import Generated
from tests.laws.memory import Broken
from tests.laws.mutations import mutated, mutated_values
from tests.laws.stub_types import Stubs
from tests.laws.values import Full, NoValue, Values, given
from tests.laws.world import Tree

LIMITS = Limits(decompressed=1 << 16, elements=2000, findings=200)
SECONDS = 2.0
"""The time that one parse of a few bytes may take at most."""


def codec_laws(
    made: Generated, package: ModuleType, r: random.Random, values: int = 3, mutants: int = 6
) -> None:
    """Every layout builds what it parses, parses what it builds, and refuses with a CodecError. Raises Broken."""
    stubs = Stubs(made.files)
    for name in made.facts.layouts:
        for version in made.facts.versions(name):
            codec = codec_of(package, name, version)
            for full, data in samples(made, name, version, r, values):
                one_value(made, codec, name, version, full, data)
                builds(codec, full, data, r, mutants)
                if data is None:
                    broken_rule(made, codec, name, version, full)
                if data is not None:
                    typed(stubs, symbol_of(name, version), codec, data)
                    same_either_way(codec, data, LIMITS)
                    same_in_windows(codec, data, LIMITS, random.Random(len(data)), 3)
                if data is not None:
                    for bad in mutated(data, r, mutants):
                        parse_or_refuse(codec, bad)
                        same_either_way(codec, bad, LIMITS)
                        typed(stubs, symbol_of(name, version), codec, bad)


def builds(codec: Any, full: Full, data: bytes | None, r: random.Random, mutants: int) -> None:
    """A value, its parsed form and mutants of both are built alike with fast builders and without. Raises Broken."""
    values = [given(full)]
    if data is not None:
        values.append(codec.parse(data, limits=LIMITS))
    for value in values:
        built_either_way(codec, value)
        for mutant in mutated_values(value, r, 2 * mutants):
            built_either_way(codec, mutant)


def codec_of(package: ModuleType, name: str, version: int | None) -> Any:
    return getattr(package, symbol_of(name, version))


def symbol_of(name: str, version: int | None = None) -> str:
    return name.upper() if version is None else f"{name.upper()}_V{version}"


def typed(stubs: Stubs, symbol: str, codec: Any, data: bytes, strict: bool = True) -> None:
    """What is parsed is what the stub says. Raises Broken."""
    try:
        parsed = codec.parse(data, strict=strict, limits=LIMITS)
    except CodecError:
        return
    if wrong := stubs.wrong(symbol, parsed):
        raise Broken(f"{symbol}: {data.hex()} is not of its type: {wrong}")


def samples(
    made: Generated, name: str, version: int | None, r: random.Random, number: int
) -> Iterator[tuple[Full, bytes | None]]:
    """Values of a layout, and their bytes; None where they do not fit. None of one that is given values from outside: it is
    tried where it is held.
    """
    for _ in range(0 if "given" in made.facts.layouts[name] else number):
        try:
            full = Values(made.facts, r).layout(name, version)
        except NoValue:
            continue
        try:
            data = bytes_of.built(made.facts, name, version, full)
        except Unfit:
            yield full, None
        else:
            yield full, data


def broken_rule(made: Generated, codec: Any, name: str, version: int | None, full: Full) -> None:
    """Values that break a rule are built for those who ask for it; strict parsers refuse the bytes, lenient ones read them."""
    try:
        bytes_of.built(made.facts, name, version, full)
    except Unruly as broken:
        data = broken.data
    except Unfit:
        return
    built = codec.build(given(full), strict=False)
    if built != data:
        raise Broken(f"{codec!r}: {given(full)} is built as {built.hex()}, not {data.hex()}")
    lenient = codec.parse(data, strict=False, limits=LIMITS)
    if wrong := difference(full, lenient):
        raise Broken(f"{codec!r}: {data.hex()} of {given(full)} is read with {wrong}")
    try:
        codec.parse(data, limits=LIMITS)
    except RuleBroken:
        return
    raise Broken(f"{codec!r}: a strict parser takes {data.hex()}, which breaks a rule")


def one_value(
    made: Generated, codec: Any, name: str, version: int | None, full: Full, data: bytes | None
) -> None:
    """parse(build(x)) = x, and build(parse(b)) = b."""
    wanted = given(full)
    try:
        built = codec.build(wanted)
    except BuildError as error:
        if data is None:
            return
        raise Broken(f"{name}@{version}: build({wanted}) is refused: {error}") from error
    if data is None:
        raise Broken(f"{name}@{version}: build({wanted}) gives {built.hex()}, and it does not fit")
    if built != data:
        raise Broken(f"{name}@{version}: build({wanted}) gives {built.hex()}, not {data.hex()}")
    for other in with_fills(made.facts.layouts[name], wanted):
        if (found := codec.build(other)) != data:
            raise Broken(f"{name}@{version}: build({other}) gives {found.hex()}, not {data.hex()}")
    try:
        parsed = codec.parse(data, limits=LIMITS)
    except CodecError as error:
        raise Broken(
            f"{name}@{version}: what {wanted} was built to, {data.hex()}, is refused: {error}"
        ) from error
    if wrong := difference(full, parsed):
        raise Broken(f"{name}@{version}: {data.hex()} of {wanted} is read with {wrong}")
    again = codec.build(parsed)
    if again != data:
        raise Broken(f"{name}@{version}: {data.hex()} is built again as {again.hex()}")
    for cut in {0, len(data) // 2, len(data) - 1} - {-1, len(data)}:
        parse_or_refuse(codec, data[:cut])


def with_fills(layout: Tree, wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same values with those from which a builder works numbers of elements out in the place of these numbers."""
    for array, fills in layout.get("build", {}).items():
        for target, fill in fills.items():
            base, items = wanted.get(fill["less"]), wanted.get(array)
            if isinstance(base, int) and items:
                others = [
                    {name: part for name, part in item.items() if name != target}
                    | {fill["from"]: item[target] + base}
                    for item in items
                ]
                yield {**wanted, array: others}


def parse_or_refuse(codec: Any, data: bytes) -> None:
    """Both ways of reading give a value or a CodecError, in time. Raises Broken."""
    for strict in (True, False):
        begin = time.process_time()
        try:
            parsed = codec.parse(data, strict=strict, limits=LIMITS)
        except CodecError:
            continue
        except Exception as error:
            raise Broken(
                f"{type(error).__name__} from the {'strict' if strict else 'lenient'} parser of {data.hex()}: {error}"
            ) from error
        finally:
            taken = time.process_time() - begin
            if taken > SECONDS:
                raise Broken(f"{taken:.1f} s to parse {data.hex()}")
        if strict:
            build_or_refuse(codec, parsed, data)


def build_or_refuse(codec: Any, parsed: Any, data: bytes) -> None:
    try:
        codec.build(parsed)
    except BuildError:
        pass
    except Exception as error:
        raise Broken(
            f"{type(error).__name__} from the builder of what {data.hex()} is: {error}"
        ) from error


def difference(expected: Any, found: Any, path: str = "") -> str:
    """Where two values differ, or nothing. Lengths and checksums, which only a parser has, are passed over."""
    if isinstance(expected, Full):
        for name, value in expected.looked_up.items():
            if getattr(found, name) != value:
                return f"{path}{name} = {getattr(found, name)!r}"
        for name, value in expected.items():
            if name not in found and hasattr(found, name):
                continue  # an array from outside
            if name not in found:
                return f"no {path}{name}"
            worked_out = value == 0 and name in expected.left
            if not worked_out and (wrong := difference(value, found[name], f"{path}{name}.")):
                return wrong
        return ""
    if isinstance(expected, Mapping):
        names = {n for n in found if not str(n).startswith("_")}
        if names != set(expected):
            return f"{path} with {sorted(names)}"
        return next(
            (w for n, v in expected.items() if (w := difference(v, found[n], f"{path}{n}."))), ""
        )
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return f"{path} = {found!r}"
        return next(
            (w for i, v in enumerate(expected) if (w := difference(v, found[i], f"{path}{i}."))), ""
        )
    if isinstance(expected, float):
        same = isinstance(found, float) and struct.pack(">d", expected) == struct.pack(">d", found)
        return "" if same else f"{path} = {found!r}"
    return (
        "" if expected == found and (expected is None) == (found is None) else f"{path} = {found!r}"
    )
