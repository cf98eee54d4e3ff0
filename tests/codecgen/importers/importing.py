"""Made-up definitions of messages in Kafka's language, and the schema files that ``codecgen import`` makes of them.

``python -m tests.codecgen.importers.importing`` writes the schema files anew: read what changed before you keep it.
"""

from __future__ import annotations

from pathlib import Path

from codecgen.importers import kafka_json
from codecgen.importers.kafka_json import Imported
from codecgen.schema.loader import MANIFEST

HERE = Path(__file__).parent / "imported" / "kafka_json"
DEFINITIONS = HERE / "definitions"
SCHEMAS = HERE / "schemas"


def imported() -> Imported:
    found = kafka_json.find(DEFINITIONS)
    assert not found.findings
    return kafka_json.convert(found, "camel")


def files() -> dict[str, str]:
    return {MANIFEST: kafka_json.NEW_MANIFEST, **imported().files}


def expected() -> dict[str, str]:
    return {
        path.relative_to(SCHEMAS).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(SCHEMAS.rglob("*.yaml"))
    }


def write() -> None:
    for path in SCHEMAS.rglob("*.yaml"):
        path.unlink()
    for name, text in files().items():
        (SCHEMAS / name).parent.mkdir(parents=True, exist_ok=True)
        (SCHEMAS / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write()
