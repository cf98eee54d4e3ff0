"""Locations of exported files: a directory that all machines see, or a bucket of S3. A file is invisible until it is complete."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from kafka_log.segment.paths import make_path
from kafka_log.segment.remote_errors import as_os_error
from kafka_log.segment.urls import FileUrlError, is_url, path_of_file_url
from pyspark_kafka_log.export.state import ExportError

SCHEMES = ("s3", "s3a")

_OF_EXPORT = re.compile(r"part-[0-9a-f]{12}-[0-9]{5,}-[0-9a-f]{8}-[0-9]+\.parquet")
"""The names that tasks give to files."""


@dataclass(frozen=True)
class Location:
    """A directory, or the URL of one in a bucket with fsspec's options, which are never shown."""

    root: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_store(self) -> bool:
        """Whether the location is in a bucket."""
        return is_url(self.root)

    def create(self, path: str) -> BinaryIO:
        """Return a new file opened for writing, at a path relative to the location; make missing
        directories. In a bucket the file stays invisible until :meth:`finish`, and then replaces
        one of that name. The caller must finish or discard it. Raise FileExistsError if it exists
        in a directory; OSError if it cannot be made.
        """
        if self.is_store:
            store, top = self._store()
            # Without the commit nothing of it is left there but parts that stores remove by themselves.
            return cast(BinaryIO, store.open(f"{top}/{path}", "wb", autocommit=False))
        place = Path(self.root) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return place.open("xb")

    def finish(self, file: BinaryIO) -> int:
        """Complete a file of :meth:`create`, and return its size in bytes. In a bucket this makes
        the file visible; in a directory it is flushed to disk and closed. Raise OSError if that
        fails.
        """
        size = file.tell()
        if self.is_store:
            file.close()
            cast(Any, file).commit()
            return size
        file.flush()
        os.fsync(file.fileno())
        file.close()
        return size

    def discard(self, file: BinaryIO, path: str) -> None:
        """Remove an unfinished file at ``path``. In a bucket, cancel its upload; errors of the
        store pass. In a directory, ignore errors of closing it, do nothing if it does not exist,
        and raise OSError if it cannot be removed.
        """
        if self.is_store:
            cast(Any, file).closed = True  # closing it would send what is held
            cast(Any, file).discard()
            return
        with suppress(OSError):  # what it still holds is not wanted: a disk may be full
            file.close()
        self.remove(path)

    def remove(self, path: str) -> None:
        """Remove a file, given relative to the location; do nothing if it does not exist. Raise
        OSError if it cannot be removed.
        """
        if not self.is_store:
            (Path(self.root) / path).unlink(missing_ok=True)
            return
        store, top = self._store()
        try:
            store.rm_file(f"{top}/{path}")
        except FileNotFoundError:
            pass
        except Exception as error:
            raise as_os_error(error, f"{self.root}/{path}", self.options) from error

    def is_free(self) -> bool:
        """Return whether the location is missing or empty, or every file in it is named as export
        tasks name theirs, so that it comes from exports that were interrupted or still run. Raise
        OSError if a store or a directory cannot be listed.
        """
        return all(_OF_EXPORT.fullmatch(name.rpartition("/")[2]) for name in self._names())

    def files_of(self, job_id: str) -> Iterator[str]:
        """Yield the Parquet files of a job at any depth, as paths relative to the location. Yield
        nothing if the location is missing. Raise OSError if a store or a directory cannot be
        listed.
        """
        start = f"part-{job_id}-"
        for name in self._names():
            file = name.rpartition("/")[2]
            if file.startswith(start) and file.endswith(".parquet"):
                yield name

    def remove_unlisted(self, job_id: str, listed: Iterable[str]) -> None:
        """Remove the files of a job whose names end no path or URL in ``listed``. Directories are not
        compared: their names are escaped in several ways. Raise OSError if a store or a directory
        cannot be listed, or a file cannot be removed.
        """
        kept = {path.rpartition("/")[2] for path in listed}
        for path in list(self.files_of(job_id)):
            if path.rpartition("/")[2] not in kept:
                self.remove(path)

    def _names(self) -> list[str]:
        """Return the paths of all files below the location, relative to it, with ``/``; ``[]`` if
        it does not exist. Raise OSError if the store, or a directory, cannot be listed.
        """
        if not self.is_store:
            return list(_list_files(Path(self.root)))
        store, top = self._store()
        try:
            store.invalidate_cache()
            return [str(name).removeprefix(f"{top}/") for name in store.find(top)]
        except FileNotFoundError:
            return []
        except Exception as error:
            raise as_os_error(error, self.root, self.options) from error

    def _store(self) -> tuple[Any, str]:
        """Return fsspec's file system, and the path of the location in it."""
        store, top = cast(Any, make_path(self.root, self.options)).store()
        return store, top.rstrip("/")


