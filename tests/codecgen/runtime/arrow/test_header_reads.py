"""The kernel that reads headers against a few lines of Python that have the whole file in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.arrow import header_reads
from tests.fuzz.guards import AVAILABLE, Guarded
from tests.paths import ROOT
from tests.shares import examples

pytestmark = pytest.mark.skipif(header_reads.pread() is None, reason="the system has no pread")

UNTOUCHED = 0xEE
MANY = 1 << 40


@dataclass(frozen=True)
class Layout:
    """What the kernel is told of entries, in its order."""

    size: int
    least: int
    offset: int
    width: int
    signed: bool
    little: bool
    before: int

    def head(self, length: int, fill: int) -> bytes:
        """The head of an entry whose number says so, whatever that means."""
        number = length & (1 << 8 * self.width) - 1
        data = bytearray([fill]) * self.size
        order = "little" if self.little else "big"
        data[self.offset : self.offset + self.width] = number.to_bytes(self.width, order)
        return bytes(data)

    def says(self, data: bytes, at: int) -> int:
        number = data[at + self.offset : at + self.offset + self.width]
        return int.from_bytes(number, "little" if self.little else "big", signed=self.signed)


PLAIN = Layout(61, 17, 8, 4, True, False, 12)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    width = draw(st.sampled_from((1, 2, 3, 4, 8)))
    offset = draw(st.integers(0, 20))
    least = offset + width + draw(st.integers(0, 5))
    size = least + draw(st.integers(0, 50))
    before = draw(st.integers(0, least + 5))
    return Layout(size, least, offset, width, draw(st.booleans()), draw(st.booleans()), before)


HOSTILE = (-(1 << 63), -(1 << 31), -1000, -13, -12, -1, 0, 1, 4, 5, 255, 1 << 20, (1 << 31) - 1, (1 << 63) - 1)  # fmt: skip


@st.composite
def files(draw: st.DrawFn, layout: Layout) -> bytes:
    """Entries, with lengths that nothing can have among them, cut anywhere."""
    data = b""
    for i in range(draw(st.integers(0, 30))):
        length = layout.least + draw(st.integers(0, 300))
        said = draw(st.sampled_from(HOSTILE)) if draw(st.integers(0, 9)) == 0 else None
        head = layout.head(length - layout.before if said is None else said, i + 1)
        data += (head + bytes([i + 1]) * 300)[:length]
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


def expected(
    data: bytes, start: int, room: int, layout: Layout, most: int, trial: int, far: int
) -> list[int]:
    """Where the entries begin, and after the last of them: what the kernel has to find."""
    starts = [0]
    while len(starts) <= most and room - starts[-1] >= layout.least:
        at = starts[-1]
        there = len(data) - start - at
        if there < layout.least:
            break
        size = layout.says(data, start + at) + layout.before
        if not layout.least <= size <= room - at or there < min(layout.size, size):
            break
        starts.append(at + size)
        if len(starts) > trial and starts[-1] < (len(starts) - 1) * far:
            break
    return starts


def hopped(
    descriptor: int,
    to: int,
    room: int,
    position: int = 0,
    layout: Layout = PLAIN,
    most: int = MANY,
    trial: int = 99,
    far: int = 0,
) -> tuple[int, int]:
    function = header_reads.pread()
    assert function is not None
    at, count = header_reads.read_headers(
        function, descriptor, to, room, position, *astuple(layout), most, trial, far
    )
    return int(at), int(count)


@contextmanager
def written(folder: Path, data: bytes) -> Iterator[int]:
    path = folder / "x.bin"
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hops")


def test_an_unsigned_length_above_what_is_signed(folder: Path) -> None:
    """2**64 - 1 is no -1."""
    layout = Layout(size=8, least=8, offset=0, width=8, signed=False, little=False, before=9)
    with written(folder, b"\xff" * 8 + bytes(8)) as descriptor:
        found = hopped(descriptor, np.zeros(128, np.uint8).ctypes.data, 8, layout=layout)
    assert found == (0, 0)


@pytest.mark.slow
@examples(300)
@given(data=st.data())
def test_heads_come_to_their_places(folder: Path, data: st.DataObject) -> None:
    layout = data.draw(layouts())
    content = data.draw(files(layout))
    start = data.draw(st.integers(0, len(content) // 3))
    room = data.draw(st.one_of(st.integers(0, 600), st.integers(0, len(content) + 100)))
    most, trial = data.draw(st.sampled_from((0, 1, 5, MANY))), data.draw(st.integers(1, 40))
    far = data.draw(st.integers(0, 300))
    memory = np.full(room + 128, UNTOUCHED, np.uint8)
    with written(folder, content) as descriptor:
        to = memory.ctypes.data + 64
        at, count = hopped(descriptor, to, room, start, layout, most, trial, far)
    starts = expected(content, start, room, layout, most, trial, far)
    assert (at, count) == (starts[-1], len(starts) - 1)
    assert (memory[:64] == UNTOUCHED).all() and (memory[64 + room :] == UNTOUCHED).all()
    window = memory[64 : 64 + room]
    touched = np.zeros(room, bool)
    for begin in starts:
        size = min(layout.size, room - begin)
        head = np.frombuffer(content[start + begin :][:size], np.uint8)
        touched[begin : begin + size] = True
        if begin < at:
            end = min(size, *(other - begin for other in starts if other > begin))
            assert (window[begin : begin + end] == head[:end]).all()
    assert (window[~touched] == UNTOUCHED).all()


@pytest.mark.parametrize("length", [*HOSTILE, 99, 100, 101])
def test_lengths_that_lead_nowhere_end_it(length: int, folder: Path) -> None:
    good = PLAIN.head(100 - 12, 1).ljust(100, b"x")
    content = good * 5 + PLAIN.head(length, 2).ljust(100, b"x")
    memory = np.zeros(600, np.uint8)
    with written(folder, content) as descriptor:
        found = hopped(descriptor, memory.ctypes.data, 600)
    assert found == ((500 + 12 + length, 6) if 5 <= length <= 88 else (500, 5))


def test_an_entry_in_the_middle_of_its_head_is_not_taken(folder: Path) -> None:
    entry = PLAIN.head(200 - 12, 1).ljust(200, b"x")
    memory = np.zeros(1000, np.uint8)
    for end in range(400, 620):
        with written(folder, (entry * 4)[:end]) as descriptor:
            at, count = hopped(descriptor, memory.ctypes.data, 1000)
        # The file says no more of its end: whoever knows it gives less room.
        assert (at, count) == ((600, 3) if end >= 461 else (400, 2))


def test_a_short_entry_at_the_end_is_taken(folder: Path) -> None:
    short = PLAIN.head(30 - 12, 1)[:30]
    with written(folder, short * 3) as descriptor:
        memory = np.zeros(90, np.uint8)
        assert hopped(descriptor, memory.ctypes.data, 90) == (90, 3)
    assert memory.tobytes() == short * 3


def test_what_cannot_be_read_is_left_to_others(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    memory = np.full(100, UNTOUCHED, np.uint8)
    with path.open("wb") as file:  # not for reading
        file.write(PLAIN.head(49, 1) * 2)
        file.flush()
        for number in (file.fileno(), -1):
            found = hopped(number, memory.ctypes.data, 100)
            assert found == (0, 0)
    with written(tmp_path, b"") as descriptor:
        for position in (0, 5, 1 << 62, -1):
            found = hopped(descriptor, memory.ctypes.data, 100, position)
            assert found == (0, 0)
    assert (memory == UNTOUCHED).all()


def test_it_reads_behind_four_gibibytes(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    far = (5 << 30) + 3
    with path.open("wb") as file:
        file.seek(far)  # a file with a hole
        file.write(PLAIN.head(61 - 12, 7) * 3)
    memory = np.zeros(200, np.uint8)
    with path.open("rb") as file:
        found = hopped(file.fileno(), memory.ctypes.data, 200, far)
    assert found == (183, 3)
    assert memory[:183].tobytes() == PLAIN.head(61 - 12, 7) * 3


@pytest.mark.skipif(not AVAILABLE, reason="needs Linux")
def test_not_a_byte_outside_of_the_room_is_written(folder: Path) -> None:
    entry = PLAIN.head(90 - 12, 1).ljust(90, b"x")
    with written(folder, entry * 100) as descriptor:
        for where in ("end", "start"):
            memory = Guarded(where)
            for room in range(300):
                to = memory.place(room)
                at, count = hopped(descriptor, to, room, 90)
                assert (at, count) == (room // 90 * 90, room // 90)


@pytest.mark.slow
def test_as_plain_python_it_does_the_same() -> None:
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline", ".")]
    environment = dict(
        os.environ,
        NUMBA_DISABLE_JIT="1",
        HYPOTHESIS_PROFILE="quick",
        PYTHONPATH=os.pathsep.join(roots),
    )
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("it is plain Python already")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(__file__))],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
