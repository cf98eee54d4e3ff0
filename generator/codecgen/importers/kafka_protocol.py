"""Requests, responses and headers of Kafka's protocol, as the key ``message`` of their layouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codecgen.importers.kafka_definitions import INTEGERS, Field, Message, Range
from codecgen.importers.kafka_names import field_names, layout_name
from codecgen.importers.yaml_text import Mapped, Value, Word, words

_HEADERS = {"request": "RequestHeader", "response": "ResponseHeader"}
"""The message in front of requests and responses."""

_HEADER_VERSIONS = {"request": (1, 2), "response": (0, 1)}
"""The version of the header in front of a version that is not flexible, and of one that is."""

_KEY_FIELD, _VERSION_FIELD = "RequestApiKey", "RequestApiVersion"
"""The fields of the header of requests that name the request."""


def _header_version(message: Message, version: int) -> int:
    """Return the version of the header in front of a request (2 in flexible versions, else 1) or a
    response (1 in flexible versions, else 0). ControlledShutdown requests of version 0 and all
    ApiVersions responses have header version 0. Raise KeyError for messages of another type.
    """
    if (message.type, message.api_key, version) == ("request", 7, 0):
        return 0  # ControlledShutdown
    if (message.type, message.api_key) == ("response", 18):
        return 0  # ApiVersions: clients read it before they know what the broker knows
    old, flexible = _HEADER_VERSIONS[message.type]
    return flexible if Range(version, version).is_within(message.flexible) else old


@dataclass(frozen=True, slots=True)
class Protocol:
    """What layouts are in the protocol.

    Attributes:
        headers: The headers of requests and responses, by the type of the message.
        messages: The names of the requests and responses that the table of messages has. Two directories may use
            one apiKey: only the first message of a type and an apiKey is in it.
    """

    headers: Mapping[str, Message] = field(default_factory=dict)
    messages: frozenset[str] = frozenset()

    @classmethod
    def from_messages(cls, messages: Iterable[Message]) -> Protocol:
        """Return the headers and the names of the requests and responses that have an apiKey. Of
        several with one type and apiKey the first counts. Headers are called RequestHeader and
        ResponseHeader; of several the last counts. A request header that does not begin with apiKey
        and version is left out.
        """
        headers: dict[str, Message] = {}
        found: dict[tuple[str, int], str] = {}
        for message in messages:
            for type_, name in _HEADERS.items():
                if message.type == "header" and message.name == name:
                    headers[type_] = message
            if message.type in _HEADERS and message.api_key is not None:
                found.setdefault((message.type, message.api_key), message.name)
        if "request" in headers and _find_key_and_version(headers["request"]) is None:
            del headers["request"]
        return cls(headers, frozenset(found.values()))

    def entry(self, message: Message) -> Mapped | None:
        """Return the value of the key ``message`` of a layout: role and apiKey, then, if known,
        headers by version, the unstable version and listeners. Return None for messages that are
        neither header, request nor response with an apiKey, and if an earlier message has the type
        and apiKey in the table of messages.
        """
        if message.type == "header":
            return _header_entry(message)
        if message.name not in self.messages:
            return None
        entries: dict[str, Value] = {
            "role": Word(message.type),
            "key": Word(str(message.api_key)),
        }
        header = self._header(message)
        if header is not None:
            entries["header"] = header
        if message.is_latest_unstable:
            entries["unstable"] = Word(str(message.valid.high))
        if message.listeners:
            facts: dict[str, Value] = {"listeners": words(message.listeners)}
            entries["facts"] = Mapped(facts, short=True)
        return Mapped(entries, short=True)

    def _header(self, message: Message) -> Value | None:
        """Return the header of a message, ``name@version``, by version range if it differs. Return
        None if the definitions lack the header or one of the header versions that the message
        needs. The message must have a valid version.
        """
        header = self.headers.get(message.type)
        if header is None:
            return None
        parts: list[tuple[Range, int]] = []
        for version in range(message.valid.low, message.valid.high + 1):
            number = _header_version(message, version)
            if not Range(number, number).is_within(header.valid):
                return None
            if parts and parts[-1][1] == number:
                parts[-1] = (Range(parts[-1][0].low, version), number)
            else:
                parts.append((Range(version, version), number))
        name = layout_name(header)
        if len(parts) == 1:
            return Word(f"{name}@{parts[0][1]}")
        by_version: dict[str, Value] = {
            str(part): Word(f"{name}@{number}") for part, number in parts[:-1]
        }
        last, number = parts[-1]
        by_version[f"{last.low}+"] = Word(f"{name}@{number}")
        return Mapped(by_version, short=True)


def _header_entry(message: Message) -> Mapped:
    """Return the value of the key ``message`` of a header: its role and, for a header that begins
    with apiKey and version of the request, the names of these fields.
    """
    entries: dict[str, Value] = {"role": Word("header")}
    fields = _find_key_and_version(message)
    if fields is not None:
        names = field_names(message.fields)
        entries["key_field"] = Word(names[fields[0].name])
        entries["version_field"] = Word(names[fields[1].name])
    return Mapped(entries, short=True)


def _find_key_and_version(header: Message) -> tuple[Field, Field] | None:
    """Return the first two fields of a header if their names are RequestApiKey and
    RequestApiVersion, and they are integers, untagged and in all versions; else None.
    """
    first = header.fields[:2]
    whole = all(f.type.name in INTEGERS and not f.type.is_array for f in first)
    there = all(header.valid.is_within(f.versions) and f.tag is None for f in first)
    if [f.name for f in first] != [_KEY_FIELD, _VERSION_FIELD] or not whole or not there:
        return None
    return first[0], first[1]
