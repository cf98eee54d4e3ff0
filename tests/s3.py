"""An S3-compatible server on loopback: moto's, in this process."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KEY, SECRET = "an-access-key", "a-secret-that-nobody-sees"


@contextmanager
def served() -> Iterator[dict[str, Any]]:
    """The server. What it gives are the options with which s3fs opens it."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield {
            "key": KEY,
            "secret": SECRET,
            "endpoint_url": f"http://{host}:{port}",
        }
    finally:
        server.stop()


def put(directory: Path, url: str, options: Mapping[str, Any]) -> str:
    """Copy a directory into a bucket, which is made if need be."""
    import fsspec

    store, place = fsspec.core.url_to_fs(url, **options)
    bucket = place.partition("/")[0]
    if not store.exists(bucket):
        store.mkdir(bucket)
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            store.pipe_file(f"{place}/{path.relative_to(directory).as_posix()}", path.read_bytes())
    return url
