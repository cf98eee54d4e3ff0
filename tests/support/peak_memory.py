"""The most memory that a process of a test has had.

``ru_maxrss`` is not it: a process begins with that of the one that started it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

STATUS = Path("/proc/self/status")

PEAK_KIB = f'int(next(line for line in open("{STATUS}") if line.startswith("VmHWM:")).split()[1])'
"""Expression for a program: its own peak of resident memory, in KiB."""

SCANNED_BYTES = (1 << 31) - 1
"""Size of the segment whose scan is measured: the most that a broker puts into one."""

needs_peak = pytest.mark.skipif(
    not STATUS.is_file(), reason="only Linux says the peak of a process"
)
