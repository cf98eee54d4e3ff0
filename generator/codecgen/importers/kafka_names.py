"""Names in the schema language for Kafka's names: layouts, fields, files and structs."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from codecgen.check.names import CONTAINER, EXPRESSION, LONGEST, WINDOWS
from codecgen.importers.kafka_definitions import Field, Message, Struct
from codecgen.plan.generated_names import MESSAGE_TABLE, SHIPPED, TARGET_PACKAGES
from codecgen.schema.scalars import SCALARS

_WORD = re.compile(r"[A-Z]{2,}(?=[A-Z][a-z])|[A-Z]+[a-z0-9]*|[a-z0-9]+")
_TAKEN_FIELDS = CONTAINER | EXPRESSION | {"unknown_tags"}
_TAKEN_FILES = TARGET_PACKAGES | WINDOWS | {SHIPPED, MESSAGE_TABLE, "codecgen"}

TABLE = "api"
"""The name that the table of messages takes in the generated package."""


def snake(name: str) -> str:
    """Return a name in snake_case: ``TopicID`` gives ``topic_id``, ``group-coordinator`` gives ``group_coordinator``."""
    return "_".join(found.lower() for found in _WORD.findall(name))


def camel(name: str) -> str:
    """Return a name with a small first letter, as Kafka's documents and tools write it."""
    return name[:1].lower() + name[1:]


def field_names(fields: Iterable[Field]) -> dict[str, str]:
    """Return a snake_case name for each field by its name in the definition. ``_`` is appended to
    names that are reserved, Python keywords or used by an earlier field.
    """
    out: dict[str, str] = {}
    for one in fields:
        name = snake(one.name)
        while name in _TAKEN_FIELDS or keyword.iskeyword(name) or name in out.values():
            name += "_"
        out[one.name] = name
    return out


def unused_name(name: str, taken: Collection[str], word: str) -> str:
    """Return ``name``, with ``word`` and ``_`` before it as often as needed until it is not in
    ``taken``.
    """
    while name in taken:
        name = f"{word}_{name}"
    return name


def layout_name(message: Message) -> str:
    """Return the name of a message's layout: the message's in snake_case. Append ``_message`` if
    that is the name of a scalar type, a Python keyword or ``api``.
    """
    name = snake(message.name)
    taken = name in SCALARS or name == TABLE or keyword.iskeyword(name)
    return f"{name}_message" if taken else name


def file_part(name: str) -> str:
    """Return the name of a schema file or folder without its suffix: ``name`` in snake_case, with
    ``_messages`` behind if that is reserved or begins with no letter.
    """
    part = snake(name)
    taken = part in _TAKEN_FILES or keyword.iskeyword(part)
    return f"{part}_messages" if taken or not re.match("[a-z]", part) else part


def distinct_parts(directories: Collection[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Return for each path a snake_case name made of the parts after the common beginning, as few
    as tell all paths apart. The name is ``""`` if there is only one path, and for a path that is
    the common beginning. Paths that differ only in letter case or separators can get one name.
    """
    common = 0
    ways = sorted(set(directories))
    while len(ways) > 1 and all(len(w) > common and w[common] == ways[0][common] for w in ways):
        common += 1
    length = 1
    while len({way[common : common + length] for way in ways}) < len(ways):
        length += 1
    if len(ways) <= 1:
        return dict.fromkeys(ways, "")
    return {way: "_".join(map(snake, way[common : common + length])) for way in ways}


# ---------------------------------------------------------------- structs

Key = tuple[str, str]
"""A message and one of its structs."""


def struct_names(
    messages: Sequence[Message],
    taken: Collection[str],
    needs_name: Callable[[Message, Struct | Field], bool],
) -> dict[Key, str]:
    """Return the name of each struct that becomes a layout of its own, by (message, struct). A
    struct does so if ``needs_name`` says so, or if its place inline would give it a taken or too
    long name. Ambiguous names, and those of ``taken`` or of a message's layout, get the name of the
    message in front, and a number behind if they are still taken. Raise KeyError if ``needs_name``
    is False for a common struct.
    """
    named = {(m.name, _name_of(s)) for m in messages for s in structs_of(m) if needs_name(m, s)}
    layouts = {layout_name(m) for m in messages} | set(taken)
    while True:
        names = _names(messages, named, layouts)
        more = _find_unplaceable_structs(messages, names, layouts | set(names.values()))
        if not more:
            return names
        named |= more


def structs_of(message: Message) -> list[Struct | Field]:
    """Return the common structs, and the fields that define a struct."""
    return [*message.structs, *(f for f in message.all_fields() if f.fields is not None)]


def _name_of(struct: Struct | Field) -> str:
    """Return the name of a struct, or of the struct that a field defines."""
    return struct.name if isinstance(struct, Struct) else struct.type.name


def _names(
    messages: Sequence[Message], named: Collection[Key], layouts: Collection[str]
) -> dict[Key, str]:
    """Return a unique name for each struct in ``named``: its own in snake_case, with the message in
    front if that is ambiguous, one of ``layouts`` (names of other layouts), a scalar type or too
    long, and a number behind if it is still taken or a Python keyword.
    """
    wanted = {key: snake(key[1]) for key in sorted(named)}
    whole = {m.name: layout_name(m) for m in messages}
    often = list(wanted.values())
    out: dict[Key, str] = {}
    used = set(layouts)
    for key, name in wanted.items():
        if often.count(name) > 1 or name in layouts or name in SCALARS or len(name) > LONGEST:
            name = name if name.startswith(f"{whole[key[0]]}_") else _in_front(whole[key[0]], name)
        bare, n = name, 1
        while name in used or keyword.iskeyword(name):
            n += 1
            name = f"{bare}_{n}"
        used.add(name)
        out[key] = name
    return out


def _in_front(message: str, name: str) -> str:
    """Return ``message_name``, without the first words of ``message`` as long as it is longer than
    ``LONGEST``; its last word always stays.
    """
    words = message.split("_")
    while len(words) > 1 and len("_".join(words)) + 1 + len(name) > LONGEST:
        del words[0]
    return "_".join([*words, name])


def _find_unplaceable_structs(
    messages: Sequence[Message], names: Mapping[Key, str], taken: Collection[str]
) -> set[Key]:
    """Return the (message, struct) keys of inline structs without a name that cannot be written
    inline, because the name made of their path is in ``taken``, that of an earlier inline struct,
    or longer than ``LONGEST``. Raise KeyError if ``names`` lacks a common struct.
    """
    seen = set(taken)
    out: set[Key] = set()

    def find_conflicts(message: Message, fields: Sequence[Field], way: str) -> None:
        """Collect the structs of fields that cannot be written in place; ``way`` is the name of the layout around
        them.
        """
        called = field_names(fields)
        for one in fields:
            if one.fields is None:
                continue
            key = (message.name, one.type.name)
            place = names.get(key) or f"{way}_{called[one.name]}"
            if key not in names:
                if place in seen or len(place) > LONGEST:
                    out.add(key)
                seen.add(place)
            find_conflicts(message, one.fields, place)

    for message in messages:
        find_conflicts(message, message.fields, layout_name(message))
        for struct in message.structs:
            find_conflicts(message, struct.fields, names[message.name, struct.name])
    return out
