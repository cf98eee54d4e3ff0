"""The kernels of a module once more, with every access to memory checked against the memory that they were given.

numba's own checks of bounds know arrays, and the kernels use addresses. So the text of the module, and of the primitives
that it imports, is compiled again with those replaced that touch memory: each first looks for its bytes in a table of
ranges. Beyond them it does nothing, and notes it.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from codecgen.runtime.arrow import primitives
from codecgen.targets.arrow import primitive_imports

PACKAGE = Path(primitives.__path__[0])
MOST_RANGES = 128
ANYWHERE_ELSE = "the kernels {what} {size} bytes at {place}"

# Primitives that touch memory: (parameters, the accesses as (address, bytes, is it written?), what is given instead).
_FIXED = re.compile(r"(load|store)_[iu]?([0-9]+)(?:_le)?")
Access = tuple[str, str, int]
PRIMITIVES: dict[str, tuple[str, tuple[Access, ...], str]] = {
    found[0]: ("p, value", (("p", size, 1),), "None")
    if found[1] == "store"
    else ("p", (("p", size, 0),), "0")
    for found in filter(None, map(_FIXED.fullmatch, primitive_imports.MODULES["memory"]))
    if (size := str(int(found[2]) // 8))
}
_AFTER_32 = "+ 32 * (size > 32)", "32 * max((size - 1) // 32, 0)"
_RUN_OF = {
    f"fill_{8 * size}": (
        "to, first, count, value",
        ((f"to + {size} * first", f"{size} * max(count, 0)", 1),),
        "None",
    )
    for size in (1, 2, 4, 8)
}
PRIMITIVES |= {"fail": ("row, line, p", (("row", "16", 1),), "0"), **_RUN_OF}
COMPILED = {
    "_move32": ("to, start", (("to", "32", 1), ("start", "32", 0)), "None"),
    "_move_rest": (
        "to, start, size",
        ((f"to {_AFTER_32[0]}", _AFTER_32[1], 1), (f"start {_AFTER_32[0]}", _AFTER_32[1], 0)),
        "None",
    ),
    "_fold_lanes": ("a, b, c, d, e, f, g, h, p, n", (("p", "64 * max(n, 0)", 0),), "0"),
}
WRITING: dict[str, tuple[str, tuple[Access, ...], str]] = {
    name: ("p, value", (("p", str(int(name.split("_")[1]) // 8), 1),), "None")
    for name in primitive_imports.MODULES["writing"]
    if name.startswith("store_")
}
"""Those that write."""

PLAIN = {
    "copy": ("to, start, size", (("to", "size", 1), ("start", "size", 0)), "None"),
    "crc32c": ("p, size", (("p", "size", 0),), "0"),
    "crc32": ("p, size", (("p", "size", 0),), "0"),
}
"""Without a compiler these are Python's own, and do not go through the others."""

PLAIN_WRITING = {
    "copy_from": ("to, start, size, end", (("to", "size", 1), ("start", "size", 0)), "None"),
}
HARMLESS = {"_has_crc32c", "_crc32c_8", "_crc32c_1", "_has_multiply", "_multiply", "bit_length"}
HARMLESS |= {f"wrap_{bits}" for bits in (8, 16, 32, 64)}
HARMLESS |= {"_fetch"}  # a wish: an address that is no memory is passed over
"""Intrinsics that touch no memory."""

MODULES = ("memory", "bitmaps", "checksums", "utf8", "varints", "views", "writing")
"""The primitives of kernels, each after those that it imports."""

_CHECK = """

RANGES = {address}
_raw_load, _raw_store = load_i64_le, store_64


@inner
def _allowed(p, size, written):
    for i in range(_raw_load(RANGES)):
        row = RANGES + 32 + 24 * i
        if _raw_load(row) <= p and p + size <= _raw_load(row + 8) and _raw_load(row + 16) >= written:
            return True
    if _raw_load(RANGES + 8) == 0:
        _raw_store(RANGES + 8, p)
        _raw_store(RANGES + 16, size)
        _raw_store(RANGES + 24, written)
    return False
"""
_PRIMITIVE = """

_raw_{name} = {name}


@inner
def {name}({parameters}):
    if {allowed}:
        return _raw_{name}({parameters})
    return {instead}
"""


