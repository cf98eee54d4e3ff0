"""A store for tests: fsspec's memory, which counts what it is asked for and fails where it is told to."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem


class Counted(MemoryFileSystem):
    """``counted://``: what was listed, asked about and read; ranges of files that cannot be read, and paths that are refused."""

    protocol = "counted"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    listed: ClassVar[list[str]] = []
    asked: ClassVar[list[str]] = []
    read: ClassVar[list[tuple[str, int, int]]] = []
    bad: ClassVar[dict[str, list[tuple[int, int]]]] = {}
    refused: ClassVar[set[str]] = set()
    failed: ClassVar[list[int]] = []
    wrong: ClassVar[type[Exception]] = TimeoutError

    @classmethod
    def forget(cls) -> None:
        """Nothing is stored, and nothing was asked for."""
        cls.store.clear()
        cls.bad.clear()
        cls.refused.clear()
        cls.pseudo_dirs[:] = [""]
        cls.wrong = TimeoutError
        cls.no_requests()

    @classmethod
    def no_requests(cls) -> None:
        """Nothing was asked for."""
        cls.listed.clear()
        cls.asked.clear()
        cls.read.clear()
        cls.failed.clear()

    @classmethod
    def bytes_read(cls, end: str = "") -> int:
        """Bytes that were asked for, of files whose paths end so."""
        return sum(stop - start for name, start, stop in cls.read if name.endswith(end))

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("counted://", "memory://", 1)))

    def _refuse(self, path: str) -> None:
        if path in self.refused:
            raise PermissionError("Forbidden")

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        path = self._strip_protocol(path)
        self.listed.append(path)
        self._refuse(path)
        return super().ls(path, detail=detail, **options)

    def info(self, path: str, **options: Any) -> Any:
        path = self._strip_protocol(path)
        self.asked.append(path)
        self._refuse(path)
        return super().info(path, **options)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        path = self._strip_protocol(path)
        if mode != "rb":
            return super()._open(path, mode, **options)
        self._refuse(path)
        if path not in self.store:
            raise FileNotFoundError(path)
        return _File(path, self.store[path].getvalue())


class _File(io.BytesIO):
    def __init__(self, path: str, data: bytes) -> None:
        super().__init__(data)
        self.path = path

    def read(self, size: int | None = -1) -> bytes:
        start = self.tell()
        data = super().read(size)
        end = start + len(data)
        Counted.read.append((self.path, start, end))
        if any(a < end and start < b for a, b in Counted.bad.get(self.path, [])):
            Counted.failed.append(start)
            raise Counted.wrong("no answer")
        return data


@contextmanager
def counted() -> Iterator[type[Counted]]:
    """The store, with nothing in it."""
    fsspec.register_implementation("counted", Counted, clobber=True)
    Counted.forget()
    yield Counted
    Counted.forget()


def put(directory: Path, url: str) -> str:
    """Copy a directory below a URL."""
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            with fsspec.open(f"{url}/{path.relative_to(directory).as_posix()}", "wb") as file:
                file.write(path.read_bytes())
    return url
