"""Record types of a directory of definitions: an enum, and choices of the layouts for each type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from codecgen.importers.kafka_definitions import Message
from codecgen.importers.kafka_names import field_names, layout_name, unused_name
from codecgen.importers.yaml_text import Mapped, Value, Word, documents, words

KEY, VALUE, METADATA = "coordinator-key", "coordinator-value", "metadata"


@dataclass(frozen=True, slots=True)
class Records:
    """Messages of a directory that are records, by apiKey: coordinator keys and values, and
    metadata records. Also the prefixes of the names that are made for them.
    """

    coordinator: str
    metadata: str
    keys: Mapping[int, Message]
    values: Mapping[int, Message]
    bodies: Mapping[int, Message]

    def names(self) -> Iterator[str]:
        """Yield the names of the enums, choices and layouts that are declared for the records:
        three for coordinator records if there are keys, three for metadata records if there are
        any.
        """
        if self.keys:
            yield from (f"{self.coordinator}_{what}" for what in ("record_type", "key", "value"))
        if self.bodies:
            yield from (f"{self.metadata}_{what}" for what in ("record_type", "record", "body"))

    @property
    def type_field(self) -> str:
        """Return the name of the field that keys begin with; no field of a key has it."""
        taken = [name for m in self.keys.values() for name in field_names(m.fields).values()]
        return unused_name("type", taken, "key")

    def words(self) -> dict[str, tuple[str, str, str]]:
        """Return for each key message the field of the type, its enum, and the value."""
        stems = _stems(self.keys, "_key")
        enum = f"{self.coordinator}_record_type"
        return {m.name: (self.type_field, enum, stems[n]) for n, m in self.keys.items()}


def records_of(messages: Sequence[Message], part: str) -> Records:
    """Return the records among the messages of a directory, by ascending apiKey. Messages without
    apiKey are left out; of several of one type and apiKey the last counts. ``part`` begins the
    names that are made, to tell several directories apart; it can be ``""``.
    """

    def by_api_key(kind: str) -> dict[int, Message]:
        """Return the messages of a type by apiKey."""
        found = [m for m in messages if m.type == kind and m.api_key is not None]
        return {m.api_key or 0: m for m in sorted(found, key=lambda m: m.api_key or 0)}

    coordinator = part if part.endswith("coordinator") else f"{part}_coordinator"
    metadata = part if part.endswith("metadata") else f"{part}_metadata"
    return Records(
        coordinator.removeprefix("_"),
        metadata.removeprefix("_"),
        by_api_key(KEY),
        by_api_key(VALUE),
        by_api_key(METADATA),
    )


def record_files(records: Records) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of the schema files with record types and the choices among records: two
    for coordinator records, two for metadata records, none for kinds that the directory lacks.
    Values without any coordinator key give no file. Raise KeyError if there are keys, but none for
    the apiKey of a value, which ``check_directory`` reports.
    """
    if records.keys:
        name = records.coordinator
        stems = _stems(records.keys, "_key")
        enum = _enum(f"{name}_record_type", "What a record is: its key begins with it.", stems)
        keys = _choice(
            f"{name}_key", "The key of a record.", records.type_field, records.keys, stems
        )
        values = _choice(
            f"{name}_value",
            "The value of a record, by the type in its key.",
            "type",
            records.values,
            stems,
            given=f"{name}_record_type",
        )
        yield f"{name}_record_types", documents([enum])
        yield f"{name}_records", documents([keys, values])
    if records.bodies:
        name = records.metadata
        stems = _stems(records.bodies, "")
        enum = _enum(f"{name}_record_type", "What a record is.", stems)
        given = f"{name}_record_type"
        doc = "A record without its frame, by the type in that."
        bodies = _choice(f"{name}_body", doc, "api_key", records.bodies, stems, given=given)
        yield f"{name}_record_types", documents([enum])
        yield f"{name}_records", documents([_frame(name), bodies])


def _frame(name: str) -> Mapped:
    """Return the layout ``name_record`` of the frame around a metadata record: frame version 1,
    apiKey, version, and the body that these select. Kafka's own code writes it; no definition has
    it.
    """
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
            "given": Mapped({"api_key": Word("api_key")}, short=True),
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
    """Return the names of record types: those of the messages, without ``ending`` if they stay unique."""
    whole = {n: layout_name(m) for n, m in messages.items()}
    short = {n: name.removesuffix(ending) or name for n, name in whole.items()}
    return short if len(set(short.values())) == len(short) else whole


def _enum(name: str, doc: str, stems: Mapping[int, str]) -> Mapped:
    """Return the document of the enum ``name`` with a value per record type: ``stems`` has its name
    by number, which is spelled in upper case.
    """
    values = Mapped()
    for number, stem in stems.items():
        entries = {"value": Word(str(number)), "spelled": Word(stem.upper())}
        values.entries[stem] = Mapped(dict(entries), short=True)
    return Mapped({"enums": Mapped({name: Mapped({"doc": doc, "values": values})})})


def _choice(
    name: str,
    doc: str,
    by: str,
    messages: Mapping[int, Message],
    stems: Mapping[int, str],
    given: str | None = None,
) -> Mapped:
    """Return the document of a choice of layouts, one case per message: by the field ``by``, or by a
    value of that name of the enum ``given``. ``stems`` has the name of each record type by apiKey;
    raise KeyError if it lacks one of ``messages``.
    """
    cases = Mapped({stems[n]: Word(layout_name(m)) for n, m in messages.items()})
    decider = {} if given is None else {"given": Mapped({by: Word(given)}, short=True)}
    return Mapped({"choice": Word(name), "doc": doc, **decider, "by": Word(by), "cases": cases})
