"""What keys and values say, where somebody knows how they are written."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codecgen.runtime.errors import CodecError
from codecgen.runtime.sensitive import REDACTED
from kafka_log.read.internal_topics import INTERNAL_TOPICS, InternalTopic, internal_topic
from kafka_log.segment.control import read_control
from kafka_log.text.json_values import convert_bytes, format_json

AUTO, NONE = "auto", "none"
_LENGTHS = (1, 2, 4, 8)

Render = Callable[[bytes], str]
"""Bytes of which nobody knows more, as they are shown."""


def _utf8(data: bytes) -> Any:
    return data.decode("utf-8")


def _json(data: bytes) -> Any:
    found = json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse)
    json.dumps(found, allow_nan=False)  # 1e999 is no number that JSON has
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _int(data: bytes) -> Any:
    if len(data) not in _LENGTHS:
        raise ValueError(f"{len(data)} bytes are no integer")
    return int.from_bytes(data, "big", signed=True)


def _confluent(data: bytes) -> Any:
    from kafka_codecs import CONFLUENT_VALUE

    fields = CONFLUENT_VALUE.parse(data)
    payload = convert_bytes(fields.data)
    if fields.magic == 0:
        return {"schema_id": fields.schema_id, "payload": payload}
    return {"schema_guid": str(fields.schema_guid), "payload": payload}


FORMATS: Mapping[str, Callable[[bytes], Any]] = {
    "utf8": _utf8,
    "json": _json,
    "int": _int,
    "hex": bytes.hex,
    "base64": lambda data: b64encode(data).decode("ascii"),
    "confluent": _confluent,
}
"""Each makes a JSON value of bytes, or raises ValueError or CodecError."""


@dataclass(frozen=True, slots=True)
class Decode:
    """How keys and values are read: names of :data:`FORMATS`, a topic of Kafka's own for both, ``auto`` (by the name of the
    topic) or ``none``."""

    key: str = AUTO
    value: str = AUTO

    @staticmethod
    def of(text: str) -> Decode:
        """``key=utf8,value=json``, or one name for both. Raises ValueError."""
        parts = dict.fromkeys(("key", "value"), NONE if "=" in text else text)
        for part in text.split(",") if "=" in text else ():
            name, _, what = part.partition("=")
            if name not in parts or "=" in what:
                raise ValueError(f"{part!r} is not key=FORMAT or value=FORMAT")
            parts[name] = what
        for what in parts.values():
            own = what in INTERNAL_TOPICS and "=" not in text
            if not (own or what in FORMATS or what in (AUTO, NONE)):
                known = ", ".join([*FORMATS, AUTO, NONE, *INTERNAL_TOPICS])
                raise ValueError(f"{what!r} is no format; known: {known}")
        return Decode(**parts)

    def topic(self, named: str) -> InternalTopic | None:
        """How records of a topic are read as a whole."""
        if self.key != self.value:
            return None
        return internal_topic(named if self.key == AUTO else self.key)


@dataclass
class Decoder:
    """Reads the keys and values of rows. ``failed`` counts what could not be read, by what it is; with the first reason."""

    decode: Decode
    render: Render
    one_line: Callable[[Any], str] = format_json
    show_secrets: bool = False
    failed: dict[str, tuple[int, str]] = field(default_factory=dict)

    def changes(self, topic: str, name: str) -> bool:
        """Whether a column of records of a topic is read."""
        what = self.decode.key if name == "key" else self.decode.value
        return what in FORMATS or self.decode.topic(topic) is not None

    def columns(
        self, topic: str, file: str, keys: Any, values: Any, controls: Any, positions: Any
    ) -> tuple[list[str | None], list[str | None]]:
        """Keys and values of rows as texts. ``controls`` says which are control records; ``positions`` are those of batches."""
        own = self.decode.topic(topic)
        found: tuple[list[str | None], list[str | None]] = ([], [])
        rows = zip(keys.to_pylist(), values.to_pylist(), controls, positions, strict=True)
        for key, value, control, position in rows:
            if control and self.decode.key != NONE:
                said = self._control(key, value, file, position)
            elif own is not None:
                said = self._own(own, key, value, file, position)
            else:
                said = self._one("key", key), self._one("value", value)
            found[0].append(said[0])
            found[1].append(said[1])
        return found

    def _one(self, name: str, data: bytes | None) -> str | None:
        if data is None:
            return None
        what = self.decode.key if name == "key" else self.decode.value
        read = FORMATS.get(what)
        if read is None:
            return self.render(data)
        try:
            return self.one_line(read(data))
        except (ValueError, CodecError, RecursionError) as error:
            self._fail(f"{name}s are no {what}", str(error))
            return self.render(data)

    def _own(
        self, own: InternalTopic, key: bytes | None, value: bytes | None, file: str, position: int
    ) -> tuple[str | None, str | None]:
        said = own.decode(key, value, file=file, position=position, show_secrets=self.show_secrets)
        shown: Any = said.value
        how = "shown as they are"
        if shown is None and value is not None and own.has_secrets and not self.show_secrets:
            shown = REDACTED  # nobody knows which of its bytes are secrets
            how = "hidden, as they may hold secrets (--show-secrets shows them)"
        if said.error is not None:
            self._fail(f"records are none of {own.name} that is known", str(said.error), how)
        return self._said(said.key, key), self._said(shown, value)

    def _control(
        self, key: bytes | None, value: bytes | None, file: str, position: int
    ) -> tuple[str | None, str | None]:
        said = read_control(key, value, strict=False, file=file, position=position)
        if said.error is not None:
            self._fail("control records cannot be read", str(said.error))
        named = None if said.type is None else {"control": said.type}
        return self._said(named, key), self._said(said.value, value)

    def _said(self, said: Any, data: bytes | None) -> str | None:
        if said is not None:
            return self.one_line(said)
        return None if data is None else self.render(data)

    def _fail(self, what: str, reason: str, how: str = "shown as they are") -> None:
        what = f"{what}, and {how}"
        count, first = self.failed.get(what, (0, reason))
        self.failed[what] = count + 1, first

    def notes(self) -> list[str]:
        """Lines about what could not be read, and is shown as bytes are."""
        return [
            f"{count:,} {what}; the first: {first}" for what, (count, first) in self.failed.items()
        ]