def _list_files(root: Path) -> Iterator[str]:
    """Yield the paths of the files below a directory, relative to it, with ``/``; none if it does
    not exist. Links to files count; links to directories are left out. Raise OSError if a directory
    cannot be listed, unless it was removed meanwhile.
    """

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # others may remove directories meanwhile
            raise error

    for folder, _, names in os.walk(root, onerror=refuse):
        for name in names:
            yield Path(folder, name).relative_to(root).as_posix()


def table_location(
    table: str, root: str | os.PathLike[str], options: Mapping[str, Any] | None = None
) -> Location:
    """Return the location of the table at ``root``: a path, which becomes absolute, a ``file:``
    URL, or an ``s3://`` or ``s3a://`` URL. ``options`` are kept only for a bucket; ``table`` is the
    name in errors. Raise :class:`ExportError` for a URL of another store, or an invalid ``file:``
    URL.
    """
    text = os.fspath(root)
    if is_url(text):
        if text.partition(":")[0].lower() not in SCHEMES:
            raise ExportError(
                table, "tables are written to directories and to s3://, no other store"
            )
        return Location(text.rstrip("/"), dict(options or {}))
    try:
        text = path_of_file_url(text) or text
    except FileUrlError as error:
        raise ExportError(table, str(error)) from None
    return Location(os.path.abspath(text))  # noqa: PTH100 (no links are followed)


_OF_FSSPEC = {
    "key": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "token": "aws_session_token",
    "endpoint_url": "aws_endpoint_url",
}
"""What fsspec and delta-rs call the same."""


def options_of_delta(table: str, place: Location) -> dict[str, str] | None:
    """Return the storage options of delta-rs for a location's fsspec options; None if it is a
    directory. Allow plain HTTP if the endpoint, in the options or in AWS_ENDPOINT_URL, uses it. Set
    the region to us-east-1 if neither options nor environment name one. Raise ExportError for an
    option that delta-rs does not have.

    The message shows no value.
    """
    if not place.is_store:
        return None
    out: dict[str, str] = {}
    for name, value in place.options.items():
        if name in _OF_FSSPEC:
            out[_OF_FSSPEC[name]] = str(value)
        elif (
            name == "client_kwargs" and isinstance(value, Mapping) and set(value) <= {"region_name"}
        ):
            out["aws_region"] = str(value["region_name"])
        else:
            known = ", ".join([*_OF_FSSPEC, "client_kwargs (region_name)"])
            raise ExportError(table, f"Delta's writer has no option for {name}; known: {known}")
    endpoint = out.get("aws_endpoint_url") or os.environ.get("AWS_ENDPOINT_URL", "")
    if endpoint.startswith("http://"):
        out["aws_allow_http"] = "true"
    if "aws_region" not in out and not {"AWS_REGION", "AWS_DEFAULT_REGION"} & os.environ.keys():
        out["aws_region"] = "us-east-1"
    return out


_OF_ICEBERG = {
    "s3.access-key-id": "key",
    "s3.secret-access-key": "secret",
    "s3.session-token": "token",
    "s3.endpoint": "endpoint_url",
}
"""What PyIceberg and fsspec call the same."""


def options_of_iceberg(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return s3fs options for the S3 properties of a PyIceberg table: keys, token, endpoint and
    region. Leave out properties that are missing or empty, and all others.
    """
    out: dict[str, Any] = {
        ours: str(properties[name]) for name, ours in _OF_ICEBERG.items() if properties.get(name)
    }
    if properties.get("s3.region"):
        out["client_kwargs"] = {"region_name": str(properties["s3.region"])}
    return out
