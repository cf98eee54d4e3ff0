"""The law of `codecgen breaking`: if it is silent about an edit, the new codecs read old bytes to equal values.

``python -m tests.laws.evolution_laws --schemas N --seed S`` tries many schemas.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import traceback
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import Phase

from codecgen.evolution import Change, compare_models
from codecgen.runtime.errors import CodecError
from codecgen.schema.model import Model
from tests.laws import text_laws
from tests.laws.codec_laws import LIMITS, codec_of, samples, symbol_of
from tests.laws.edits import edited
from tests.laws.made import checked, generated, imported
from tests.laws.runs import block_of
from tests.laws.values import Full, NoValue, given
from tests.laws.world import World

EDITS = 8
VALUES = 3


@dataclass
class Tried:
    """What a run has tried. ``needless`` are breaks that no value showed: some must be, since values are few."""

    schemas: int = 0
    edits: int = 0
    rejected: int = 0
    silent: int = 0
    read: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    needless: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def run(schemas: int, seed: int, edits: int = EDITS) -> Tried:
    """Try edits of so many random directories."""
    tried = Tried()
    block = seed * 1_000_000

    def look(world: World) -> None:
        if tried.schemas < schemas:
            try_edits(world, edits, tried)

    while tried.schemas < schemas:
        block_of(block, look, (Phase.generate,), views=False)
        block += 1
    return tried


def try_edits(world: World, edits: int, tried: Tried) -> None:
    """Try some edits of a directory that `check` accepts."""
    world = _bare(world)
    old, found = checked(world)
    if found or "construct" in generated(world, old, ("construct",)).refused:
        return
    tried.schemas += 1
    r = random.Random(zlib.crc32(str(world).encode()))
    written: dict[Any, Any] | None = None
    for _ in range(edits):
        try:
            other, said = edited(world, r)
            new, found = checked(other)
        except Exception:
            found = "no directory at all"  # an edit that the look-ups of the laws do not survive
        if found:
            tried.rejected += 1
            continue
        if written is None:
            written = _write(world, old, r)
        tried.edits += 1
        try:
            _judge(old, new, other, written, tried)
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            tried.findings.append(f"{said}\n{text}\n{world}\n--- edited:\n{other}")


def _bare(world: World) -> World:
    """A directory without examples, which an edit would break."""
    files = {
        name: [
            {k: v for k, v in doc.items() if k not in ("examples", "documentation")} for doc in docs
        ]
        for name, docs in world.files.items()
    }
    return World(world.manifest, files)


def _write(world: World, old: Model, r: random.Random) -> dict[Any, Any]:
    """Values of each layout in each version and of each text, with the bytes that the old codecs build."""
    made = generated(world, old, ("construct",))
    out: dict[Any, Any] = {}
    with imported(made) as package:
        for name, layout in made.facts.layouts.items():
            if "draft" in layout or name not in old.layouts:
                continue
            for version in made.facts.versions(name):
                if not hasattr(package, symbol_of(name, version)):
                    continue  # a layout in the place of a field of a draft, which is not exported
                if _is_unstable(old, name, version):
                    continue
                found: list[tuple[Any, bytes]] = []
                for full, data in samples(made, name, version, r, VALUES):
                    if data is not None and not _has_unknown(full):
                        built = codec_of(package, name, version).build(given(full))
                        found.append((full, built))
                out[name, version] = found
        for name, tree in world.of("text").items():
            texts: list[tuple[Any, bytes]] = []
            for _ in range(VALUES):
                try:
                    value = text_laws.Values(tree, r).text()
                except NoValue:
                    continue
                texts.append((value, text_laws.built(tree, value)))
            out[name, "text"] = texts
    return out


def _is_unstable(old: Model, name: str, version: int | None) -> bool:
    """Return whether a version of a layout, or of the layout that it is declared in, may still change: no change of it breaks."""
    message = old.layouts[name.partition(".")[0]].message
    return message is not None and message.unstable is not None and version in message.unstable


def _has_unknown(value: Any) -> bool:
    """Whether a value has tagged fields that its layout does not name: a later schema may give them a meaning."""
    if isinstance(value, Mapping):
        return bool(value.get("unknown_tags")) or any(map(_has_unknown, value.values()))
    return isinstance(value, list) and any(map(_has_unknown, value))


def _judge(old: Model, new: Model, other: World, written: Mapping[Any, Any], tried: Tried) -> None:
    changes = compare_models(old, new)
    breaks = {change.rule for change in changes if change.is_breaking}
    wrong = _read_again(other, old, new, written, changes, tried)
    if not breaks:
        tried.silent += 1
        assert not wrong, f"breaking is silent, but {wrong}\nchanges: {changes}"
    tried.broken.update(breaks)
    if not wrong:
        certain = {change.rule for change in changes if change.is_breaking and change.is_certain}
        tried.needless.update(certain)


def _read_again(
    other: World,
    old: Model,
    new: Model,
    written: Mapping[Any, Any],
    changes: list[Change],
    tried: Tried,
) -> str:
    """Return the first bytes that the new codecs do not read to the old value, or nothing."""
    renamed = {
        change.path.rpartition(".")[2]: change.message.rpartition(" ")[2]
        for change in changes
        if "is renamed to" in change.message
    }
    gets_cases = any(c.message.startswith("case ") and "is added" in c.message for c in changes)
    made = generated(other, new, ("construct",))
    if "construct" in made.refused:
        return ""
    with imported(made) as package:
        for (name, version), found in written.items():
            codec = _codec(package, name, version)
            if codec is None and version != "text" and old.layouts[name].is_local:
                continue  # it has the name of its field, which has another one now
            for value, data in found:
                if codec is None:
                    return f"there is no codec of {name}@{version}"
                shown = f"{name}@{version}: {data.hex()} of {value}"
                try:
                    parsed = codec.parse(data, limits=LIMITS)
                except CodecError as error:
                    if gets_cases and _has_bytes(value):
                        continue
                    return f"{shown} is refused: {error}"
                wrong = difference(value, parsed, renamed)
                if wrong and not (gets_cases and _has_bytes(value)):
                    return f"{shown} is read with {wrong}"
                tried.read += 1
    return ""


def _codec(package: Any, name: str, version: Any) -> Any:
    """The codec that reads a version. A layout that had no versions is continued by its lowest one."""
    version = None if version == "text" else version
    found = getattr(package, symbol_of(name, version), None)
    if found is None and version is not None:
        found = getattr(package, symbol_of(name), None)
    if version is not None or hasattr(found, "parse"):
        return found if hasattr(found, "parse") else None
    return next(
        (one for n in range(100) if (one := getattr(package, symbol_of(name, n), None))), None
    )


def _has_bytes(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_bytes, value.values()))
    return isinstance(value, bytes) or (isinstance(value, list) and any(map(_has_bytes, value)))


def difference(expected: Any, found: Any, renamed: Mapping[str, str], path: str = "") -> str:
    """Where a value differs from an old one, or nothing. New fields and bits do not count, nor lengths and checksums."""
    if isinstance(expected, Mapping) and isinstance(found, bytes | str | int | list):
        return f"{path} = {found!r}, not {expected!r}"
    if isinstance(expected, Mapping) and found is not None:
        left = expected.left if isinstance(expected, Full) else set()
        for name, value in expected.items():
            if value == 0 and name in left:
                continue
            there = name if name in found else renamed.get(name, name)
            if there not in found:
                if not value:
                    continue  # reserved bits, or null
                return f"no {path}{name}"
            if wrong := difference(value, found[there], renamed, f"{path}{name}."):
                return wrong
        return ""
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = zip(expected, found, strict=True)
        return next((w for a, b in pairs if (w := difference(a, b, renamed, f"{path}n."))), "")
    if isinstance(expected, float):
        return "" if repr(expected) == repr(found) else f"{path} = {found!r}"
    same = expected == found and (expected is None) == (found is None)
    return "" if same else f"{path} = {found!r}, not {expected!r}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.laws.evolution_laws")
    parser.add_argument("--schemas", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--edits", type=int, default=EDITS, metavar="N", help="of each schema")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        again = [sys.executable, "-m", "tests.laws.evolution_laws", *sys.argv[1:]]
        return subprocess.run(again, env={**os.environ, "PYTHONHASHSEED": "0"}).returncode
    tried = run(arguments.schemas, arguments.seed, arguments.edits)
    print(
        f"{tried.schemas} schemas, {tried.edits} edits ({tried.rejected} more were rejected by check), "
        f"{tried.silent} of them silent, {tried.read} values read"
    )
    print("broken:", dict(sorted(tried.broken.items())))
    print("not shown by a value:", dict(sorted(tried.needless.items())))
    for finding in tried.findings[:10]:
        print("=" * 100, finding, sep="\n")
    print(f"{len(tried.findings)} findings")
    return 1 if tried.findings else 0


if __name__ == "__main__":
    sys.exit(main())
