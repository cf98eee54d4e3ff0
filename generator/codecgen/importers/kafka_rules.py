"""What Kafka's generator refuses in definitions that can be read: one message, and the messages of a directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from codecgen.diagnostics import Diagnostic
from codecgen.importers.kafka_defaults import wrong_default
from codecgen.importers.kafka_definitions import NONE, Field, Message, Range, Struct
from codecgen.schema.types import Span

ENTITIES = {
    "transactionalId": "string",
    "producerId": "int64",
    "groupId": "string",
    "topicName": "string",
    "brokerId": "int32",
}


def check_message(message: Message, *, is_whole: bool = True) -> Iterator[Diagnostic]:
    """What is wrong with one message. One that is not whole lacks fields that could not be read."""
    m = message
    if m.valid.is_open:
        yield _wrong("the message has no last version", m.at("validVersions"))
    if not m.flexible.empty and not m.flexible.is_open:
        text = f"flexibleVersions {m.flexible} end; they are none or go on: {m.flexible.low}+"
        yield _wrong(text, m.at("flexibleVersions"))
    for key in ("listeners", "latestVersionUnstable"):
        if key in m.left_out and m.type != "request":
            yield _wrong(f'only requests have "{key}"', m.at(key))
    if m.type.startswith("coordinator-") or m.type == "metadata":
        if m.api_key is None:
            yield _wrong(f'a message of type {m.type} has an "apiKey"', m.at("type"))
        elif m.api_key < 0:
            yield _wrong("the apiKey is negative", m.at("apiKey"))
    if m.type == "coordinator-key" and not m.is_retired:
        if m.valid != Range(0, 0):
            yield _wrong("a coordinator-key has version 0 only", m.at("validVersions"))
        if not m.flexible.empty:
            yield _wrong("a coordinator-key has no flexible versions", m.at("flexibleVersions"))
    for one in m.fields:
        if one.is_map_key:
            yield _wrong("a field of the message itself is no mapKey", one.at("mapKey"))
    yield from _fields(m, m.name, m.fields)
    for struct in m.structs:
        yield from _fields(m, struct.name, struct.fields)
    if is_whole:
        yield from _tags_follow(m.name, m.fields)
        for struct in m.structs:
            yield from _tags_follow(struct.name, struct.fields)
        yield from _structs(m)


def check_directory(messages: Sequence[Message]) -> Iterator[Diagnostic]:
    """What is wrong with messages beside each other: apiKeys that two have, keys without values."""
    seen: dict[tuple[str, int], Message] = {}
    for message in messages:
        if message.api_key is None or message.is_retired:
            continue
        kind = (message.type, message.api_key)
        if kind in seen and message.type not in ("data", "header"):
            text = f"two messages of type {message.type} have the apiKey {message.api_key}"
            yield _wrong(text, message.at("apiKey"), f"the other one is at {seen[kind].span}")
        seen.setdefault(kind, message)
    for (kind_of, number), message in seen.items():
        other = {"coordinator-key": "coordinator-value", "coordinator-value": "coordinator-key"}
        if kind_of in other and (other[kind_of], number) not in seen:
            text = f"no {other[kind_of]} has the apiKey {number}"
            yield _wrong(text, message.at("apiKey"))


def check_names(messages: Iterable[Message]) -> Iterator[Diagnostic]:
    """Messages of one name, wherever they are, or of names that differ in capitals only."""
    seen: dict[str, Message] = {}
    for message in messages:
        other = seen.setdefault(message.name.lower(), message)
        if other is not message:
            help = f"the other one is at {other.span}"
            yield _wrong(f"two messages are called {message.name}", message.at("name"), help)


def _wrong(message: str, span: Span, help: str = "") -> Diagnostic:
    return Diagnostic("", message, span, help=help)


# ---------------------------------------------------------------- fields


def _fields(m: Message, owner: str, fields: Sequence[Field]) -> Iterator[Diagnostic]:
    names: set[str] = set()
    tags: set[int] = set()
    for one in fields:
        if one.name in names:
            yield _wrong(f"{owner} has two fields {one.name}", one.at("name"))
        names.add(one.name)
        if one.tag is not None:
            if one.tag in tags:
                yield _wrong(f"{owner} has two fields with the tag {one.tag}", one.at("tag"))
            tags.add(one.tag)
        yield from _field(m, one)
        if one.fields:
            yield from _fields(m, one.type.name, one.fields)


def _tags_follow(owner: str, fields: Sequence[Field]) -> Iterator[Diagnostic]:
    tags = {f.tag for f in fields if f.tag is not None}
    missing = next((n for n in range(len(tags)) if n not in tags), None)
    if missing is not None and min(tags) >= 0:
        last = max((f for f in fields if f.tag is not None), key=lambda f: f.tag or 0)
        yield _wrong(f"{owner} has no tag {missing}, but higher ones", last.at("tag"))
    for one in fields:
        yield from _tags_follow(one.type.name, one.fields or ())


def _field(m: Message, f: Field) -> Iterator[Diagnostic]:
    if not f.nullable.empty and not (f.type.is_array or f.type.is_struct or _lengthy(f)):
        yield _wrong(f"{f.type} cannot be null", f.at("nullableVersions"))
    if f.fields and not f.type.is_struct:
        yield _wrong(f"{f.type} has no fields", f.at("fields"))
    if f.flexible is not None and f.type.plain not in ("string", "bytes"):
        text = "only a string or bytes have flexibleVersions of their own"
        yield _wrong(text, f.at("flexibleVersions"))
    if f.is_zero_copy and f.type.plain != "bytes":
        yield _wrong("only bytes are zeroCopy", f.at("zeroCopy"))
    if f.entity and f.entity != "unknown":
        expected = ENTITIES.get(f.entity)
        if expected is None:
            help = f"known: {', '.join(ENTITIES)}"
            yield _wrong(f'"{f.entity}" is no entityType', f.at("entityType"), help)
        elif f.type.name != expected:
            text = f"a {f.entity} is of type {expected}, not {f.type.name}"
            yield _wrong(text, f.at("entityType"))
    yield from _tag(m, f)
    wrong = wrong_default(f)
    if wrong:
        yield _wrong(wrong, f.at("default"))


def _lengthy(f: Field) -> bool:
    return f.type.name in ("string", "bytes", "records")


def _tag(m: Message, f: Field) -> Iterator[Diagnostic]:
    if f.tag is None:
        if not f.tagged.empty:
            yield _wrong("taggedVersions without a tag", f.at("taggedVersions"))
        return
    if f.tag < 0:
        yield _wrong("the tag is negative", f.at("tag"))
    if f.is_map_key:
        yield _wrong("a field with a tag is no mapKey", f.at("mapKey"))
    if f.type.plain == "records":
        yield _wrong("records have no tag", f.at("tag"))
    if f.tagged.empty:
        yield _wrong("a tag without taggedVersions", f.at("tag"))
        return
    where = f.at("taggedVersions")
    if not f.tagged.is_open:
        text = f"taggedVersions {f.tagged} end; they go on: {f.tagged.low}+"
        yield _wrong(text, where)
    if not f.tagged.within(f.versions):
        yield _wrong(f"taggedVersions {f.tagged} are not in versions {f.versions}", where)
    flexible = m.flexible if f.flexible is None else f.flexible
    if not f.tagged.within(flexible):
        yield _wrong(f"taggedVersions {f.tagged} are not in flexibleVersions {flexible}", where)
    nullable = f.nullable.both(f.tagged)
    if nullable not in (NONE, f.tagged):
        text = f"null in versions {f.nullable}, tagged in {f.tagged}: all of them, or none"
        yield _wrong(text, f.at("nullableVersions"))


# ---------------------------------------------------------------- structs


def _structs(m: Message) -> Iterator[Diagnostic]:
    common: dict[str, Struct] = {}
    for struct in m.structs:
        if struct.name in common:
            help = f"the other one is at {common[struct.name].span}"
            yield _wrong(f"two common structs are called {struct.name}", struct.span, help)
        common.setdefault(struct.name, struct)
    inline: dict[str, Field] = {}
    for one in m.all_fields():
        name = one.type.name
        if not one.type.is_struct:
            continue
        if name in common:
            if one.fields:
                yield _wrong(f"{name} is a common struct: its fields stand there", one.at("fields"))
        elif one.fields is None:
            yield _wrong(f"there is no struct {name}", one.at("type"))
        elif name in inline:
            help = f"the other one is at {inline[name].span}; a common struct may be used twice"
            yield _wrong(f"two structs are called {name}", one.at("type"), help)
        inline.setdefault(name, one)
    yield from _endless(m, common)


def _endless(m: Message, common: dict[str, Struct]) -> Iterator[Diagnostic]:
    """Structs that hold themselves."""
    holds = {name: set(_held(struct.fields)) for name, struct in common.items()}
    for name, struct in common.items():
        reached, new = set[str](), set(holds[name])
        while new:
            reached |= new
            new = {inner for one in new for inner in holds.get(one, ())} - reached
        if name in reached:
            yield _wrong(f"the struct {name} holds itself", struct.span)


def _held(fields: Iterable[Field]) -> Iterator[str]:
    for one in fields:
        if one.type.is_struct:
            yield one.type.name
            yield from _held(one.fields or ())
