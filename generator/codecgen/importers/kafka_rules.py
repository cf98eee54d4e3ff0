"""Checks of Kafka's generator on definitions: of one message, and of the messages of a directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from codecgen.diagnostics import Diagnostic, Span
from codecgen.importers.kafka_defaults import wrong_default
from codecgen.importers.kafka_definitions import NONE, Field, Message, Range, Struct

ENTITIES = {
    "transactionalId": "string",
    "producerId": "int64",
    "groupId": "string",
    "topicName": "string",
    "brokerId": "int32",
}


def check_message(message: Message, *, is_whole: bool = True) -> Iterator[Diagnostic]:
    """Yield a finding for each violation of the rules of Kafka's generator in one message:
    versions, apiKey, keys that its type cannot have, fields, tags, structs. If ``is_whole`` is
    False, some fields could not be read, and gaps of tags and definitions of structs are not
    checked.
    """
    m = message
    if m.valid.is_open:
        yield _finding("the message has no last version", m.span_of("validVersions"))
    if not m.flexible.empty and not m.flexible.is_open:
        text = f"flexibleVersions {m.flexible} end; they are none or go on: {m.flexible.low}+"
        yield _finding(text, m.span_of("flexibleVersions"))
    given = {"listeners": "listeners" in m.spans, "latestVersionUnstable": m.is_latest_unstable}
    for key, is_given in given.items():
        if is_given and m.type != "request":
            yield _finding(f'only requests have "{key}"', m.span_of(key))
    if m.type.startswith("coordinator-") or m.type == "metadata":
        if m.api_key is None:
            yield _finding(f'a message of type {m.type} has an "apiKey"', m.span_of("type"))
        elif m.api_key < 0:
            yield _finding("the apiKey is negative", m.span_of("apiKey"))
    if m.type == "coordinator-key" and not m.is_retired:
        if m.valid != Range(0, 0):
            yield _finding("a coordinator-key has version 0 only", m.span_of("validVersions"))
        if not m.flexible.empty:
            yield _finding(
                "a coordinator-key has no flexible versions", m.span_of("flexibleVersions")
            )
    for one in m.fields:
        if one.is_map_key:
            yield _finding(
                "a field of the message itself cannot be a mapKey", one.span_of("mapKey")
            )
    yield from _fields(m, m.name, m.fields)
    for struct in m.structs:
        yield from _fields(m, struct.name, struct.fields)
    if is_whole:
        yield from _tags_follow(m.name, m.fields)
        for struct in m.structs:
            yield from _tags_follow(struct.name, struct.fields)
        yield from _structs(m)


def check_directory(messages: Sequence[Message]) -> Iterator[Diagnostic]:
    """Yield a finding for each message of one directory that has the type (other than data and
    header) and apiKey of an earlier one, and for each coordinator key without value or value
    without key. Retired messages and messages without apiKey are skipped.
    """
    seen: dict[tuple[str, int], Message] = {}
    for message in messages:
        if message.api_key is None or message.is_retired:
            continue
        kind = (message.type, message.api_key)
        if kind in seen and message.type not in ("data", "header"):
            text = f"two messages of type {message.type} have the apiKey {message.api_key}"
            yield _finding(
                text, message.span_of("apiKey"), f"the other one is at {seen[kind].span}"
            )
        seen.setdefault(kind, message)
    for (kind_of, number), message in seen.items():
        other = {"coordinator-key": "coordinator-value", "coordinator-value": "coordinator-key"}
        if kind_of in other and (other[kind_of], number) not in seen:
            text = f"no {other[kind_of]} has the apiKey {number}"
            yield _finding(text, message.span_of("apiKey"))


def check_names(messages: Iterable[Message]) -> Iterator[Diagnostic]:
    """Yield a finding for each message whose name an earlier message has, in any letter case."""
    seen: dict[str, Message] = {}
    for message in messages:
        other = seen.setdefault(message.name.lower(), message)
        if other is not message:
            help = f"the other one is at {other.span}"
            yield _finding(f"two messages are called {message.name}", message.span_of("name"), help)


def _finding(message: str, span: Span, help: str = "") -> Diagnostic:
    """Return a finding: a Diagnostic without an id."""
    return Diagnostic("", message, span, help=help)


# ---------------------------------------------------------------- fields


def _fields(m: Message, owner: str, fields: Sequence[Field]) -> Iterator[Diagnostic]:
    """Yield a finding for each field with a name or tag that an earlier field of the struct has,
    and the findings about each field, inner ones included. ``owner`` names the struct.
    """
    names: set[str] = set()
    tags: set[int] = set()
    for one in fields:
        if one.name in names:
            yield _finding(f"{owner} has two fields {one.name}", one.span_of("name"))
        names.add(one.name)
        if one.tag is not None:
            if one.tag in tags:
                yield _finding(f"{owner} has two fields with the tag {one.tag}", one.span_of("tag"))
            tags.add(one.tag)
        yield from _field(m, one)
        if one.fields:
            yield from _fields(m, one.type.name, one.fields)


def _tags_follow(owner: str, fields: Sequence[Field]) -> Iterator[Diagnostic]:
    """Yield a finding for each struct, from the one that ``owner`` names, with ``fields``, to inner
    ones, whose tags are not 0, 1, 2 and so on without a gap. Only the first gap is reported;
    structs with negative tags are skipped.
    """
    tags = {f.tag for f in fields if f.tag is not None}
    missing = next((n for n in range(len(tags)) if n not in tags), None)
    if missing is not None and min(tags) >= 0:
        last = max((f for f in fields if f.tag is not None), key=lambda f: f.tag or 0)
        yield _finding(f"{owner} has no tag {missing}, but higher ones", last.span_of("tag"))
    for one in fields:
        yield from _tags_follow(one.type.name, one.fields or ())


def _field(m: Message, f: Field) -> Iterator[Diagnostic]:
    """Yield a finding if a field has nullable versions, inner fields, flexible versions, zeroCopy
    or an entityType that its type cannot have, a wrong tag, or a default that does not fit.
    """
    if not f.nullable.empty and not (f.type.is_array or f.type.is_struct or _lengthy(f)):
        yield _finding(f"{f.type} cannot be null", f.span_of("nullableVersions"))
    if f.fields and not f.type.is_struct:
        yield _finding(f"{f.type} has no fields", f.span_of("fields"))
    if f.flexible is not None and f.type.non_array_name not in ("string", "bytes"):
        text = "only a string or bytes have flexibleVersions of their own"
        yield _finding(text, f.span_of("flexibleVersions"))
    if f.is_zero_copy and f.type.non_array_name != "bytes":
        yield _finding("only bytes are zeroCopy", f.span_of("zeroCopy"))
    if f.entity and f.entity != "unknown":
        expected = ENTITIES.get(f.entity)
        if expected is None:
            help = f"known: {', '.join(ENTITIES)}"
            yield _finding(f'"{f.entity}" is not an entityType', f.span_of("entityType"), help)
        elif f.type.name != expected:
            text = f"a {f.entity} is of type {expected}, not {f.type.name}"
            yield _finding(text, f.span_of("entityType"))
    yield from _tag(m, f)
    wrong = wrong_default(f)
    if wrong:
        yield _finding(wrong, f.span_of("default"))


def _lengthy(f: Field) -> bool:
    """Return whether a field is a string, bytes or records."""
    return f.type.name in ("string", "bytes", "records")


def _tag(m: Message, f: Field) -> Iterator[Diagnostic]:
    """Yield a finding if only one of tag and taggedVersions is given, the tag is negative or on a
    mapKey or records, or taggedVersions end, exceed the field's versions or flexible versions, or
    are nullable in part. Yield nothing without both.
    """
    if f.tag is None:
        if not f.tagged.empty:
            yield _finding("taggedVersions without a tag", f.span_of("taggedVersions"))
        return
    if f.tag < 0:
        yield _finding("the tag is negative", f.span_of("tag"))
    if f.is_map_key:
        yield _finding("a field with a tag cannot be a mapKey", f.span_of("mapKey"))
    if f.type.non_array_name == "records":
        yield _finding("records have no tag", f.span_of("tag"))
    if f.tagged.empty:
        yield _finding("a tag without taggedVersions", f.span_of("tag"))
        return
    where = f.span_of("taggedVersions")
    if not f.tagged.is_open:
        text = f"taggedVersions {f.tagged} end; they go on: {f.tagged.low}+"
        yield _finding(text, where)
    if not f.tagged.is_within(f.versions):
        yield _finding(f"taggedVersions {f.tagged} are not in versions {f.versions}", where)
    flexible = m.flexible if f.flexible is None else f.flexible
    if not f.tagged.is_within(flexible):
        yield _finding(f"taggedVersions {f.tagged} are not in flexibleVersions {flexible}", where)
    nullable = f.nullable.intersect(f.tagged)
    if nullable not in (NONE, f.tagged):
        text = f"null in versions {f.nullable}, tagged in {f.tagged}: all of them, or none"
        yield _finding(text, f.span_of("nullableVersions"))


# ---------------------------------------------------------------- structs


def _structs(m: Message) -> Iterator[Diagnostic]:
    """Yield a finding for each common struct with the name of an earlier one, and for each common
    struct that holds itself. Yield one for each field whose type is a struct that is not defined,
    or that an earlier field defines too, and for each that gives fields to a common struct.
    """
    common: dict[str, Struct] = {}
    for struct in m.structs:
        if struct.name in common:
            help = f"the other one is at {common[struct.name].span}"
            yield _finding(f"two common structs are called {struct.name}", struct.span, help)
        common.setdefault(struct.name, struct)
    inline: dict[str, Field] = {}
    for one in m.all_fields():
        name = one.type.name
        if not one.type.is_struct:
            continue
        if name in common:
            if one.fields:
                yield _finding(
                    f"{name} is a common struct: its fields stand there", one.span_of("fields")
                )
        elif one.fields is None:
            yield _finding(f"no struct is called {name}", one.span_of("type"))
        elif name in inline:
            help = f"the other one is at {inline[name].span}; a common struct may be used twice"
            yield _finding(f"two structs are called {name}", one.span_of("type"), help)
        inline.setdefault(name, one)
    yield from _endless(m, common)


def _endless(m: Message, common: dict[str, Struct]) -> Iterator[Diagnostic]:
    """Yield a finding for each common struct that holds itself, directly or through other common
    structs.
    """
    holds = {name: set(_struct_names(struct.fields)) for name, struct in common.items()}
    for name, struct in common.items():
        reached, new = set[str](), set(holds[name])
        while new:
            reached |= new
            new = {inner for one in new for inner in holds.get(one, ())} - reached
        if name in reached:
            yield _finding(f"the struct {name} holds itself", struct.span)


def _struct_names(fields: Iterable[Field]) -> Iterator[str]:
    """Yield the names of the structs that fields hold, each followed by those inside its inline
    fields. Repeats are possible.
    """
    for one in fields:
        if one.type.is_struct:
            yield one.type.name
            yield from _struct_names(one.fields or ())
