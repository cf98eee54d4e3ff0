"""Formats of others in the language, read and written beside programs that are not ours."""

from __future__ import annotations

import gzip
import importlib
import io
import ssl
import struct
import tarfile
import uuid
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import crc32c
import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.plan import make_plan
from codecgen.runtime.arrow.decoder import load_kernels, load_numpy_reader
from codecgen.runtime.arrow.encoder import Encoder
from codecgen.runtime.errors import ChecksumError, ParseError, TrailingError, ValueRefused
from codecgen.schema import loader
from tests.codecgen.schemas import checked, codecs_of
from tests.paths import FOREIGN
from tests.support.other_layouts import decoded, emitted


@cache
def codecs(name: str) -> Any:
    """The generated module of a format."""
    plan = make_plan(checked(loader.read_files(FOREIGN / name)))
    return codecs_of(plan, f"{name}.yaml")


# ---------------------------------------------------------------- PNG


def chunk(type_: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + type_ + data + struct.pack(">I", zlib.crc32(type_ + data))


PIXELS = b"\0\x10\x80\0\xff\x40"
PICTURE = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0))
    + chunk(b"tEXt", b"Title\0made here")
    + chunk(b"IDAT", zlib.compress(PIXELS))
    + chunk(b"IEND", b"")
)


def test_png() -> None:
    png = codecs("png").PNG_FILE
    parsed = png.parse(PICTURE)
    assert (parsed.header.width, parsed.header.color_type.label) == (2, "grayscale")
    assert [c.type.label for c in parsed.chunks] == ["tEXt", "IDAT", "IEND"]
    assert zlib.decompress(parsed.chunks[1].data) == PIXELS
    assert png.build(parsed) == PICTURE
    ours = png.build(
        {
            "header": {"width": 2, "height": 2, "bit_depth": 8, "color_type": "grayscale"},
            "chunks": [
                {"type": "text", "data": b"Title\0made here"},
                {"type": "IDAT", "data": zlib.compress(PIXELS)},
                {"type": "end", "data": b""},
            ],
        }
    )
    assert ours == PICTURE
    with pytest.raises(ParseError):
        png.parse(PICTURE[:-12])  # the last chunk is missing
    with pytest.raises(TrailingError):
        png.parse(PICTURE + chunk(b"IEND", b""))


@pytest.mark.parametrize(
    ("at", "error", "path"),
    [
        (0, ValueRefused, "signature"),
        (12, ValueRefused, "header.type"),
        (26, ValueRefused, "header.compression"),
        (len(PICTURE) - 1, ChecksumError, "chunks[2].crc"),
    ],
)
def test_png_that_is_damaged(at: int, error: type[ParseError], path: str) -> None:
    data = bytearray(PICTURE)
    data[at] ^= 1
    with pytest.raises(error) as caught:
        codecs("png").PNG_FILE.parse(bytes(data))
    assert caught.value.where.path == path


# ---------------------------------------------------------------- TLS


