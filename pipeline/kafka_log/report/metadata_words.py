"""Kafka's words for numbers in the metadata log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RESOURCES: Mapping[int, str] = {
    2: "topic",
    4: "broker",
    8: "broker logger",
    16: "client metrics",
    32: "group",
}
"""What settings are for."""

MECHANISMS: Mapping[int, str] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

_OPERATIONS = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
    *("CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
    *("CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
)

OF_ACLS: Mapping[str, Mapping[int, str]] = {
    "resource_type": {
        2: "TOPIC",
        3: "GROUP",
        4: "CLUSTER",
        5: "TRANSACTIONAL_ID",
        6: "DELEGATION_TOKEN",
        7: "USER",
    },
    "pattern_type": {3: "LITERAL", 4: "PREFIXED"},
    "operation": dict(enumerate(_OPERATIONS)),
    "permission_type": {2: "DENY", 3: "ALLOW"},
}
"""Columns of rules of access."""


def word(words: Mapping[int, str], number: int) -> str:
    """The word for a number, the number where there is none."""
    return words.get(number, str(number))


def listeners(end_points: list[dict[str, Any]]) -> list[str]:
    """Where a broker or a controller listens: name, host and port."""
    return [
        f"{p['name']}://[{p['host']}]:{p['port']}"
        if ":" in p["host"]
        else f"{p['name']}://{p['host']}:{p['port']}"
        for p in end_points
    ]
