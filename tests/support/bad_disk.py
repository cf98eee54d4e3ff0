"""A file system in user space whose files have bytes that cannot be read: ``python bad_disk.py SOURCE MOUNT START-END ...``

It has the files of one directory. A read of the ranges of the first one, by its name, fails with EIO. The kernel asks for pages
ahead, and for each one by itself where that fails, as it does with a disk. It ends when it is unmounted.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from pathlib import Path

FORGET, BATCH_FORGET, INTERRUPT = 2, 42, 36
LOOKUP, GETATTR, OPEN, READ, INIT, OPENDIR, READDIR = 1, 3, 14, 15, 26, 27, 28
QUIET = {25, 18, 29}
"""Flush and releases: there is nothing to do."""

FOREVER = 1 << 30


class Disk:
    """What answers the kernel."""

    def __init__(self, source: Path, bad: list[tuple[int, int]]) -> None:
        files = sorted(path for path in source.iterdir() if path.is_file())
        self.names = [path.name.encode() for path in files]
        self.data = [path.read_bytes() for path in files]
        self.bad = bad

    def attributes(self, node: int) -> bytes:
        """Those of a file; node 1 is the directory."""
        size = 0 if node == 1 else len(self.data[node - 2])
        mode = stat.S_IFDIR | 0o755 if node == 1 else stat.S_IFREG | 0o644
        blocks = -(-size // 512)
        return struct.pack("<6Q10I", node, size, blocks, *[0] * 6, mode, 1, *[0] * 3, 4096, 0)

    def answer(self, code: int, node: int, body: bytes) -> bytes | int:
        """The answer, or the number of an error."""
        if code == INIT:
            return struct.pack(
                "<IIIIHHIIHH8I", 7, 31, 1 << 17, 0, 8, 8, 1 << 17, 1, 32, 0, *[0] * 8
            )
        if code == LOOKUP:
            name = body.rstrip(b"\0")
            if name not in self.names:
                return errno.ENOENT
            found = self.names.index(name) + 2
            entry = struct.pack("<QQQQII", found, 0, FOREVER, FOREVER, 0, 0)
            return entry + self.attributes(found)
        if code == GETATTR:
            return struct.pack("<QII", FOREVER, 0, 0) + self.attributes(node)
        if code in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if code in (READ, READDIR):
            _, offset, size = struct.unpack_from("<QQI", body)
            return self.read(node, offset, size) if code == READ else self.names_from(offset)
        return b"" if code in QUIET else errno.ENOSYS

    def read(self, node: int, offset: int, size: int) -> bytes | int:
        if node == 2 and any(start < offset + size and offset < end for start, end in self.bad):
            return errno.EIO
        return self.data[node - 2][offset : offset + size]

    def names_from(self, first: int) -> bytes:
        out = b""
        for i, name in enumerate(self.names[first:], first):
            entry = struct.pack("<QQII", i + 2, i + 1, len(name), stat.S_IFREG >> 12) + name
            out += entry + bytes(-len(entry) % 8)
        return out


def serve(disk: Disk, device: int) -> None:
    """Answer until the file system is unmounted."""
    while True:
        try:
            request = os.read(device, 1 << 18)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return
            if error.errno == errno.ENOENT:
                continue
            raise
        _, code, unique, node = struct.unpack_from("<IIQQ", request)
        if code in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        found = disk.answer(code, node, request[40:])
        wrong, data = (-found, b"") if isinstance(found, int) else (0, found)
        os.write(device, struct.pack("<IiQ", 16 + len(data), wrong, unique) + data)


def main() -> None:
    source, place, *ranges = sys.argv[1:]
    bad = [(int(start), int(end)) for start, end in (text.split("-") for text in ranges)]
    disk = Disk(Path(source), bad)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"fuse", os.fsencode(place), b"fuse", 0, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")
    print("mounted", flush=True)
    serve(disk, device)


if __name__ == "__main__":
    main()
