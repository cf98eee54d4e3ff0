"""The bytes of a file or of standard input. A file is mapped, not read: what nobody looks at stays on the disk."""

from __future__ import annotations

import mmap
import os
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MOST = 1 << 28
"""The bytes that are read of what cannot be mapped: standard input, pipes, hex text."""
_NOT_HEX = re.compile(r"[^0-9a-fA-F\s]")


class BadInput(Exception):
    """The input cannot be had. The text says why."""


@dataclass(frozen=True, slots=True)
class Input:
    """Bytes, and what to call the place that they are from."""

    name: str
    data: bytes | memoryview


def opened(path: str, *, hex_text: bool = False) -> Input:
    """The bytes of a file, or of standard input (``-``). Raises BadInput and OSError."""
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


def text(path: str) -> Input:
    """The same, read as a whole."""
    if path == "-":
        return Input("standard input", _read(sys.stdin.buffer, "standard input"))
    with Path(path).open("rb") as file:
        return Input(path, _read(file, path))


def _read(file: BinaryIO, name: str) -> bytes:
    data = file.read(MOST + 1)
    if len(data) > MOST:
        raise BadInput(f"{name} holds more than {MOST} bytes; a file of bytes may be larger")
    return data


def _from_hex(data: bytes, name: str) -> bytes:
    text = data.decode("utf-8", "replace")
    bad = _NOT_HEX.search(text)
    if bad is not None:
        line = text.count("\n", 0, bad.start()) + 1
        column = bad.start() - text.rfind("\n", 0, bad.start())
        raise BadInput(f"{name}:{line}:{column}: {bad[0]!r} is not a hexadecimal digit")
    digits = "".join(text.split())
    if len(digits) % 2:
        raise BadInput(f"{name}: {len(digits)} hexadecimal digits, which is an odd number")
    return bytes.fromhex(digits)
