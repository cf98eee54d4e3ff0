"""Laws about views: the reference codecs, the NumPy readers and the kernels see the same rows, and refuse the same bytes."""

from __future__ import annotations

import importlib
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa

from codecgen.runtime.arrow import decoder as decoding
from codecgen.runtime.arrow.decoder import Decoder, Rejected, Rows, choose
from codecgen.runtime.errors import RuleBroken
from codecgen.runtime.located_bytes import Limits
from tests.laws import bytes_of
from tests.laws.codec_laws import samples
from tests.laws.made import Generated
from tests.laws.memory import Broken, Memory, TrackedChunk, watched
from tests.laws.mutations import mutated
from tests.laws.reference import Entry, Reference, Row, float_bits
from tests.laws.row_laws import row_functions
from tests.laws.world import Tree
from tests.support.scanned_rows import unpacked

LIMITS = Limits(decompressed=1 << 14, elements=300, findings=200)
SECONDS = 4.0
MOST_HEAD = 64
TIGHT = {"ENTRIES": 8, "SPARE": 8, "PROBE": 64}
"""Bounds of the decoder while the laws read, so that few rows reach them."""
Read = Callable[[bytes, list[str] | None, bool], "tuple[list[Row], list[Rejected]]"]


def view_laws(
    made: Generated, package: ModuleType, r: random.Random, chunks: int = 3, mutants: int = 5
) -> int:
    """The laws for every view; how many rows were read. Raises Broken."""
    seen = 0
    for name, tree in made.facts.views.items():
        view = getattr(importlib.import_module(f"{made.package}.arrow.{name}"), name.upper())
        modules = {"kernels": view.kernels, "NumPy": view.numpy}
        loaded = {name: importlib.import_module(m) for name, m in modules.items() if m is not None}
        engines = {name: reader(view, module) for name, module in loaded.items()}
        strict = {name: reader(view, module, rules=True) for name, module in loaded.items()}
        reference = Reference(made.facts, tree, package, LIMITS, made.notes)
        for _ in range(chunks):
            parts = [part for part in entries(made, tree, r) if part]
            data = b"".join(parts)
            expected = list(reference.entries(data))
            if b"".join(data[e.start : e.end] for e in expected) != data:
                raise Broken(f"the entries of {name} do not lead through {data.hex()}")
            for entry in expected:
                if entry.error is not None:
                    raise Broken(f"{name}: {data.hex()} was built, and is refused: {entry.error}")
            row_functions(made, name, data, expected, LIMITS)
            names = columns(tree, r)
            seen += agree(tree, name, engines, data, expected, names, r.random() < 0.3)
            bad_entries = unruly(made, tree, r)
            if bad_entries:
                agree(tree, name, strict, data, expected, names, False)
            for bad in bad_entries:
                refuse(name, strict, bad, reference, names)
            for bad in mutated(parts[-1], r, mutants) if parts else ():
                some = b"".join(parts[:-1][-1:]) + bad
                agree(tree, name, engines, some, list(reference.entries(some)), names, True)
    return seen


def columns(tree: Tree, r: random.Random) -> list[str]:
    """All columns of a view, or some."""
    names = list(tree["columns"])
    return names if r.random() < 0.7 else r.sample(names, r.randint(1, len(names)))


def entries(made: Generated, tree: Tree, r: random.Random) -> list[bytes]:
    """Some entries of a view."""
    choice = made.facts.choices.get(tree["of"])
    cases = [tree["of"]] if choice is None else list(choice["cases"].values())
    out: list[bytes] = []
    for _ in range(r.choice((1, 2, 3, 5))):
        name, _, version = r.choice(cases).partition("@")
        versions = [int(version)] if version else made.facts.versions(name)
        for _, data in samples(made, name, r.choice(versions), r, 1):
            out.append(data or b"")
    return out


def unruly(made: Generated, tree: Tree, r: random.Random) -> list[bytes]:
    """Return entries of a view that are as the YAML says, but for a rule that they break."""
    out: list[bytes] = []
    for name, version in layouts_of(made, tree):
        if "rules" not in made.facts.layouts[name]:
            continue
        for full, data in samples(made, name, version, r, 4):
            try:
                bytes_of.built(made.facts, name, version, full) if data is None else None
            except bytes_of.Unruly as broken:
                out.append(broken.data)
            except bytes_of.Unfit:
                continue
    return out


def layouts_of(made: Generated, tree: Tree) -> list[tuple[str, int | None]]:
    """Return the layouts that the entries of a view have, each in one of its versions."""
    choice = made.facts.choices.get(tree["of"])
    out = []
    for case in [tree["of"]] if choice is None else list(choice["cases"].values()):
        name, _, version = case.partition("@")
        out.append((name, int(version) if version else made.facts.versions(name)[-1]))
    return out


