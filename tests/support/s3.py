"""An S3-compatible server on loopback: moto's."""

from __future__ import annotations

import re
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
log = logging.getLogger("werkzeug")
log.setLevel(logging.INFO if sys.argv[1:] else logging.ERROR)
for path in sys.argv[1:]:
    log.addHandler(logging.FileHandler(path))
    log.propagate = False
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


@contextmanager
def served(log: Path | None = None) -> Iterator[dict[str, Any]]:
    """Run a server, which writes a line into ``log`` for each request, and yield the options with which s3fs opens it."""
    # In a process of its own: clients that hold the interpreter's lock while they wait would wait for ever.
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, *([] if log is None else [str(log)])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
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


def reads(log: Path) -> list[str]:
    """Return the paths of the objects of which bytes were read, one for each request that a server wrote into its log."""
    return re.findall(r'GET (/\S+) HTTP/1\.1.*" 206 ', log.read_text())
