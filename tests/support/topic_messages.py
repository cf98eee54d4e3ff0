"""Messages of internal topics that Kafka wrote, by version."""

from __future__ import annotations

import json
from typing import Any

from tests.paths import ROOT

LINES = (ROOT / "tests" / "data" / "topic_messages.jsonl").read_text("utf-8").splitlines()


MESSAGES: dict[str, dict[str, Any]] = {m["message"]: m for m in map(json.loads, LINES)}


VERSIONS = [(name, int(v)) for name, message in MESSAGES.items() for v in message["versions"]]


FOLDERS = ("coordinator/", "metadata/", "remote/")
