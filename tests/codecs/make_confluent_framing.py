"""Makes tests/data/confluent_framing.jsonl: what Confluent's client for Python writes before values, and what it reads.

python -m tests.codecs.make_confluent_framing      (needs confluent-kafka[protobuf,schemaregistry])
"""

from __future__ import annotations

import importlib
import io
import json
from typing import Any

from tests.paths import ROOT

FILE = ROOT / "tests" / "data" / "confluent_framing.jsonl"
GUID = "89791762-2336-4186-9674-299b90a802e2"
INDEXES = ([0], [1], [63], [64], [2, 1], [0, 0], [300, 0, 8192], list(range(130)))
READ = (
    "",
    "00",
    "000000",
    "0000000007",
    "000000000700",
    "0000000007020000",
    "00000000078000aa",  # a count in two bytes
    "0000000007020100",  # an index below 0
    "000000000704",
    "010102030405060708090a0b0c0d0e0f1000",
    "010102030405060708090a0b0c0d0e0f1082800002bb",
    "010102030405060708090a0b0c0d0e0f",
    "0200000007",
    "ff00000007",
)


def main() -> None:
    serde: Any = importlib.import_module("confluent_kafka.schema_registry.serde")
    lines = []
    for number in (0, 1, 7, 0x01020304, (1 << 31) - 1, (1 << 32) - 1):
        made = serde.SchemaId("AVRO", schema_id=number)
        lines.append({"id": number, "hex": made.id_to_bytes().hex()})
    lines.append({"guid": GUID, "hex": serde.SchemaId("JSON", guid=GUID).guid_to_bytes().hex()})
    for indexes in INDEXES:
        made = serde.SchemaId("PROTOBUF", 7, GUID, indexes)
        lines.append({"id": 7, "indexes": indexes, "hex": made.id_to_bytes().hex()})
        lines.append({"guid": GUID, "indexes": indexes, "hex": made.guid_to_bytes().hex()})
    made = serde.SchemaId("PROTOBUF", schema_id=(1 << 32) - 1, message_indexes=[1])
    lines.append({"id": made.id, "indexes": [1], "hex": made.id_to_bytes().hex()})
    for kind in ("AVRO", "PROTOBUF"):
        for data in READ:
            found = serde.SchemaId(kind)
            line: dict[str, Any] = {"kind": kind, "read": data}
            try:
                rest = found.from_bytes(io.BytesIO(bytes.fromhex(data))).read()
                guid = None if found.guid is None else str(found.guid)
                line |= {"id": found.id, "guid": guid, "rest": rest.hex()}
                if kind == "PROTOBUF":
                    line["indexes"] = found.message_indexes
            except Exception as error:
                line["error"] = type(error).__name__
            lines.append(line)
    FILE.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
