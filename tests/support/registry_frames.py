"""What serializers of AWS Glue and Apicurio wrote, as ``python -m tests.codecs.make_registry_frames`` keeps it."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.paths import ROOT

LINES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (ROOT / "tests" / "data" / "registry_frames.jsonl").read_text("utf-8").splitlines()
]
GLUE = [line for line in LINES if line["writer"] == "glue"]
APICURIO = [line for line in LINES if line["writer"] == "apicurio"]
GUID = uuid.UUID("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63")
AVRO = b"\x0e\x0aseven"
DATA = {"AVRO": AVRO, "JSON": b'{"n":7,"s":"seven"}'}
MESSAGES = ["shop.Apple", "shop.Apple.Inner", "shop.Apple.NamedEntry", "shop.AppleTree", "shop.Zebra"]  # fmt: skip
IDS = {"globalId": 70, "contentId": 7}
