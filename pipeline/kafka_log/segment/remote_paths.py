"""Paths in the stores that fsspec supports: s3, gs, abfss, hdfs and others."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import total_ordering
from typing import Any, BinaryIO, NamedTuple, Self, cast

import fsspec
from fsspec.registry import known_implementations

from kafka_log.segment.globs import compile_pattern, find_matching_paths, is_pattern
from kafka_log.segment.remote_errors import RemoteError, as_os_error
from kafka_log.segment.remote_files import RemoteFile
from kafka_log.segment.urls import has_password

_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
_MILLISECONDS = ("modificationTime", "modification_time")
"""Keys of the modification time in entries of stores. HDFS uses those of _MILLISECONDS, with numbers in milliseconds."""

_PACKAGES = {
    "abfss": "adlfs",
    "hdfs": "hdfs-native",
    "viewfs": "hdfs-native",
    "webhdfs": "requests",
}
"""Packages for stores for which fsspec names no package, or not all of them."""

_KEPT: dict[int, Any] = {}
"""Stores of hdfs-native by id, so that they are never garbage collected.

fsspec drops all stores in a forked process. A client of hdfs-native that is destroyed there waits for its threads forever, which
would block for example the child process that starts Spark's JVM."""


class Info(NamedTuple):
    """Entry of a listing. The size is in bytes; the time is 0 if the store does not state it."""

    is_dir: bool
    st_size: int
    st_mtime_ns: int