class Ranges:
    """The memory that kernels were given."""

    def __init__(self) -> None:
        self.table = np.zeros(4 + 3 * MOST_RANGES, np.int64)

    def set(self, ranges: Sequence[tuple[int, int, bool]]) -> None:
        """(address, bytes, may it be written?), those that are used most first."""
        assert len(ranges) <= MOST_RANGES
        for i, (address, size, writable) in enumerate(ranges):
            self.table[4 + 3 * i : 7 + 3 * i] = address, address + size, writable
        self.table[0] = len(ranges)

    def add(self, address: int, size: int) -> None:
        """One more, to be written."""
        n = int(self.table[0])
        assert n < MOST_RANGES
        self.table[4 + 3 * n : 7 + 3 * n] = address, address + size, True
        self.table[0] = n + 1

    def violation(self) -> str | None:
        """The first access beyond them, if there was one; it is then forgotten."""
        address, size, written = (int(n) for n in self.table[1:4])
        if address == 0:
            return None
        self.table[1:4] = 0
        near = min(
            (abs(address - int(edge)), address - int(edge), i, name)
            for i in range(int(self.table[0]))
            for name, edge in zip(("start", "end"), self.table[4 + 3 * i : 6 + 3 * i], strict=True)
        )
        place = f"{near[1]:+} from the {near[3]} of range {near[2]}"
        return ANYWHERE_ELSE.format(what="write" if written else "read", size=size, place=place)


def checked(
    module: ModuleType,
    ranges: Ranges,
    folder: Path,
    edit: Callable[[str], str] | None = None,
) -> ModuleType:
    """A module of kernels, of which every access to memory is checked. ``edit`` changes the text of some module."""
    assert module.__file__ is not None
    texts = {path.stem: path.read_text("utf-8") for path in PACKAGE.glob("*.py")}
    name = module.__name__.rpartition(".")[2]
    texts[name] = Path(module.__file__).read_text(encoding="utf-8")
    if edit is not None:
        edited = {stem: edit(text) for stem, text in texts.items()}
        assert edited != texts
        texts = edited
    # The address of the table is in the code, which is of no use to others then.
    assert "    keep(compiled)\n" in texts["compiling"]
    texts["compiling"] = texts["compiling"].replace("    keep(compiled)\n", "")
    package = Path(tempfile.mkdtemp(prefix="checked_", dir=folder))
    texts["memory"] += _CHECK.format(address=ranges.table.ctypes.data)
    for stem, text in replaced(module.JIT).items():
        if stem != "memory":
            texts[stem] += f"\n\nfrom {primitives.__name__}.memory import _allowed\n"
        texts[stem] += text
    for stem, text in texts.items():
        text = text.replace(primitives.__name__, package.name)
        (package / f"{stem}.py").write_text(text, encoding="utf-8")
    load(package.name, package / "__init__.py")
    return load(f"{package.name}.{name}", package / f"{name}.py")


def replaced(compiled: bool) -> dict[str, str]:
    """For modules of primitives the text that replaces those that touch memory."""
    modules = {name: importlib.import_module(f"{primitives.__name__}.{name}") for name in MODULES}
    entries = PRIMITIVES | WRITING | (COMPILED if compiled else PLAIN | PLAIN_WRITING)
    found = set().union(*map(intrinsics, modules.values())) if compiled else set()
    unknown = found - set(entries) - HARMLESS
    assert not unknown, f"do these touch memory? {unknown}"
    out: dict[str, str] = {}
    for name, (parameters, accesses, instead) in entries.items():
        owner = next(stem for stem, module in modules.items() if hasattr(module, name))
        allowed = " and ".join(f"_allowed({p}, {size}, {w})" for p, size, w in accesses)
        text = _PRIMITIVE.format(name=name, parameters=parameters, allowed=allowed, instead=instead)
        out[owner] = out.get(owner, "") + text
    return out


def load(name: str, path: Path) -> ModuleType:
    """A module, or a package, from a file."""
    inside = [str(path.parent)] if path.stem == "__init__" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=inside)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


class Broken(Exception):
    """Something that must hold does not."""


def complaining(kernels: ModuleType, ranges: Ranges | None) -> Any:
    """The kernels; after each the accesses that it must not make are raised. Raises Broken."""
    if ranges is None:
        return kernels

    def wrapped(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: int) -> Any:
            result = kernel(*args)
            if found := ranges.violation():
                raise Broken(found)
            return result

        return run

    passes = {kind: tuple(map(wrapped, three)) for kind, three in kernels.KERNELS.items()}
    return SimpleNamespace(KERNELS=passes, JIT=kernels.JIT)


def intrinsics(module: ModuleType) -> set[str]:
    """The names of a module's intrinsics."""
    from numba.core.extending import _Intrinsic

    return {name for name, value in vars(module).items() if isinstance(value, _Intrinsic)}
