"""Records with and without keys, values and headers for encoders."""

from __future__ import annotations

from tests.support.record_tables import DEFAULT, ON_REQUEST

EVERY = (*DEFAULT, *ON_REQUEST)

SOME = [
    {
        "offset": 100 + i,
        "timestamp": 1_700_000_000_000 + 7 * (i % 3),
        "timestamp_type": 0,
        "key": (None, b"k", b"", b"key" * 50)[i % 4],
        "value": (b"v" * i, None)[i % 7 == 3],
        "headers": [{"key": "h\u00e4", "value": (b"x", None)[j % 2]} for j in range(i % 3)],
    }
    for i in range(200)
]


PLAIN = [row | {"headers": []} for row in SOME]
