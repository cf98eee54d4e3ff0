"""Kafka's generated message classes as an oracle: what they hold, what they write, what they make of bytes."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Sequence
from typing import Any

from tests.brokers.maven import MESSAGES, BrokerError, java_command

LIMIT_S = 300
Request = dict[str, Any]


def answers(requests: Sequence[Request]) -> list[dict[str, Any]]:
    """What Kafka's classes say to each request (see ``java/src/Messages.java``). Of an exception there is the name: its
    text changes from Java to Java."""
    done = subprocess.run(
        java_command(MESSAGES, "Messages"),
        input="".join(json.dumps(request) + "\n" for request in requests).encode(),
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise BrokerError(f"Messages ended with code {done.returncode}: {done.stderr!r}")
    found: list[dict[str, Any]] = [
        json.loads(line) for line in done.stdout.decode("utf-8").splitlines()
    ]
    for answer in found:
        if "error" in answer:
            answer["error"] = answer["error"].partition(":")[0]
    if len(found) != len(requests):
        raise BrokerError(f"Messages gave {len(found)} answers to {len(requests)} requests")
    return found


def messages() -> dict[str, dict[str, Any]]:
    """Every message by its name: ``class``, ``api_key``, ``versions`` (the fields of each), ``defaults``, and ``structs`` as the
    classes declare them."""
    [answer] = answers([{}])
    return {message["message"]: message for message in answer["messages"]}


def damaged(data: bytes, r: random.Random) -> bytes:
    """The bytes with something changed, cut off or put in."""
    out = bytearray(data)
    match r.randrange(4):
        case 0:
            del out[r.randrange(len(out)) :]
        case 1:
            out[r.randrange(len(out))] ^= 1 << r.randrange(8)
        case 2:
            out[r.randrange(len(out))] = r.choice((0, 1, 0x7F, 0x80, 0xFF))
        case _:
            at = r.randrange(len(out) + 1)
            out[at:at] = r.randbytes(r.randrange(1, 4))
    return bytes(out)
