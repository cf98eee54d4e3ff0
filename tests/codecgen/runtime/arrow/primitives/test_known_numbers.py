"""What a caller knows of an address changes nothing of what is read or written there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from codecgen.runtime.arrow.primitives import compiling
from codecgen.runtime.checksums import CHECKSUMS, checksum
from tests.codecgen.runtime.arrow.primitives.use_known_numbers import DATA, SIZES, STORED, STORES
from tests.paths import ROOT
from tests.support.checksum_kernels import to_signed


def stored(name: str) -> str:
    """What a function writes, as hexadecimal digits of 32 bytes."""
    if name == "fail":
        data = STORED.to_bytes(8, "little") * 2
    else:
        size = int(name.split("_")[1]) // 8
        order = "big" if name.endswith("_be") else "little"
        number = STORED & (1 << 8 * size) - 1
        data = number.to_bytes(size, order) * (2 if name.startswith("fill") else 1)  # type: ignore[arg-type]
    return data.ljust(32, b"\0").hex()


@pytest.mark.slow
@pytest.mark.skipif(not compiling.JIT, reason="there is no compiler")
def test_known_numbers() -> None:
    """In a process of its own, for code that goes astray takes the process with it."""
    module = "tests.codecgen.runtime.arrow.primitives.use_known_numbers"
    done = subprocess.run(
        [sys.executable, "-m", module], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = dict(map(json.loads, done.stdout.splitlines()))
    wanted: dict[str, list[int] | list[str]] = {
        name: [to_signed(checksum(name)(DATA[:size])) for size in SIZES] for name in CHECKSUMS
    }
    wanted |= {name: [stored(name)] * 2 for name in STORES}
    assert found == wanted, (done.returncode, done.stderr)
    assert done.returncode == 0