def hello() -> bytes:
    """The first bytes that OpenSSL sends."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    connection = context.wrap_bio(incoming, outgoing, server_hostname="example.org")
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def test_tls() -> None:
    data = hello()
    record = codecs("tls").HELLO_RECORD
    parsed = record.parse(data)
    assert (parsed.length, parsed.message_length) == (len(data) - 5, len(data) - 9)
    assert record.build(parsed) == data
    names = [e.data for e in parsed.extensions if e.type == 0]
    assert names == [b"\0\x0e\0\0\x0bexample.org"]
    with pytest.raises(ParseError):
        record.parse(data[:8] + b"\xff" + data[9:])


# ---------------------------------------------------------------- GUID


@given(st.uuids())
def test_guid(value: uuid.UUID) -> None:
    parsed = codecs("guid").GUID.parse(value.bytes_le)
    assert (parsed.time_low, parsed.time_mid, parsed.time_high) == value.fields[:3]
    assert codecs("guid").GUID.build(parsed) == value.bytes_le


# ---------------------------------------------------------------- Modbus


def test_modbus() -> None:
    request = codecs("modbus").READ_REGISTERS
    data = bytes.fromhex("01030000000ac5cd")  # ten registers of unit 1, as handbooks show it
    assert request.parse(data).count == 10
    assert request.build({"unit": 1, "address": 0, "count": 10}) == data
    with pytest.raises(ChecksumError) as caught:
        request.parse(data[:-1] + b"\xce")
    assert caught.value.where.path == "check"


# ---------------------------------------------------------------- the first sector of a disk


def test_master_boot_record() -> None:
    first = struct.pack("<B3sB3sII", 0x80, b"\x20\x21\0", 0x83, b"\xfe\xff\xff", 2048, 41940992)
    data = bytes(440) + struct.pack("<IH", 0x1234ABCD, 0) + first + bytes(48) + b"\x55\xaa"
    record = codecs("mbr").MASTER_BOOT_RECORD
    parsed = record.parse(data)
    assert (record.size, len(parsed.partitions)) == (512, 4)
    assert (parsed.partitions[0].type, parsed.partitions[0].sectors) == (0x83, 41940992)
    assert parsed.partitions[0].first_place == [0x20, 0x21, 0]
    assert record.build(parsed) == data


def test_gpt() -> None:
    parts = (struct.pack("<8sII", b"EFI PART", 0x10000, 92), struct.pack("<I", 0))
    after = struct.pack("<QQQQ16sQIII", 1, 999, 34, 966, bytes(range(16)), 2, 128, 128, 0xDEADBEEF)
    crc = zlib.crc32(parts[0] + bytes(4) + parts[1] + after)
    data = parts[0] + struct.pack("<I", crc) + parts[1] + after + bytes(420)
    header = codecs("gpt").HEADER
    parsed = header.parse(data)
    assert (header.size, parsed.header_crc, parsed.other_sector) == (512, crc, 999)
    assert header.build(parsed) == data
    with pytest.raises(ChecksumError):
        header.parse(data[:91] + b"\0" + data[92:])
    with pytest.raises(ValueRefused) as caught:
        header.parse(data[:-1] + b"\1")
    assert (caught.value.where.path, caught.value.where.position) == ("unused", 511)


# ---------------------------------------------------------------- tar


@pytest.mark.parametrize("name", ["a", "x" * 100, "folder/of/some/\u00e4\u20ac.txt"])
def test_tar(name: str) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.uname = 1234, 1700000000, "me"
    data = info.tobuf(tarfile.USTAR_FORMAT)
    header = codecs("tar").HEADER
    parsed = header.parse(data)
    assert (header.size, len(data)) == (512, 512)
    assert (parsed.name, parsed.owner_name, int(parsed.size, 8)) == (name, "me", 1234)
    assert header.build(parsed) == data
    ours = tarfile.TarInfo.frombuf(header.build(parsed), "utf-8", "strict")
    assert (ours.name, ours.mtime) == (name, 1700000000)


# ---------------------------------------------------------------- gzip


@given(st.text("abc\u00e4 .", max_size=80).filter(lambda name: not name.endswith(".gz")))
def test_gzip(name: str) -> None:
    out = io.BytesIO()
    with gzip.GzipFile(name, "wb", fileobj=out, mtime=1700000000) as file:
        file.write(b"content")
    member = codecs("gzip").MEMBER
    parsed = member.parse(out.getvalue())
    assert parsed.name == (name.encode("latin-1") if name else None)
    assert (parsed.flags.has_name, parsed.modified) == (bool(name), 1700000000)
    assert member.build(parsed) == out.getvalue()
    flags = {"has_name": True, "has_comment": True}
    values = {"flags": flags, "name": b"n", "comment": b"", "content": parsed.content}
    assert gzip.decompress(member.build({"modified": 0} | values)) == b"content"


# ---------------------------------------------------------------- SCTP


def test_sctp() -> None:
    head = struct.pack(">HHI", 5000, 5001, 0xCAFE)
    chunks = struct.pack(">BBH", 10, 0, 7) + b"abc\0" + struct.pack(">BBH", 11, 0, 4)
    sum_ = crc32c.crc32c(head + bytes(4) + chunks)
    data = head + struct.pack("<I", sum_) + chunks
    packet = codecs("sctp").PACKET
    parsed = packet.parse(data)
    assert [(c.type, c.length, c.value) for c in parsed.chunks] == [(10, 7, b"abc"), (11, 4, b"")]
    assert packet.build(parsed) == data
    for at in (0, 8, 18):
        with pytest.raises(ChecksumError):
            packet.parse(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(ParseError):
        packet.parse(data[:15] + b"\3" + data[16:])


# ---------------------------------------------------------------- Avro


@given(
    st.sampled_from(("null", "deflate")),
    st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3),
    st.lists(st.integers(-5, 5), max_size=9),
)
def test_avro(codec: str, metadata: dict[str, str], numbers: list[int]) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
    out = io.BytesIO()
    rows = [{"n": n} for n in numbers]
    fastavro.writer(out, schema, rows, codec, 2, {f"x.{k}": v for k, v in metadata.items()})
    data = out.getvalue()
    container = codecs("avro").OBJECT_CONTAINER
    parsed = container.parse(data)
    found = {e.key: e.value for part in parsed.metadata for e in part.entries}
    assert found["avro.codec"] == codec.encode()
    assert {k[2:]: v.decode() for k, v in found.items() if k[:2] == "x."} == metadata
    assert sum(block.count for block in parsed.blocks) == len(numbers)
    assert {block.sync for block in parsed.blocks} <= {parsed.sync}
    assert container.build(parsed) == data
    entries = [{"key": key, "value": value} for key, value in found.items()]
    parts = [{"entries": [entry]} for entry in entries] + [{"entries": []}]
    ours = container.build(dict(parsed) | {"metadata": parts})
    assert list(fastavro.reader(io.BytesIO(ours))) == rows


# ---------------------------------------------------------------- BookKeeper


def test_bookkeeper() -> None:
    head = struct.pack(">qqqq", 3, 17, 16, 4096)
    module = codecs("bookkeeper")
    digest = crc32c.crc32c(b"payload", crc32c.crc32c(head))
    data = head + struct.pack(">I", digest) + b"payload"
    parsed = module.LEDGER_ENTRY.parse(data)
    assert (parsed.entry_id, parsed.payload) == (17, b"payload")
    assert module.LEDGER_ENTRY.build(parsed) == data
    old = head + struct.pack(">Q", zlib.crc32(b"payload", zlib.crc32(head))) + b"payload"
    assert module.LEDGER_ENTRY_CRC32.build(module.LEDGER_ENTRY_CRC32.parse(old)) == old
    for at in (0, 31, 35, 36):
        with pytest.raises(ChecksumError):
            module.LEDGER_ENTRY.parse(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


# ---------------------------------------------------------------- Redpanda


def test_redpanda() -> None:
    records = b"\x10\0\0\0\x01\x04hi\0"
    rest = struct.pack("<qbihiqqqhii", 5, 1, -77, 0, 0, 10, 10, -1, -1, -1, 1)
    head = struct.pack("<i", 61 + len(records)) + rest
    data = struct.pack("<I", crc32c.crc32c(head)) + head + records
    batch = codecs("redpanda").BATCH
    parsed = batch.parse(data)
    assert (batch.leading_size, parsed.size_bytes, parsed.records) == (61, len(data), records)
    assert batch.build(parsed) == data
    assert batch.parse(data[:-1] + b"\1").records[-1] == 1  # only the other checksum sees it
    with pytest.raises(ChecksumError):
        batch.parse(data[:16] + b"\2" + data[17:])
    for size in (0, 8, 60, len(data) + 1):
        with pytest.raises(ParseError):
            batch.parse(data[:4] + struct.pack("<i", size) + data[8:])


# ---------------------------------------------------------------- RocketMQ


def message(body: bytes, topic: bytes, properties: bytes) -> bytes:
    after_size = struct.pack(
        ">IIiiqqiq4siq4siiq",
        0xDAA320A7,
        zlib.crc32(body) & 0x7FFFFFFF,
        3,
        0,
        17,
        4096,
        0,
        1700000000000,
        b"\x0a\0\0\1",
        10911,
        1700000000001,
        b"\x0a\0\0\2",
        10911,
        0,
        0,
    )
    after_size += struct.pack(">i", len(body)) + body
    after_size += bytes([len(topic)]) + topic
    after_size += struct.pack(">H", len(properties)) + properties
    return struct.pack(">i", 4 + len(after_size)) + after_size


def test_rocketmq() -> None:
    module = codecs("rocketmq")
    data = message(b"hello", b"orders", b"KEYS\x01a\x02TAGS\x01b")
    parsed = module.LOG_ENTRY.parse(data)
    assert (parsed.total_size, parsed.body, parsed.topic) == (len(data), b"hello", "orders")
    assert (parsed.born_host.port, parsed.physical_offset) == (10911, 4096)
    assert module.LOG_ENTRY.build(parsed) == data
    with pytest.raises(ChecksumError):
        module.LOG_ENTRY.parse(data.replace(b"hello", b"hellO"))
    blank = struct.pack(">iI", 20, 0xCBD43194) + bytes(12)
    assert module.LOG_ENTRY.parse(blank).unused == bytes(12)
    assert module.BLANK.build({"unused": bytes(12)}) == blank
    with pytest.raises(ValueRefused):
        module.LOG_ENTRY.parse(blank[:4] + bytes(4) + blank[8:])
    for size in (0, 7, len(data) - 1, len(data) + 1, -1):
        with pytest.raises(ParseError):
            module.LOG_ENTRY.parse(struct.pack(">i", size) + data[4:])


# ---------------------------------------------------------------- LevelDB and RocksDB

WAL = bytes.fromhex(
    "02f648711a0001010000000000000001000000010773746174696f6e044f736c6f"
    "0c171ba41200010200000000000000010000000004676f6e65"
    "f07ed0d7180001030000000000000003000000010161013101016200000161"
)
"""What plyvel 1.5.1 (LevelDB 1.22) and rocksdict 0.3.29 (RocksDB) both wrote to the log of a new database: a put of
``station``, a delete of ``gone``, and a batch that puts ``a`` and ``b`` and deletes ``a``."""
RECYCLED_WAL = bytes.fromhex(
    "a7c0a9311a000504000000010000000000000001000000010773746174696f6e044f736c6f"
)
"""What rocksdict 0.3.29 wrote for the same first put, with ``set_recycle_log_file_num(2)``."""
LONG_WAL = zlib.decompress(
    bytes.fromhex(
        "78daedd0b14a82611406e0effc7ee8e2520849de40434b77d120e42dfc414820ff8fe8d094b762914b575353ab17e0e014b8a9d8"
        "e025883dcff21e388733bcc5effdf83a45a4837d466b322da7cf75951f26a3ba7dd5fbb84c511c1da43cacaba7f5ebd74f3745e3"
        "6fb1cf8832ee221e7753d9ba499df9ac681e3fcea3ba1aaedff30b00000000000000000000000000000000000000000000000000"
        "0000000000009c9665ff73b199351401000000000000000000000000000000000000000000000000000000000000c0bff6763bf8"
        "5e5d6445000000009c8f2d3c824d49"
    )
)
"""The file of plyvel 1.5.1 after WAL and a put of ``long``, 70,000 times ``x``; compressed here."""
BLOCK = 32768


def log_entries(data: bytes) -> list[bytes]:
    """The records of a log, block by block."""
    found = []
    for at in range(0, len(data), BLOCK):
        block, pos = data[at : at + BLOCK], 0
        while len(block) - pos >= 7:
            head = 11 if block[pos + 6] > 4 else 7
            end = pos + head + int.from_bytes(block[pos + 4 : pos + 6], "little")
            found.append(block[pos:end])
            pos = end
        assert not any(block[pos:])
    return found


def test_leveldb() -> None:
    module = codecs("leveldb")
    entries = log_entries(WAL)
    parsed = [module.LOG_ENTRY.parse(entry) for entry in entries]
    assert b"".join(map(module.LOG_RECORD.build, parsed)) == WAL
    assert {p.type.label for p in parsed} == {"whole"}
    batches = [module.WRITE_BATCH.parse(p.data) for p in parsed]
    assert [(b.sequence, b.count) for b in batches] == [(1, 1), (2, 1), (3, 3)]
    operations = [(o.operation.label, o.key, o.value) for b in batches for o in b.operations]
    assert operations == [
        ("put", b"station", b"Oslo"),
        ("delete", b"gone", None),
        ("put", b"a", b"1"),
        ("put", b"b", b""),
        ("delete", b"a", None),
    ]
    ours = module.WRITE_BATCH.build(
        {"sequence": 2, "operations": [{"operation": "delete", "key": b"gone"}]}
    )
    assert module.LOG_RECORD.build({"type": "whole", "data": ours}) == entries[1]
    recycled = module.LOG_ENTRY.parse(RECYCLED_WAL)
    assert (recycled.log_number, recycled.data) == (4, parsed[0].data)
    assert module.RECYCLABLE_RECORD.build(recycled) == RECYCLED_WAL


def test_leveldb_entry_in_parts() -> None:
    module = codecs("leveldb")
    assert LONG_WAL.startswith(WAL)
    parts = [module.LOG_ENTRY.parse(entry) for entry in log_entries(LONG_WAL)[3:]]
    assert [p.type.label for p in parts] == ["start", "middle", "end"]
    [operation] = module.WRITE_BATCH.parse(b"".join(p.data for p in parts)).operations
    assert (operation.key, operation.value) == (b"long", b"x" * 70_000)


@pytest.mark.parametrize("entry", [*log_entries(WAL), RECYCLED_WAL], ids=str)
def test_leveldb_damage(entry: bytes) -> None:
    for at in (0, 3, *range(7, len(entry))):
        with pytest.raises(ChecksumError):
            codecs("leveldb").LOG_ENTRY.parse(entry[:at] + bytes([entry[at] ^ 8]) + entry[at + 1 :])
    with pytest.raises(ParseError):
        codecs("leveldb").LOG_ENTRY.parse(entry[:-1])


@pytest.mark.parametrize("engine", ["numpy", pytest.param("kernels", marks=pytest.mark.slow)])
def test_leveldb_as_a_table(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of columns verify the masked checksums of other people's bytes, and leave damage to the reference codecs."""
    files = loader.read_files(FOREIGN / "leveldb")
    package = f"leveldb_of_{engine}"
    files["codecgen.yaml"] = files["codecgen.yaml"].replace("leveldb_codecs", package)
    for path, text in emitted(files).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    view = importlib.import_module(f"{package}.arrow.records").RECORDS
    assert [(c.name, c.type, c.nullable, c.on_request) for c in view.columns] == [
        ("type", "int16", False, False),
        ("data", "binary", False, False),
        ("log_number", "int64", True, False),
    ]
    reader = (load_numpy_reader if engine == "numpy" else load_kernels)(view)
    parsed = [codecs("leveldb").LOG_ENTRY.parse(entry) for entry in log_entries(WAL)]
    rows, rejected = decoded(view, reader, WAL + RECYCLED_WAL, None)
    wanted = [{"type": 1, "data": p.data, "log_number": None} for p in parsed]
    assert rows == [*wanted, {"type": 5, "data": parsed[0].data, "log_number": 4}]
    assert rejected == []
    damaged = bytearray(WAL + RECYCLED_WAL)
    damaged[0] ^= 1
    others, rejected = decoded(view, reader, bytes(damaged), None)
    assert (others, len(rejected)) == (rows[1:], 1)
    if engine == "kernels":
        module = importlib.import_module(f"{package}.arrow.records_writer")
        table = pa.table({"type": pa.array([1] * 3, pa.int16()), "data": [p.data for p in parsed]})
        written = Encoder(module.RECORDS_WRITER, 1).encode(table.to_batches())
        assert b"".join(written) == WAL
