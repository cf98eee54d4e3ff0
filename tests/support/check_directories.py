"""Partition directories that a check refuses, and their log start offsets."""

from __future__ import annotations

ID = "00112233445566778899aabbccddeeff"


REMOTE = "AAAAAAAAAAAAAAAAAAAAAQ"


STARTS = [
    *("orders-0", "a-b-1", "orders--7", "orders-+5", "orders-007", "a b-1", "orders-2147483647"),
    *("a-0.0011-delete", f"a-0.{ID}-delete", f"a-0.{ID}-stray", f"a-0.{ID}-future"),
    "remote-log-index-cache",
]


REFUSES = [
    *(
        "lost+found",
        "orders",
        "orders-",
        "-0",
        "orders-x",
        "orders-2147483648",
        "orders-4294967296",
    ),
    *("kafka-tiered-storage", ".kafka-log-abc.writing", ".orders-0.partial", "orders-0.bak"),
    *("a-0-delete", "a-0-future", "a-0-stray", "__cluster_metadata-x", f"t-0-{REMOTE}"),
]
"""tests/brokers/test_directory_names.py tries them on a broker."""
