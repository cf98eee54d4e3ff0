"""Messages and wrappers with something wrong in them."""

from __future__ import annotations

from .mutant_bytes import EDGES_32, EDGES_64, Draw, changed, packed, put, sealed, sized


def pieces_of(data: bytes) -> tuple[bytes, int, bytes | None, bytes | None]:
    """The head of a message up to its key, its magic, key and value."""
    magic = data[16]
    at = 26 if magic else 18
    parts: list[bytes | None] = []
    start = at
    for _ in range(2):
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        parts.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    return data[:start], magic, parts[0], parts[1]


def nullable(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else len(data).to_bytes(4, "big") + data


def built(head: bytes, key: bytes | None, value: bytes | None) -> bytes:
    return sealed(sized(head + nullable(key) + nullable(value)))


def message(data: bytes, r: Draw) -> bytes:
    """A message with something wrong in a field of it; its checksum is right, and mostly its length."""
    head, _, key, value = pieces_of(data)
    kind = r.randrange(9)
    key_at = len(head)
    value_at = key_at + len(nullable(key))
    if kind == 0:
        data = put(data, key_at, r.choice((*EDGES_32, len(data))), 4)
    elif kind == 1:
        data = put(
            data, value_at, r.choice((*EDGES_32, len(value or b"") + r.choice((-1, 1, 5)))), 4
        )
    elif kind == 2:
        data = (
            data[:17]
            + bytes((r.randrange(256) if r.random() < 0.5 else r.randrange(16),))
            + data[18:]
        )
    elif kind == 3:
        data = data[:16] + bytes((r.choice((0, 1, 2, 3, 127, 128, 255)),)) + data[17:]
    elif kind == 4:
        data = put(data, 0, r.choice(EDGES_64), 8)
    elif kind == 5:
        data = sized(data + r.choice((b"\0", b"\0" * 8, r.randbytes(3))))
    elif kind == 6:
        data = sized(data[: r.randrange(17, len(data) + 1)])
    elif kind == 7:
        data = data[:16] + changed(data[16:], r)
        data = sized(data) if len(data) > 17 else built(head, key, value)
    else:
        return put(data, 12, r.getrandbits(32), 4)
    return sealed(data)


def inner_messages(known: tuple[bytes, ...], r: Draw, magic: int) -> list[bytes]:
    """Messages for a wrapper, with offsets that rise."""
    plain = [m for m in known if m[16] == magic and not m[17] & 7]
    picked = [r.choice(plain) for _ in range(r.choice((1, 2, 3, 3, 5)))]
    offset = r.choice((0, 0, 0, 40))
    out = []
    for m in picked:
        out.append(put(m, 0, offset, 8))
        offset += r.choice((1, 1, 1, 3))
    return out


def wrapped(data: bytes, known: tuple[bytes, ...], r: Draw) -> bytes:
    """A wrapper with something wrong in it, in an inner message, in their order or in their stream."""
    magic = data[16]
    inner = inner_messages(known, r, magic)
    last = int.from_bytes(inner[-1][:8], "big")
    kind = r.randrange(12)
    i = r.randrange(len(inner))
    if kind <= 3:
        inner[i] = message(inner[i], r)
    elif kind == 4:
        inner[i] = put(
            inner[i], 8, r.choice((*EDGES_32, len(inner[i]) - 12 + r.choice((-1, 1, 9)))), 4
        )
    elif kind == 5:
        inner[i] = wrapped(inner[i], known, r) if r.random() < 0.5 else r.choice(known)
    elif kind == 6:
        other = inner_messages(known, r, 1 - magic)[0]
        inner[i] = put(other, 0, int.from_bytes(inner[i][:8], "big"), 8)
    elif kind == 7:
        r.shuffle(inner)
    elif kind == 8:
        inner.append(
            r.choice(
                (b"\0" * 12, b"\0" * 26, b"\0" * 5, inner[-1][:-1], inner[0][:12], inner[0][:11])
            )
        )
    elif kind == 9:
        inner = []
    section = b"".join(inner)
    if kind == 10:
        section = changed(section, r)
    codec = r.choice((1, 2, 3))
    attributes = codec | (r.choice((0, 0, 8)) if magic else 0)
    if r.random() < 0.05:
        attributes = r.choice((4, 5, 6, 7, 0x80 | codec, 0x40 | codec))
    offset = last + r.choice((0, 0, 0, 5, -1, -2, 1000)) if r.random() < 0.7 else r.choice(EDGES_64)
    value: bytes | None = packed(codec, section, r, legacy=magic == 0 and r.random() < 0.8)
    if r.random() < 0.02:
        value = r.choice((None, b""))
    key = r.choice((None,) * 20 + (b"", b"key"))
    head = (
        bytes(16)
        + bytes((magic, attributes))
        + (r.choice(EDGES_64).to_bytes(8, "big", signed=True) if magic else b"")
    )
    data = built(put(head, 0, offset, 8), key, value)
    if r.random() < 0.06:
        data = message(data, r)
    return data