def refuse(
    name: str, engines: dict[str, Read], data: bytes, reference: Reference, names: list[str]
) -> None:
    """Strict engines reject an entry that breaks a rule. Raises Broken."""
    [entry, *_] = reference.entries(data)
    if entry.header_only:
        return
    if not isinstance(entry.error, RuleBroken):
        raise Broken(
            f"the reference codecs read {data.hex()} of {name}, which breaks a rule, with {entry.error}"
        )
    for engine, read in engines.items():
        if not read(data, names, False)[1]:
            raise Broken(f"{engine} of {name} takes {data.hex()}: {entry.error}")


def reader(view: Any, kernels: Any, *, rules: bool = False) -> Read:
    """Reads bytes by the kernels of a view, or by its NumPy readers."""

    def read(
        data: bytes, names: list[str] | None, full_check: bool
    ) -> tuple[list[Row], list[Rejected]]:
        with tight():
            return _read(view, kernels, data, names, full_check, rules)

    return read


@contextmanager
def tight() -> Iterator[None]:
    """Sets the bounds, and sets them back: other tests of this process read with those that everybody has."""
    before = {name: getattr(decoding, name) for name in TIGHT}
    try:
        for name, value in TIGHT.items():
            setattr(decoding, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(decoding, name, value)


def _read(
    view: Any,
    kernels: Any,
    data: bytes,
    names: list[str] | None,
    full_check: bool,
    rules: bool,
) -> tuple[list[Row], list[Rejected]]:
    memory = Memory()
    decoder = Decoder(
        view,
        choose(view, names),
        limits=LIMITS,
        full_check=full_check,
        rules=rules,
        kernels=as_module(kernels),
        allocate=memory.allocate,
    )
    chunk = TrackedChunk(len(data), memory)
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    decoder.decompressor.scratch = TrackedChunk(1 << 10, memory)
    for array in (decoder.table, decoder.out, decoder.state, decoder.room):
        memory.array(array)
    rows: list[Row] = []
    rejected: list[Rejected] = []
    with watched(memory):
        for item in decoder.decode(chunk, 0):
            if isinstance(item, Rows):
                rows += [
                    {name: by_bits(value) for name, value in row.items()}
                    for row in unpacked(item.batch)
                ]
            else:
                rejected.append(item)
    return rows, rejected


def by_bits(value: Any) -> Any:
    """A value with its floats by their bits."""
    if isinstance(value, dict):
        return {name: by_bits(part) for name, part in value.items()}
    if isinstance(value, list):
        return [by_bits(part) for part in value]
    return float_bits(value) if isinstance(value, float) else value


def as_module(kernels: Any) -> Any:
    """Kernels as the decoder takes them."""
    return kernels if isinstance(kernels, ModuleType) else SimpleNamespace(**kernels)


def agree(
    tree: Tree,
    name: str,
    engines: dict[str, Read],
    data: bytes,
    expected: list[Entry],
    names: list[str],
    full_check: bool,
) -> int:
    """All engines give the rows that the reference has, and name the entries that it refuses. How many rows there are."""
    seen = 0
    for engine, read in engines.items():
        begin = time.process_time()
        try:
            rows, rejected = read(data, names, full_check)
        except Broken:
            raise
        except pa.ArrowInvalid as error:
            raise Broken(f"{engine} of {name} gives a batch that is not valid: {error}") from error
        if time.process_time() - begin > SECONDS:
            raise Broken(
                f"{engine} of {name} takes {time.process_time() - begin:.1f} s for {data.hex()}"
            )
        passed = {item.start for item in rejected}
        wanted: list[Row] = []
        for entry in expected:
            if entry.start in passed:
                none = (
                    entry.silent and not entry.rows
                )  # left to the reference codecs, which see that it is sound
                allowed = entry.header_only or entry.left_out or none
                allowed |= full_check and entry.full_check
                if entry.error is None and not allowed:
                    raise Broken(
                        f"{engine} of {name} refuses the entry at {entry.start} of {data.hex()} (line {_line(rejected, entry)}), and nothing is wrong with it"
                    )
                continue
            if entry.rows is not None:
                wanted += [{n: row[n] for n in names} for row in entry.rows]
            elif not entry.header_only and not entry.silent:
                if not entry.read and len(data) - entry.start < MOST_HEAD:
                    break  # too short for its head: an engine may stop before it, as before what is cut off
                if not entry.read:
                    raise Broken(
                        f"{engine} of {name} takes the entry at {entry.start} of {data.hex()}: {entry.error}"
                    )
                wanted += [{n: row[n] for n in names} for row in entry.lenient]
            else:
                return seen  # what it gives is made of a part of the entry
        if rows != wanted:
            raise Broken(f"{engine} of {name} reads {data.hex()} as {rows}, not {wanted}")
        seen += len(rows)
    return seen


def _line(rejected: list[Rejected], entry: Entry) -> int:
    return next(getattr(item, "line", 0) for item in rejected if item.start == entry.start)
