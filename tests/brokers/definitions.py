"""Kafka's message definitions, written anew from what its message classes hold: the files themselves are not here."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SCALARS = {
    "BOOLEAN": "bool",
    "INT8": "int8",
    "INT16": "int16",
    "UINT16": "uint16",
    "INT32": "int32",
    "UINT32": "uint32",
    "INT64": "int64",
    "FLOAT64": "float64",
    "UUID": "uuid",
}
FOLDERS = {
    "org.apache.kafka.common.message": "clients",
    "org.apache.kafka.common.metadata": "metadata",
    "org.apache.kafka.coordinator.group.generated": "group-coordinator",
    "org.apache.kafka.coordinator.share.generated": "share-coordinator",
    "org.apache.kafka.coordinator.transaction.generated": "transaction-coordinator",
    "org.apache.kafka.raft.generated": "raft",
    "org.apache.kafka.server.log.remote.metadata.storage.generated": "storage",
}
"""The package of a class -> the directory of Kafka that has its definition."""
UNSAID = (None, "", "0", "0.0", "false", "AAAAAAAAAAAAAAAAAAAAAA")
"""What fields have at first that have no default of their own."""
LAST = 32767


def folder(message: dict[str, Any]) -> str:
    return FOLDERS[message["class"].rpartition(".")[0]]


def kind(message: dict[str, Any]) -> str:
    """The type of a message."""
    name, where = message["message"], folder(message)
    for word in ("Request", "Response", "Header"):
        if name.endswith(f"{word}Data"):
            return word.lower()
    if where.endswith("coordinator"):
        return "coordinator-key" if name.endswith("Key") else "coordinator-value"
    return "metadata" if where in ("metadata", "storage") and message["api_key"] >= 0 else "data"


def name_of(message: dict[str, Any]) -> str:
    """The name of a message in its definition: classes of requests, responses and headers have ``Data`` behind it."""
    name: str = message["message"]
    return name.removesuffix("Data") if kind(message) in ("request", "response", "header") else name


def write(messages: Iterable[dict[str, Any]], directory: Path) -> None:
    """A file for the definition of each message."""
    for message in messages:
        path = directory / folder(message) / f"{name_of(message)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(definition(message), indent=2), encoding="utf-8")


def definition(message: dict[str, Any]) -> dict[str, Any]:
    """The definition of a message."""
    versions = {int(v): fields for v, fields in message["versions"].items()}
    flexible = [v for v, fields in versions.items() if fields[-1:] == [{"type": "TAGGED_FIELDS"}]]
    made = _Definition(message, max(versions), min(flexible, default=LAST))
    fields = made.fields(message["message"], versions)
    out: dict[str, Any] = {
        "type": kind(message),
        "name": name_of(message),
        "validVersions": f"{min(versions)}-{max(versions)}",
        "flexibleVersions": f"{min(flexible)}+" if flexible else "none",
        "fields": fields,
    }
    if message["api_key"] >= 0:
        out["apiKey"] = message["api_key"]
    common = made.common()
    return {**out, "commonStructs": common} if common else out


Described = dict[str, Any]


class _Definition:
    """``held`` are the fields of each struct in the versions in which a field has it."""

    def __init__(self, message: dict[str, Any], last: int, flexible: int) -> None:
        self.message = message["message"]
        self.structs: dict[str, list[Described]] = message["structs"]
        self.last = last
        self.flexible = flexible
        holders = [f["struct"] for fields in self.structs.values() for f in fields]
        self.shared = {s for s in holders if s and holders.count(s) > 1}
        self.held: dict[str, dict[int, list[Described]]] = {}

    def common(self) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        done: set[str] = set()
        while set(self.held) - done:
            name = min(set(self.held) - done)
            done.add(name)
            versions = self.versions(self.held[name])
            out.append(
                {"name": name, "versions": versions, "fields": self.fields(name, self.held[name])}
            )
        return out

    def fields(self, struct: str, versions: dict[int, list[Described]]) -> list[dict[str, Any]]:
        """The fields of a struct: those of the class, with what the schemas of the versions say of them."""
        out = []
        for declared in self.structs[struct]:
            found = {
                v: f for v, fields in versions.items() for f in fields if _same(f, declared["name"])
            }
            if found:
                out.append(self.field(declared, found))
        return out

    def field(self, declared: Described, found: dict[int, Described]) -> dict[str, Any]:
        name = declared["name"]
        out: dict[str, Any] = {
            # The second letter is a capital where the first is one too: kRaftVersion.
            "name": name[0].upper() + name[1:] if name[1:2].isupper() else name,
            "type": self.type(next(iter(found.values())), declared["struct"]),
            "versions": self.versions(found),
        }
        nullable = [v for v, f in found.items() if f["nullable"]]
        if nullable:
            out["nullableVersions"] = self.versions(nullable)
        tagged = [v for v, f in found.items() if "tag" in f]
        if tagged:
            out["taggedVersions"] = self.versions(tagged)
            out["tag"] = next(f["tag"] for f in found.values() if "tag" in f)
        if any(v >= self.flexible and not _is_compact(f) for v, f in found.items()):
            out["flexibleVersions"] = "none"
        default = declared["default"]
        if default is None and len(nullable) == len(found) and out["type"] != "records":
            out["default"] = "null"
        elif default not in UNSAID:
            out["default"] = default
        if declared["struct"]:
            inner = {v: _inside(f) for v, f in found.items()}
            if declared["struct"] in self.shared:
                held = self.held.setdefault(declared["struct"], {})
                held.update(inner)
            else:
                out["fields"] = self.fields(declared["struct"], inner)
        return out

    def type(self, described: Described, struct: str) -> str:
        found: str = described["type"]
        if found.endswith("ARRAY"):
            return f"[]{self.type(described['of'], struct)}"
        if found == "STRUCT":
            return struct
        return (
            SCALARS.get(found) or found.removeprefix("COMPACT_").removeprefix("NULLABLE_").lower()
        )

    def versions(self, versions: Iterable[int]) -> str:
        """The range of some versions, open where it has the last one."""
        ordered = sorted(versions)
        assert ordered == list(range(ordered[0], ordered[-1] + 1)), (self.message, ordered)
        if ordered[-1] == self.last:
            return f"{ordered[0]}+"
        return f"{ordered[0]}-{ordered[-1]}" if len(ordered) > 1 else str(ordered[0])


def _same(described: Described, name: str) -> bool:
    """Schemas write ``kraft_version`` for the field ``kRaftVersion``."""
    found: str = described.get("name", "")
    return found.replace("_", "") == name.lower()


def _is_compact(described: Described) -> bool:
    kind_of: str = described["type"]
    lengthy = any(word in kind_of for word in ("STRING", "BYTES", "RECORDS", "ARRAY"))
    return not lengthy or kind_of.startswith("COMPACT")


def _inside(described: Described) -> list[Described]:
    fields: list[Described] = described.get("of", described)["fields"]
    return fields
