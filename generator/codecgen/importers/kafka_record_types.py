"""The records that a directory defines: an enum of their types, and choices of what stands for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from codecgen.importers.kafka_definitions import Message
from codecgen.importers.kafka_names import field_names, free, layout_name
from codecgen.importers.yaml_text import Mapped, Value, Word, documents, words

KEY, VALUE, METADATA = "coordinator-key", "coordinator-value", "metadata"


@dataclass(frozen=True, slots=True)
class Records:
    """The messages of a directory that are records, by apiKey, and what the names begin with that are made for them."""

    coordinator: str
    metadata: str
    keys: Mapping[int, Message]
    values: Mapping[int, Message]
    bodies: Mapping[int, Message]

    def names(self) -> Iterator[str]:
        """What is declared for them."""
        if self.keys:
            yield from (f"{self.coordinator}_{what}" for what in ("record_type", "key", "value"))
        if self.bodies:
            yield from (f"{self.metadata}_{what}" for what in ("record_type", "record", "body"))

    @property
    def type_field(self) -> str:
        """The field that keys begin with: the same name in all of them."""
        taken = [name for m in self.keys.values() for name in field_names(m.fields).values()]
        return free("type", taken, "key")

    def words(self) -> dict[str, tuple[str, str, str]]:
        """The name of a key -> the field that it begins with, the enum of that, and its value."""
        stems = _stems(self.keys, "_key")
        enum = f"{self.coordinator}_record_type"
        return {m.name: (self.type_field, enum, stems[n]) for n, m in self.keys.items()}


def records_of(messages: Sequence[Message], part: str) -> Records:
    """The records among the messages of a directory, whose name has ``part`` in it where there are several."""

    def of(kind: str) -> dict[int, Message]:
        found = [m for m in messages if m.type == kind and m.api_key is not None]
        return {m.api_key or 0: m for m in sorted(found, key=lambda m: m.api_key or 0)}

    coordinator = part if part.endswith("coordinator") else f"{part}_coordinator"
    metadata = part if part.endswith("metadata") else f"{part}_metadata"
    return Records(
        coordinator.removeprefix("_"),
        metadata.removeprefix("_"),
        of(KEY),
        of(VALUE),
        of(METADATA),
    )


def record_files(records: Records) -> Iterator[tuple[str, str]]:
    """The files that say which layout stands for which type: their names and texts."""
    if records.keys:
        name = records.coordinator
        stems = _stems(records.keys, "_key")
        enum = _enum(f"{name}_record_type", "What a record is: its key begins with it.", stems)
        keys = _choice(
            f"{name}_key", "The key of a record.", "by", records.type_field, records.keys, stems
        )
        values = _choice(
            f"{name}_value",
            "The value of a record, by the type in its key.",
            "given",
            f"{name}_record_type",
            records.values,
            stems,
        )
        yield f"{name}_record_types", documents([enum])
        yield f"{name}_records", documents([keys, values])
    if records.bodies:
        name = records.metadata
        stems = _stems(records.bodies, "")
        enum = _enum(f"{name}_record_type", "What a record is.", stems)
        given = f"{name}_record_type"
        doc = "A record without its frame, by the type in that."
        bodies = _choice(f"{name}_body", doc, "given", given, records.bodies, stems)
        yield f"{name}_record_types", documents([enum])
        yield f"{name}_records", documents([_frame(name), bodies])


def _frame(name: str) -> Mapped:
    """The layout of a record with its frame, which Kafka's own code writes around it."""
    fields: dict[str, dict[str, Value]] = {
        "frame_version": {"type": Word("uvarint"), "const": Word("1")},
        "api_key": {
            "type": Word("uvarint"),
            "enum": Word(f"{name}_record_type"),
            "doc": "What the record is.",
        },
        "version": {"type": Word("uvarint"), "doc": "Version of the record."},
        "body": {
            "choice": Word(f"{name}_body"),
            "given": Word("api_key"),
            "version": Word("version"),
        },
    }
    return Mapped(
        {
            "layout": Word(f"{name}_record"),
            "doc": "A record with its frame, as it stands in a topic.",
            "accepts": words(["overlong_varints"]),
            "fields": Mapped({key: Mapped(dict(v), short=True) for key, v in fields.items()}),
        }
    )


def _stems(messages: Mapping[int, Message], ending: str) -> dict[int, str]:
    """The names of the types: those of the messages without their ending."""
    whole = {n: layout_name(m) for n, m in messages.items()}
    short = {n: name.removesuffix(ending) or name for n, name in whole.items()}
    return short if len(set(short.values())) == len(short) else whole


def _enum(name: str, doc: str, stems: Mapping[int, str]) -> Mapped:
    values = Mapped()
    for number, stem in stems.items():
        said = {"value": Word(str(number)), "spelled": Word(stem.upper())}
        values.entries[stem] = Mapped(dict(said), short=True)
    return Mapped({"enums": Mapped({name: Mapped({"doc": doc, "values": values})})})


def _choice(
    name: str,
    doc: str,
    key: str,
    by: str,
    messages: Mapping[int, Message],
    stems: Mapping[int, str],
) -> Mapped:
    cases = Mapped({stems[n]: Word(layout_name(m)) for n, m in messages.items()})
    return Mapped({"choice": Word(name), "doc": doc, key: Word(by), "cases": cases})
