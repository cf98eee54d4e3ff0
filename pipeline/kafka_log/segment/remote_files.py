"""Files in a store, read in blocks. During sequential reads a thread requests the next block ahead."""

from __future__ import annotations

import io
import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from codecgen.runtime.nouns import count_noun
from kafka_log.segment.remote_errors import as_os_error

FIRST = 256 << 10
"""Bytes of the first request at a new position. Each block that follows without a gap is twice as large, up to BLOCK."""

BLOCK = 4 << 20

GAP = 512 << 10
"""Maximum gap between two reads that count as sequential. Transferring the gap takes about as long as a request."""

SECTOR = 1 << 20
"""Minimum number of bytes that are lost if a request fails. The number doubles with each further failure in a row."""


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes of a file from ``start`` on."""

    start: int
    data: bytes

    @property
    def end(self) -> int:
        """Position after the last byte."""
        return self.start + len(self.data)


class PathInStore(Protocol):
    """Path of a file in a store, with the options of fsspec's class for the store."""

    storage_options: dict[str, Any]

    def store(self) -> tuple[Any, str]:
        """Return the file system object of fsspec, and the path in its syntax. Raise OSError if
        there is no such store.
        """

    def __fspath__(self) -> str:
        """Return the URL."""


class RemoteFile(io.RawIOBase):
    """An open file of a store. One thread may read it; an own thread requests blocks ahead, one at a time.

    Methods raise OSError with the URL. After the store has refused the file, or lost it, no further request is sent.
    """

    sector = SECTOR

    def __init__(self, path: PathInStore) -> None:
        """Open the file, and ask the store for its size. Raises OSError."""
        super().__init__()
        self.name = path
        self._file: Any = None
        self._ahead: tuple[int, int, Future[bytes]] | None = None
        self._executor: ThreadPoolExecutor | None = None
        self._block = Block(0, b"")
        self._step = FIRST
        self._bad: list[tuple[int, int, OSError]] = []
        self._failures = 0
        self._position = 0
        try:
            store, place = path.store()
            self._file = store.open(place, "rb", cache_type="none")
            self._file.seek(0, os.SEEK_END)
            self.size: int = self._file.tell()  # not every store's seek says it
        except Exception as error:
            super().close()
            raise self._as_os_error(error) from error

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position, and return it. A position before the start becomes 0; one after the end
        stays.
        """
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        self._position = max(origin + offset, 0)
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read bytes at the position into ``buffer``, at most to the end of a block, and move
        behind them. Return their number, 0 at the end of the file. Raise OSError if the store
        cannot read them.
        """
        view = memoryview(buffer).cast("B")
        if self._position >= self.size or not view:
            return 0
        block = self._block_at(self._position, len(view))
        start = self._position - block.start
        count = min(len(view), len(block.data) - start)
        view[:count] = memoryview(block.data)[start : start + count]
        self._position += count
        return count

    def close(self) -> None:
        """Close the file, after canceling or awaiting the request of the next block. Do nothing if
        it is closed already.
        """
        if not self.closed:
            self._drop_ahead()
            if self._executor is not None:
                self._executor.shutdown()
            if self._file is not None:
                self._file.close()
        super().close()

    def _block_at(self, position: int, wanted: int) -> Block:
        """Return the block with the byte at ``position``: the current one, the one requested ahead,
        or a new one of at least ``wanted`` bytes (at most 4 MiB). In sequential reads request the
        next one ahead. Raise OSError if the store cannot read it; again, without a request, for
        bytes that failed before.
        """
        if self._block.start <= position < self._block.end:
            return self._block
        for start, end, why in self._bad:
            if start <= position < end:
                raise why
        goes_on = False
        if self._ahead is not None:
            start, end, _ = self._ahead
            goes_on = start <= position < end + GAP
            fits = start <= position < end
        else:
            fits, goes_on = False, 0 <= position - self._block.end <= GAP and bool(self._block.end)
        self._step = min(max(2 * self._step, wanted), BLOCK) if goes_on else FIRST
        try:
            if fits:
                self._block = self._finish_ahead()
            else:
                self._drop_ahead()
                length = max(self._step, min(wanted, BLOCK))
                self._block = self._fetch_block(position, length)
        except OSError:
            self._step = FIRST
            raise
        if goes_on and self._block.end < self.size:
            self._look_ahead()
        return self._block

    def _finish_ahead(self) -> Block:
        """Return the block that was requested ahead; wait for it if needed. If that request failed,
        or the answer has another length, request it once more. Raise OSError if it fails again.
        """
        assert self._ahead is not None
        start, end, future = self._ahead
        self._ahead = None
        try:
            return self._complete_block(start, end, future.result())
        except Exception:
            return self._fetch_block(start, end - start)  # once more: that was some time ago

    def _fetch_block(self, start: int, length: int) -> Block:
        """Return a block of up to ``length`` bytes from byte ``start`` on; if that fails, only the
        rest of its 1 MiB sector. Raise OSError if that fails too, or the store refuses or no longer
        has the file. Then the rest of the sector and, from the second failure in a row on, 1, 3,
        7 .. sectors after it count as unreadable, or the whole file if it is refused or gone. They
        are not requested again.
        """
        end, of_sector = self._end(start, length), start - start % SECTOR + SECTOR
        try:
            return self._complete_block(start, end, self._fetch(start, end))
        except Exception as error:
            gone = isinstance(error, FileNotFoundError | PermissionError)
            if end > of_sector and not gone:
                return self._fetch_block(start, of_sector - start)
            until = self.size if gone else of_sector + SECTOR * ((1 << self._failures) - 1)
            why = self._as_os_error(error)
            self._bad.append((0 if gone else start, until, why))
            self._failures += 1
            raise why from error

    def _complete_block(self, start: int, end: int, data: bytes) -> Block:
        """Return ``data`` as the block of bytes ``start`` to ``end`` (excluded), and reset the
        count of failures. Raise OSError if ``data`` has another length.
        """
        if len(data) != end - start:  # more of them are an error's text that was taken for bytes
            raise OSError(
                f"the store returned {count_noun(len(data), 'byte')} instead of the {count_noun(end - start, 'byte')} from byte {start} on, so that its answer is not used"
            )
        self._failures = 0
        return Block(start, data)

    def _look_ahead(self) -> None:
        """Request the block after the current one in a thread. Do nothing at the end of the file,
        or if the next bytes are known to be unreadable.
        """
        start = self._block.end
        end = self._end(start, self._step)
        if end <= start:
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "kafka-log-read-ahead")
        self._ahead = start, end, self._executor.submit(self._fetch, start, end)

    def _end(self, start: int, length: int) -> int:
        """Return the end of the next request: at most ``length`` bytes, the end of the file, and the start of bytes that cannot be read."""
        return min(self.size, start + length, *(bad for bad, end, _ in self._bad if end > start))

    def _drop_ahead(self) -> None:
        """Cancel the request of the next block, or wait for its end."""
        if self._ahead is not None and not self._ahead[2].cancel():
            self._ahead[2].exception()  # the file has one place: it must be done with that
        self._ahead = None

    def _fetch(self, start: int, end: int) -> bytes:
        """Return the bytes ``start`` to ``end`` (excluded) of the file, fewer if it ends before.
        Errors of the store's library are let through as they are.
        """
        self._file.seek(start)
        parts = []
        while start < end:
            data = bytes(self._file.read(end - start))
            if not data:
                break
            parts.append(data)
            start += len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _as_os_error(self, error: Exception) -> OSError:
        """Return an error of the store's library as an OSError with the URL and without secrets."""
        return as_os_error(error, os.fspath(self.name), self.name.storage_options)
