"""The primitives of the runtime that kernels call, and how a module imports those that it uses."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codecgen.runtime.checksums import CHECKSUMS, Crc
from codecgen.targets.python_source import WIDTH

_PACKAGE = "codecgen.runtime.arrow.primitives"
_FIXED = ("8", "16", "32", "64")
_STORED = ("8", "16", "24", "32", "64")
_LOADED = ("i8", "i16", "i32", "i64", "u8", "u16", "u32")
_OWN = ("crc32", "crc32c")
_VARINTS = ("uvarint", "uvarlong", "varint", "varlong")

MODULES: Mapping[str, tuple[str, ...]] = {
    "bitmaps": ("clear_bit", "fill_false", "is_null", "load_bit"),
    "checksums": ("crc32", "crc32c", "masked"),
    "compiling": ("JIT", "inner", "jit"),
    "memory": (
        "fail",
        "fetch_around",
        *(f"fill_{bits}" for bits in _FIXED),
        *(f"load_{name}" for name in _LOADED),
        *(f"load_{name}_le" for name in _LOADED if name not in ("i8", "u8")),
        *(f"store_{bits}" for bits in _STORED),
        *(f"wrap_{bits}" for bits in _FIXED),
    ),
    "table_checksums": tuple(
        name for name, kind in CHECKSUMS.items() if isinstance(kind, Crc) and name not in _OWN
    ),
    "utf8": ("is_utf8", "is_utf8_within"),
    "varints": ("uvarint", "varint", "varlong"),
    "views": ("put_bytes",),
    "writing": (
        "copy_from",
        *(f"put_{name}" for name in _VARINTS),
        *(f"size_{name}" for name in _VARINTS),
        *(f"store_{bits}_be" for bits in _STORED[1:]),
    ),
    "xxhash": ("xxh3_64", "xxh64"),
}
"""The names of each module."""

NAMES = frozenset(name for names in MODULES.values() for name in names)
"""All of them: nothing else in a module of kernels may be called so."""


def imports(used: set[str]) -> str:
    """Return the import lines for the primitives among the names ``used``, and for ``JIT``."""
    wanted = used | {"JIT"}
    found = {name: [n for n in names if n in wanted] for name, names in MODULES.items()}
    return "".join(_import(name, names) for name, names in found.items() if names)


def _import(module: str, names: list[str]) -> str:
    """Return the statement that imports ``names`` from a module of primitives, sorted with
    upper-case names first and numbers by value. It has one name per line in parentheses if one line
    exceeds 100 characters.
    """
    found = sorted(names, key=lambda name: (not name.isupper(), _natural(name)))
    line = f"from {_PACKAGE}.{module} import {', '.join(found)}"
    if len(line) <= WIDTH:
        return f"{line}\n"
    return f"from {_PACKAGE}.{module} import (\n" + "".join(f"    {n},\n" for n in found) + ")\n"


def _natural(name: str) -> list[tuple[str, int]]:
    """Return a sort key that orders numbers in names by value: ``store_8`` before ``store_16``."""
    return [(letters, int(digits or -1)) for letters, digits in re.findall(r"(\D+)(\d*)", name)]
