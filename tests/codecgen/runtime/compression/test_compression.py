"""What all codecs have in common: names, levels, variants, limits, missing libraries."""

from __future__ import annotations

import array
import subprocess
import sys

import pytest

from codecgen.runtime.compression import CODECS, compress, decompress
from codecgen.runtime.errors import BuildError, CompressionError, LimitError, UnsupportedCodec
from codecgen.runtime.nouns import count_noun

TEXT = b"the same words again, " * 5000
ROOMY = 1 << 24


def test_names() -> None:
    assert set(CODECS) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert all(name == codec.name for name, codec in CODECS.items())
    with pytest.raises(TypeError):
        CODECS["gzip"] = CODECS["none"]  # type: ignore[index]


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT], ids=["empty", "one byte", "text"])
def test_round_trip(name: str, data: bytes) -> None:
    packed = compress(name, data)
    assert type(packed) is bytes
    got = decompress(name, packed, limit=ROOMY)
    assert (got.data, got.error, got.unused, got.notes) == (data, None, 0, ())
    assert type(got.data) is bytes


@pytest.mark.parametrize("name", [name for name in CODECS if name != "none"])
def test_text_becomes_smaller(name: str) -> None:
    assert len(compress(name, TEXT)) < len(TEXT) // 10


@pytest.mark.parametrize("name", CODECS)
def test_any_buffer(name: str) -> None:
    packed = compress(name, memoryview(b"[" + TEXT + b"]")[1:-1])
    assert packed == compress(name, TEXT)
    assert decompress(name, memoryview(b"[" + packed + b"]")[1:-1], limit=ROOMY).data == TEXT
    numbers = memoryview(array.array("I", [1, 2, 3]))
    assert decompress(name, compress(name, numbers), limit=ROOMY).data == numbers.tobytes()


@pytest.mark.parametrize("name", CODECS)
def test_a_limit_that_just_holds_the_data(name: str) -> None:
    packed = compress(name, TEXT)
    assert decompress(name, packed, limit=len(TEXT)).error is None
    assert decompress(name, compress(name, b""), limit=0).error is None


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("limit", [0, 1, 1000, 70000, len(TEXT) - 1])
def test_a_limit_that_does_not(name: str, limit: int) -> None:
    got = decompress(name, compress(name, TEXT), limit=limit)
    assert isinstance(got.error, LimitError)
    assert f"limit of {count_noun(limit, 'byte')}" in got.error.reason
    assert "compressed bytes read" in got.error.reason
    assert len(got.data) <= limit
    assert got.data == TEXT[: len(got.data)]
    assert got.error.where.stream_position == len(got.data)


def test_a_negative_limit_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="limit is -1"):
        decompress("none", b"", limit=-1)


def test_none_is_the_identity() -> None:
    assert compress("none", b"abc") == b"abc"
    got = decompress("none", b"abc", limit=2)
    assert got.data == b"ab"
    assert isinstance(got.error, LimitError)


@pytest.mark.parametrize("name", ["gzip", "snappy", "lz4", "zstd"])
def test_errors_say_codec_and_places(name: str) -> None:
    got = decompress(name, b"\xfe" * 40, limit=ROOMY)
    assert got.data == b""
    assert isinstance(got.error, CompressionError)
    assert str(got.error).startswith(f"{name}: ")
    assert "at byte 0 of the compressed section" in got.error.reason
    assert got.error.where.stream_position == 0


@pytest.mark.parametrize("name", ["gzip", "snappy", "lz4"])
def test_no_bytes_are_no_stream(name: str) -> None:
    got = decompress(name, b"", limit=ROOMY)
    assert got.data == b""
    assert isinstance(got.error, CompressionError)


def test_no_bytes_are_no_frames() -> None:
    assert decompress("zstd", b"", limit=ROOMY).error is None


def test_unknown_codec() -> None:
    with pytest.raises(UnsupportedCodec, match=r"unknown codec 'brotli' \(known: none, gzip"):
        decompress("brotli", b"", limit=1)
    with pytest.raises(UnsupportedCodec, match="unknown codec 'brotli'"):
        compress("brotli", b"")


def test_unknown_variant() -> None:
    with pytest.raises(UnsupportedCodec, match="'snappy' has no variant 'framed' to read"):
        decompress("snappy", b"", limit=1, variant="framed")
    with pytest.raises(UnsupportedCodec, match="'lz4' has no variant 'unchecked-header' to write"):
        compress("lz4", b"", variant="unchecked-header")
    with pytest.raises(
        UnsupportedCodec, match=r"'gzip' has no variant 'raw' to write \(known: none\)"
    ):
        compress("gzip", b"", variant="raw")


@pytest.mark.parametrize(
    ("name", "level"),
    [("gzip", 0), ("gzip", 10), ("lz4", 0), ("lz4", 18), ("zstd", 23), ("zstd", -131073)],
)
def test_level_out_of_range(name: str, level: int) -> None:
    with pytest.raises(BuildError, match=f"codec '{name}' has the levels .* not {level}"):
        compress(name, b"", level=level)


@pytest.mark.parametrize("name", ["none", "snappy"])
def test_no_levels(name: str) -> None:
    with pytest.raises(BuildError, match=f"codec '{name}' has no levels"):
        compress(name, b"", level=1)


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("snappy", "cramjam", "cramjam"),
        ("lz4", "lz4.block", "lz4"),
        ("zstd", "zstandard", "zstandard"),
    ],
)
def test_missing_package(
    name: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = compress(name, TEXT)
    monkeypatch.setitem(sys.modules, module, None)
    assert CODECS[name].package == package
    with pytest.raises(
        UnsupportedCodec, match=f"codec '{name}' needs the package .* pip install {package}"
    ):
        decompress(name, packed, limit=ROOMY)
    with pytest.raises(UnsupportedCodec, match=f"pip install {package}"):
        compress(name, TEXT)


def test_libraries_are_imported_on_first_use() -> None:
    """Whoever reads no lz4 needs no lz4 package."""
    code = (
        "import sys; from codecgen.runtime.compression import compress; compress('gzip', b'x');"
        "print(sorted({'lz4', 'cramjam', 'zstandard', 'crc32c'} & set(sys.modules)))"
    )
    path = {"PYTHONPATH": ";".join(sys.path) if sys.platform == "win32" else ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=_environment(path),
        check=True,
    )
    assert done.stdout.strip() == "[]"


def _environment(more: dict[str, str]) -> dict[str, str]:
    import os

    return {**os.environ, **more}
