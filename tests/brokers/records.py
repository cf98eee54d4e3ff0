"""The records that the samples hold: deterministic, but for the time that they start from."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa")


@dataclass(frozen=True)
class Rec:
    """One record to send; times are milliseconds since 1970."""

    time: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def to_json(self) -> dict[str, Any]:
        headers = [[name, _base64(value)] for name, value in self.headers]
        return {"t": self.time, "k": _base64(self.key), "v": _base64(self.value), "h": headers}


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


def text(seed: str, size: int) -> bytes:
    """Words that compress well, in an order that the seed decides."""
    choices = noise(seed, size)
    return " ".join(WORDS[byte % len(WORDS)] for byte in choices).encode()[:size]


def noise(seed: str, size: int) -> bytes:
    """Bytes that do not compress."""
    blocks = (hashlib.sha256(f"{seed} {i}".encode()).digest() for i in range(size // 32 + 1))
    return b"".join(blocks)[:size]


def small(seed: str, count: int, time: int, *, headers: bool = True) -> list[Rec]:
    """Records of some ten to hundred bytes, a second apart."""
    return [
        Rec(
            time + i * 1000,
            f"{seed}-key-{i}".encode(),
            text(f"{seed} {i}", 10 + i * 7 % 90),
            (("trace", noise(f"{seed} {i}", 8)),) if headers and i % 3 == 0 else (),
        )
        for i in range(count)
    ]


def large(seed: str, time: int) -> list[Rec]:
    """Longer than one block of every codec's framing (snappy 32 KiB, LZ4 64 KiB), and some that does not compress."""
    return [
        Rec(time, b"large", text(seed, 70_000)),
        Rec(time + 1, b"noise", noise(seed, 3000)),
        Rec(time + 2, None, b"after the large ones"),
    ]


def keyed(keys: str, version: str, time: int) -> list[Rec]:
    """One record for each key, whose value names the version."""
    return [
        Rec(time + i, key.encode(), f"{key} {version} ".encode() + text(key + version, 60))
        for i, key in enumerate(keys.split())
    ]


def tombstones(keys: str, time: int) -> list[Rec]:
    return [Rec(time + i, key.encode(), None) for i, key in enumerate(keys.split())]


def rejected(time: int, *, headers: bool = True) -> Iterator[Rec]:
    """Null, empty, long and non-ASCII in every place where Kafka lets them stand; times out of order."""
    accented = "schlüssel-日本-😀".encode()
    yield Rec(time, None, b"a null key")
    yield Rec(time + 5, b"a tombstone", None)
    yield Rec(time + 3, None, None)
    yield Rec(time + 1, b"", b"")
    yield Rec(time + 9, accented, "wert-ключ-🗝".encode())
    yield Rec(time + 2, b"\xff\xfe\x00\x80", bytes(range(256)))
    yield Rec(time, b"k" * 200, b"v" * 9000)
    yield Rec(0, b"at the epoch", b"time 0")
    if not headers:
        return
    yield Rec(time + 4, b"repeated", b"1", (("a", b"1"), ("b", b"2"), ("a", b"3"), ("a", b"1")))
    yield Rec(time + 4, b"null header", b"2", (("gone", None), ("empty", b""), ("gone", None)))
    yield Rec(time + 4, b"empty header key", b"3", (("", b"nameless"), ("", None)))
    yield Rec(
        time + 4,
        b"non-ASCII",
        b"4",
        (("größe-日本-😀", accented), ("x" * 150, noise("header", 300))),
    )
    yield Rec(time + 4, b"many", None, tuple((f"h{i}", str(i).encode()) for i in range(70)))
    yield Rec(time + 4, None, None, (("only", b"a header"),))
