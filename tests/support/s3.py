"""An S3-compatible server on loopback: moto's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KEY, SECRET = "an-access-key", "a-secret-that-nobody-sees"


_SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


@contextmanager
def served() -> Iterator[dict[str, Any]]:
    """The server, until then. What it gives are the options with which s3fs opens it."""
    # In a process of its own: clients that hold the interpreter's lock while they wait would wait for ever.
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            host, port = process.stdout.readline().split()
            yield {"key": KEY, "secret": SECRET, "endpoint_url": f"http://{host}:{port}"}
        finally:
            process.stdin.close()
            process.kill()


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