@total_ordering
class RemotePath(os.PathLike[str]):
    """Path in a store, given by its URL, with the methods of :class:`pathlib.Path` that reading needs.

    ``storage_options`` are the options of fsspec's class for the store, as in pandas; no message shows secrets among them.

    A directory is listed once for each RemotePath, and its children take size and kind from the listing without a further request.
    Methods raise OSError with the URL.
    """

    is_remote = True

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None) -> None:
        """Parse the URL; no request is sent. Raises RemoteError if the URL has a password."""
        scheme, _, rest = url.partition("://")
        if has_password(url):
            shown = f"{scheme}://***@{rest.partition('@')[2]}"
            raise RemoteError(errno.EINVAL, "a URL must not contain a password", shown)
        rest, chain, inner = rest.partition("::")
        self._scheme = scheme
        self._rest = rest.rstrip("/")
        self._inner = chain + inner
        self._url = f"{scheme}://{self._rest}{self._inner}"
        self.storage_options = dict(storage_options or {})
        self._info: Info | None = None
        self._above: RemotePath | None = None
        self._listing: dict[str, Info] | None = None

    def __fspath__(self) -> str:
        return self._url

    def __str__(self) -> str:
        return self._url

    def __repr__(self) -> str:
        return f"RemotePath({self._url!r})"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, RemotePath) and self._url == other._url
        return same and self.storage_options == cast(RemotePath, other).storage_options

    def __hash__(self) -> int:
        return hash(self._url)

    def __lt__(self, other: object) -> bool:
        return self._url < str(other)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_path, (self._url, self.storage_options, self._info)

    # ------------------------------------------------------------ names

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._rest.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The end of the name from its last dot on."""
        return os.path.splitext(self.name)[1]  # noqa: PTH122

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return os.path.splitext(self.name)[0]  # noqa: PTH122

    @property
    def parent(self) -> RemotePath:
        """Return the directory of the path. Return the path itself at the top, the bucket or host."""
        if self._above is None:
            if "/" not in self._rest:
                return self
            self._above = self._join(self._rest.rpartition("/")[0])
        return self._above

    def with_name(self, name: str) -> RemotePath:
        """Return the path of another file in the same directory."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> RemotePath:
        """Return the path with another suffix."""
        return self.with_name(self.stem + suffix)

    def __truediv__(self, name: str) -> RemotePath:
        """Return the path of a file in this directory, with its entry of the listing if the directory was listed."""
        made = self._join(f"{self._rest}/{name}")
        made._above = self
        if self._listing is not None:
            made._info = self._listing.get(name)
        return made

    def resolve(self) -> Self:
        """Return the path itself: stores have no links."""
        return self

    absolute = resolve

    def without_cache(self) -> RemotePath:
        """Return the path without its cache, so that the next method asks the store again."""
        return self._join(self._rest)

    def _join(self, rest: str) -> RemotePath:
        """Return another path of the same store."""
        return RemotePath(f"{self._scheme}://{rest}{self._inner}", self.storage_options)

    # ------------------------------------------------------------ what is there

    def store(self) -> tuple[Any, str]:
        """Return the file system object of fsspec, and the path in its syntax. Raise RemoteError,
        an OSError, if a package for the store is missing; OSError without secrets if its library
        refuses the URL or the options.
        """
        try:
            store, place = fsspec.core.url_to_fs(self._url, **self.storage_options)
        except ImportError as error:
            raise self._needs(error) from error
        except Exception as error:
            scheme = self._scheme.lower()
            unknown = scheme in _PACKAGES and scheme not in known_implementations
            if unknown or "libhdfs" in str(error) or "libjvm" in str(error):
                raise self._needs(error) from error
            raise as_os_error(error, self._url, self.storage_options) from error
        if type(store).__module__.startswith("hdfs_native"):
            _KEPT[id(store)] = store
        return store, place

    def _needs(self, error: Exception) -> RemoteError:
        """Return, without raising it, a RemoteError that says which package for this store to
        install; with the text of ``error`` if no package is known.
        """
        scheme = self._scheme.partition("::")[0].lower()
        known = known_implementations.get(scheme, {})
        package = _PACKAGES.get(scheme) or str(known.get("class", "")).partition(".")[0]
        if package in ("", "fsspec"):
            reason = str(error)
        else:
            reason = f"{package} is needed for it: pip install {package}"
        return RemoteError(errno.EPROTONOSUPPORT, reason, self._url)

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield the entries of the directory, by one cached listing, sorted by name. Iterating
        raises OSError if the directory does not exist or the store cannot be asked.
        """
        for name in self._list_entries():
            yield self / name

    def scandir(self) -> AbstractContextManager[Iterator[RemotePath]]:
        """Return a context manager of :meth:`iterdir`, as :func:`os.scandir` does. Iterating raises
        OSError if the directory cannot be listed.
        """
        return nullcontext(self.iterdir())

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Return an iterator of the entries of the directory whose names match a pattern. Raise
        PatternError for an invalid pattern; iterating raises OSError if the directory cannot be
        listed.
        """
        wanted = compile_pattern(pattern)
        return (child for child in self.iterdir() if wanted.fullmatch(child.name))

    def matches(self) -> list[RemotePath]:
        """Return the existing paths that match this path as a pattern (``*``, ``?``, ``[a]``,
        ``{a,b}``), sorted and without duplicates; ``[]`` if none does. Return ``[self]``, existing
        or not, if it is no pattern. Raise PatternError for an invalid pattern; OSError if the store
        cannot be asked.
        """
        top, _, rest = self._rest.partition("/")
        return (
            cast(list[RemotePath], find_matching_paths(cast(Any, self._join(top)), rest))
            if is_pattern(rest)
            else [self]
        )

    def stat(self) -> Info:
        """Return kind, size in bytes and modification time (nanoseconds since 1970, 0 if unknown)
        of the path, cached after the first request or a listing of its directory. Raise
        FileNotFoundError if nothing lies there; OSError if the store cannot be asked.
        """
        found = self._lookup()
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._url)
        return found

    lstat = stat

    def exists(self) -> bool:
        """Return whether a file or directory lies at the path. Raise OSError if the store cannot be
        asked.
        """
        return self._lookup() is not None

    def is_dir(self) -> bool:
        """Return whether a directory lies at the path. Raise OSError if the store cannot be asked."""
        found = self._lookup()
        return found is not None and found.is_dir

    def is_file(self) -> bool:
        """Return whether a file lies at the path. Raise OSError if the store cannot be asked."""
        found = self._lookup()
        return found is not None and not found.is_dir

    def is_symlink(self) -> bool:
        """Return False: stores have no links."""
        return False

    def open(self, mode: str = "rb", buffering: int = -1) -> BinaryIO:
        """Open the file for reading, and return it, unbuffered if ``buffering`` is 0. Raise
        FileNotFoundError if there is none; RemoteError, an OSError, for another mode than ``rb``;
        OSError if the store refuses it.
        """
        if mode != "rb":
            raise RemoteError(
                errno.EROFS,
                "files in object stores are only read: write to a local directory",
                self._url,
            )
        if self._is_missing():
            self.stat()
        file = self._file()
        return cast(BinaryIO, file if buffering == 0 else io.BufferedReader(file))

    def read_bytes(self) -> bytes:
        """Return all bytes of the file. Raise OSError if it does not exist or cannot be read."""
        with self.open() as file:
            return file.read()

    def _file(self) -> RemoteFile:
        """Open the file without a buffer. Raise OSError if the store refuses it."""
        return RemoteFile(self)

    def _is_missing(self) -> bool:
        """Return whether a cached listing of the directory says that the path does not exist."""
        above = self._above
        return self._info is None and above is not None and above._listing is not None

    def _lookup(self) -> Info | None:
        """Return kind, size and time of the path, cached after the first request. Return None if it
        does not exist; a cached listing of its directory is enough to know that. Raise OSError if
        the store cannot be asked.
        """
        if self._info is None and not self._is_missing():
            store, place = self.store()
            try:
                self._info = _info(store.info(place))
            except FileNotFoundError:
                return None
            except Exception as error:
                raise as_os_error(error, self._url, self.storage_options) from error
        return self._info

    def _list_entries(self) -> dict[str, Info]:
        """Return kind, size and time of each entry of the directory by name, sorted. The store is
        asked once, past its own cache. Raise OSError if the store cannot be asked or does not know
        the directory.
        """
        if self._listing is None:
            store, place = self.store()
            try:
                store.invalidate_cache(place)  # it may be of long ago
                entries = store.ls(place, detail=True)
            except Exception as error:
                raise as_os_error(error, self._url, self.storage_options) from error
            own = place.strip("/")
            found = {}
            for entry in entries:
                path = str(entry["name"]).strip("/")
                if path != own:  # a directory that is an object as well
                    found[path.rpartition("/")[2]] = _info(entry)
            self._listing = dict(sorted(found.items()))
        return self._listing


def _restore_path(url: str, options: Mapping[str, Any], info: Info | None) -> RemotePath:
    """Return an unpickled path with its cached entry."""
    path = RemotePath(url, options)
    path._info = info
    return path


def _info(entry: Mapping[str, Any]) -> Info:
    """Return an entry of fsspec as Info; a missing size is 0."""
    is_dir = entry.get("type") == "directory"
    return Info(is_dir, int(entry.get("size") or 0), _nanoseconds(entry))


def _nanoseconds(entry: Mapping[str, Any]) -> int:
    """Return the modification time of an entry of fsspec in nanoseconds since 1970, whatever key
    and form it has. A time without a zone is UTC, as stores give it. Return 0 if there is none,
    or its text is no ISO time.
    """
    for name in _MILLISECONDS:
        if entry.get(name) is not None:
            return int(entry[name]) * 1_000_000
    time = next((entry[name] for name in _TIMES if entry.get(name) is not None), 0)
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError:
            time = 0
    if isinstance(time, datetime):
        time = time.replace(tzinfo=time.tzinfo or UTC).timestamp()
    return int(float(time) * 1e9)
