"""Values of control records as Kafka's own classes write and read them: ``python -m tests.brokers.control_values`` makes
``tests/data/control_values.jsonl`` anew."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.brokers.messages import Request, answers
from tests.paths import ROOT

FILE = ROOT / "tests" / "data" / "control_values.jsonl"


def _voter(number: int, directory: str, *endpoints: dict[str, Any], high: int = 1) -> Request:
    return {
        "voterId": number,
        "voterDirectoryId": directory,
        "endpoints": list(endpoints),
        "kRaftVersionFeature": {"minSupportedVersion": high - 1, "maxSupportedVersion": high},
    }


def _endpoint(name: str, host: str, port: int) -> dict[str, Any]:
    return {"name": name, "host": host, "port": port}


UUID = "AQIDBAUGBwgJCgsMDQ4PEA"
OTHER = "_vDw8PDw8PDw8PDw8PDw8A"
WRITTEN: list[Request] = [
    {"message": "EndTxnMarker", "version": 0, "value": {"coordinatorEpoch": 0x01020304}},
    {"message": "EndTxnMarker", "version": 0, "value": {"coordinatorEpoch": -2}},
    *(
        {"message": "LeaderChangeMessage", "version": version, "value": value, "tags": tags}
        for version in (0, 1)
        for tags, value in (
            (
                [],
                {
                    "version": 0x0102,
                    "leaderId": 0x03040506,
                    "voters": [{"voterId": 7}, {"voterId": -8}],
                    "grantingVoters": [{"voterId": 9}],
                },
            ),
            ([], {"version": -1, "leaderId": -1, "voters": [], "grantingVoters": []}),
            (
                [[0, ""], [127, "aa"], [128, "bb" * 128], [16384, "cc"]],
                {
                    "version": 0,
                    "leaderId": 3,
                    "voters": [{"voterId": n} for n in range(130)],
                    "grantingVoters": [],
                },
            ),
        )
    ),
    {
        "message": "LeaderChangeMessage",
        "version": 1,
        "value": {
            "version": 1,
            "leaderId": 1,
            "voters": [{"voterId": 1, "voterDirectoryId": UUID}],
            "grantingVoters": [{"voterId": 2, "voterDirectoryId": OTHER}],
        },
    },
    *(
        {"message": message, "version": 0, "value": {"version": number} | more, "tags": tags}
        for message, more in (
            ("SnapshotFooterRecord", {}),
            ("SnapshotHeaderRecord", {"lastContainedLogTimestamp": 0x0102030405060708}),
            ("SnapshotHeaderRecord", {"lastContainedLogTimestamp": -9}),
            ("KRaftVersionRecord", {"kRaftVersion": 0x0A0B}),
            ("KRaftVersionRecord", {"kRaftVersion": -3}),
        )
        for number, tags in ((0, []), (0x0102, [[5, "0506"]]), (-2, [[300, "07" * 128]]))
    ),
    {"message": "VotersRecord", "version": 0, "value": {"version": 3, "voters": []}},
    {
        "message": "VotersRecord",
        "version": 0,
        "value": {
            "version": -4,
            "voters": [
                _voter(
                    0x01020304,
                    UUID,
                    _endpoint("CONTROLLER", "h\u00f6st", 65535),
                    _endpoint("", "", 0),
                    high=0x0506,
                ),
                _voter(-5, OTHER, high=-6),
            ],
        },
        "tags": [[1, "0102"]],
    },
    {
        "message": "VotersRecord",
        "version": 0,
        "value": {
            "version": 0,
            "voters": [_voter(n, UUID) for n in range(127)]
            + [_voter(-1, OTHER, _endpoint("n" * 127, "h" * 200, 0x1234))],
        },
    },
]
"""What Kafka is given to write. The numbers have other bytes in each place, and texts and arrays long lengths."""

TAGGED_FIELDS = "".join(
    f"{tag:02x}00" if tag < 0x80 else f"{tag & 0x7F | 0x80:02x}{tag >> 7:02x}00"
    for tag in range(10_000)
)
"""As many tagged fields as Kafka reads in one section."""
DIRECTORY = "0102030405060708090a0b0c0d0e0f10"
VOTER = f"00000007{DIRECTORY}"
READ: list[Request] = [
    {"message": message, "version": version, "hex": data.replace(" ", "")}
    for message, version, datas in (
        ("EndTxnMarker", 0, ("00000009", "0000000977", "000009")),
        (
            "LeaderChangeMessage",
            0,
            (
                "0000 00000001 02 00000001 00 02 00000001 00 00",
                "0001 00000001 02 00000001 00 02 00000001 00 00",  # it names version 1
                "0000 00000001 02 00000001 00 02 00000001 00 00 0102",  # bytes after it
                "0000 00000001 8200 00000001 00 02 00000001 00 00",  # a count in two bytes
                "0000 00000001 02 00000001 8000 02 00000001 00 00",  # tagged fields of a voter
                "0000 00000001 02 00000001 00 02 00000001 00 8000",
                "0000 00000001 02 00000001 00 02 00000001 01 03 02 aabb 00",
                "0000 00000001 02 00000001 00 02 00000001 00 01 8300 02 aabb",  # a tag in two bytes
                "0000 00000001 02 00000001 00 02 00000001 00 01 03 8200 aabb",
                "0000 00000001 02 00000001 00 8280808070 00000001 00 00",  # a count with bits that mean nothing
                "0000 00000001 00 02 00000001 00 00",  # no voters at all
                "0000 00000001 02 00000001 00 00 00",
                "0000 00000001 02 00000001 00 02 00000001 00",
                "0000 00000001 7f 00000001 00 02 00000001 00 00",
            ),
        ),
        ("SnapshotHeaderRecord", 0, ("0000 0000018bcfe56418 00", "0000 0000018bcfe56418 8000", "0000 0000018bcfe56418 00 33", "0000 0000018bcfe56418", "0005 0000018bcfe56418 01 00 01 ff")),
        ("SnapshotFooterRecord", 0, ("0000 00", "0000 8000", "0000 00 44", "0000", "0000 01 09 00", "0000 01 808080808001 00", "0000 01 8080808010 00", "0000 01 09 808080808000", "0000 ffffffff0f", "0000 8080808008", f"0000 904e {TAGGED_FIELDS}", f"0000 914e {TAGGED_FIELDS} 904e 00")),
        ("KRaftVersionRecord", 0, ("0000 0001 00", "0000 0001 808000", "0000 0001 00 55", "0000 0001", "0000 0001 01 80 00 00")),
        (
            "VotersRecord",
            0,
            (
                f"0000 02 {VOTER} 02 02 61 02 62 2384 00 0000 0001 00 00 00",
                f"0000 02 {VOTER} 02 02 61 02 62 2384 00 0000 0001 00 00 00 66",
                f"0000 8200 {VOTER} 02 02 61 02 62 2384 00 0000 0001 00 00 00",
                f"0000 02 {VOTER} 8200 02 61 02 62 2384 00 0000 0001 00 00 00",
                f"0000 02 {VOTER} 02 8200 61 02 62 2384 00 0000 0001 00 00 00",
                f"0000 02 {VOTER} 02 02 61 8200 62 2384 00 0000 0001 00 00 00",
                f"0000 02 {VOTER} 02 02 61 02 62 2384 8000 0000 0001 00 00 00",
                f"0000 02 {VOTER} 02 02 61 02 62 2384 00 0000 0001 8000 00 00",
                f"0000 02 {VOTER} 02 02 61 02 62 2384 00 0000 0001 00 8000 00",
                f"0000 02 {VOTER} 02 02 61 02 62 2384 00 0000 0001 00 00 8000",
                f"0000 02 {VOTER} 02 02 61 02 62 2384 01 05 01 aa 0000 0001 01 06 01 bb 01 07 01 cc 01 08 01 dd",
                f"0000 02 {VOTER} 02 02 61 02 ff 2384 00 0000 0001 00 00 00",  # a host that is no UTF-8
                f"0000 02 {VOTER} 02 02 c3 02 62 2384 00 0000 0001 00 00 00",
                f"0000 02 {VOTER} 02 00 02 62 2384 00 0000 0001 00 00 00",  # no name
                f"0000 02 {VOTER} 02 02 61 00 2384 00 0000 0001 00 00 00",  # no host
                f"0000 02 {VOTER} 00 0000 0001 00 00 00",
                "0000 00 00",
                f"0000 02 {VOTER} 02 02 61 02 62 2384 00 0000 0001 00 00",
            ),
        ),
    )
    for data in datas
]  # fmt: skip
"""What Kafka is given to read: bytes that it writes, and bytes that it does not."""


def answered(requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Each request with what Kafka's classes say to it: the bytes, the value, or the name of an exception."""
    return [request | answer for request, answer in zip(requests, answers(requests), strict=True)]


def main() -> None:
    lines = [json.dumps(answer, ensure_ascii=True) for answer in answered([*WRITTEN, *READ])]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{FILE}: {len(lines)} lines")


if __name__ == "__main__":
    main()
