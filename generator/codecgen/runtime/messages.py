"""Requests and responses of a protocol, by the key and the version of the message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from codecgen.runtime.declared import Declared
from codecgen.runtime.errors import CodecError, ParseError, ValueRefused, prefix_path
from codecgen.runtime.layout import Layout
from codecgen.runtime.located_bytes import Limits, Session, Source


@dataclass(frozen=True, slots=True)
class Header:
    """A layout in front of a message, in the versions of the message from ``low`` to ``high``, both included.

    ``layout`` is the name of the layout in ``module``: ``REQUEST_HEADER_V1``.
    """

    low: int
    high: int
    module: str
    layout: str

    def load(self) -> Layout:
        """Import the module, and return the layout."""
        found: Layout = getattr(import_module(self.module), self.layout)
        return found


@dataclass(frozen=True, slots=True)
class MessageVersions:
    """All versions of a request, or of a response.

    Attributes:
        module: The module that declares the layout.
        layout: The name of the layout with all versions: ``HELLO_REQUEST``.
        versions: The versions, ascending.
        headers: The layouts in front of the message.
        unstable: The first and the last version that may still change.
        facts: What the format says about the message and not about its bytes.
    """

    module: str
    layout: str
    versions: range
    headers: Sequence[Header] = ()
    unstable: range = range(0)
    facts: Mapping[str, Sequence[str]] | None = None

    def load(self, version: int) -> Layout | None:
        """Import the module, and return the layout of a version. Return None if the message does
        not have the version.
        """
        if version not in self.versions:
            return None
        found: Layout = getattr(import_module(self.module), self.layout)[version]
        return found

    def load_header(self, version: int) -> Layout | None:
        """Import the header of a version, and return it; the first one if several cover the
        version. Return None if none does, or the message does not have the version.
        """
        if version not in self.versions:
            return None
        return next((h.load() for h in self.headers if h.low <= version <= h.high), None)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its response, in one version. A layout that the schemas do not have is None.

    Attributes:
        is_unstable: Whether the request, or the response if there is no request, may still change in this version.
    """

    key: int
    version: int
    request: Layout | None
    request_header: Layout | None
    response: Layout | None
    response_header: Layout | None
    is_unstable: bool


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A request or a response with the header in front of it; ``header`` is None if the message has none."""

    key: int
    version: int
    header: Any
    body: Any


class UnknownMessage(ValueRefused, KeyError):
    """Raised for a key that no message has, and for a version that the message with the key does not have.

    Attributes:
        key: The key.
        version: The version; None if nothing says which it is.
        known: The versions of the message, ascending; ``()`` if no message has the key.
    """

    def __init__(self, reason: str, key: int, version: int | None, known: Iterable[int]) -> None:
        super().__init__(reason)
        self.key = key
        self.version = version
        self.known = tuple(known)


class MessageTable(Declared, Mapping[tuple[int, int], Exchange]):
    """The requests and responses of a protocol: a mapping from (key, version) to :class:`Exchange`.

    It imports the modules of a message on first use.
    """

    def __init__(
        self,
        *,
        requests: Mapping[int, MessageVersions],
        responses: Mapping[int, MessageVersions],
        key_field: str | None = None,
        version_field: str | None = None,
    ) -> None:
        super().__init__()
        self._requests = requests
        self._responses = responses
        self._key_field = key_field
        self._version_field = version_field
        self._exchanges: dict[tuple[int, int], Exchange] = {}

    def __getitem__(self, item: tuple[int, int]) -> Exchange:
        """Return the request and the response with a key, in a version.

        Raises:
            UnknownMessage: if no message has the key, or the message does not have the version.
        """
        key, version = item
        found = self._exchanges.get((key, version))
        if found is None:
            known = self.versions(key, version)
            if version not in known:
                names = ", ".join(side.layout.lower() for side in self._sides(key))
                reason = f"key {key} ({names}) has no version {version}; its versions: {_list_numbers(known)}"
                raise UnknownMessage(reason, key, version, known)
            found = self._exchanges[key, version] = self._load(key, version)
        return found

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Iterate over (key, version), ascending."""
        for key in self.message_keys:
            for version in self.versions(key):
                yield key, version

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<MessageTable of keys {_list_numbers(self.message_keys)}>"

    @property
    def message_keys(self) -> tuple[int, ...]:
        """Return the keys of all messages, ascending."""
        return tuple(sorted({*self._requests, *self._responses}))

    def versions(self, key: int, version: int | None = None) -> tuple[int, ...]:
        """Return the versions that the request or the response with a key has, ascending.
        ``version`` is only mentioned in errors. Raise UnknownMessage if no message has the key.
        """
        sides = self._sides(key)
        if not sides:
            wanted = "" if version is None else f" (version {version})"
            known = _list_numbers(self.message_keys)
            reason = f"no message has the key {key}{wanted}; the known keys: {known}"
            raise UnknownMessage(reason, key, version, ())
        return tuple(sorted({v for side in sides for v in side.versions}))

    def facts(self, key: int) -> Mapping[str, Sequence[str]]:
        """Return the facts of the request with a key, or of the response if there is no request; an
        empty mapping if none are stated. Raise UnknownMessage if no message has the key.
        """
        self.versions(key)
        return self._sides(key)[0].facts or {}

    def find(self, layout: Layout) -> Exchange:
        """Return the exchange (request and response, with headers) that a layout of one version is
        part of. Raise KeyError if the layout is not a message of this table, such as a header or one
        without a version.
        """
        name = layout.layout_name.upper()
        for sides in (self._requests, self._responses):
            for key, side in sides.items():
                version = layout.version
                if side.layout == name and version is not None and side.load(version) is layout:
                    return self[key, version]
        raise KeyError(
            f"{layout.full_name} is not a message of this table: pass a request or response layout"
        )

    def parse_request(
        self,
        data: Any,
        *,
        strict: bool = True,
        limits: Limits | None = None,
        findings: list[ParseError] | None = None,
    ) -> ParsedMessage:
        """Parse a request behind its header, which says the key and the version. Raise
        UnknownMessage if no request has that key or version; ParseError if the bytes are not a
        header and a request, or end too early; TypeError if the table does not say where headers
        have the key.

        Args:
            data: The bytes of the header and the request.
            strict: Refuse everything that the schema does not allow.
            limits: Limits on memory, depth and counts.
            findings: Receives what a lenient parse tolerated.

        Raises:
            UnknownMessage: if no request has the key, or the request does not have the version.
            ParseError: if the bytes are not the header and the request.
        """
        key = self._peek(data, self._key_field)
        version = self._peek(data, self._version_field)
        exchange = self[key, version]
        layout = _existing(exchange.request, "request", exchange)
        return _parse(layout, exchange.request_header, exchange, data, strict, limits, findings)

    def parse_response(
        self,
        key: int,
        version: int,
        data: Any,
        *,
        strict: bool = True,
        limits: Limits | None = None,
        findings: list[ParseError] | None = None,
    ) -> ParsedMessage:
        """Parse the response to a request of a key and a version, behind its header, if it has one.
        Raise UnknownMessage if no response has that key or version; ParseError if the bytes are not
        the header and the response.

        Args:
            key: The key of the request.
            version: The version of the request.
            data: The bytes of the header and the response.
            strict: Refuse everything that the schema does not allow.
            limits: Limits on memory, depth and counts.
            findings: Receives what a lenient parse tolerated.

        Raises:
            UnknownMessage: if no response has the key, or the response does not have the version.
            ParseError: if the bytes are not the header and the response.
        """
        exchange = self[key, version]
        layout = _existing(exchange.response, "response", exchange)
        return _parse(layout, exchange.response_header, exchange, data, strict, limits, findings)

    def _sides(self, key: int) -> tuple[MessageVersions, ...]:
        """Return the request and the response with a key, those that exist."""
        found = (self._requests.get(key), self._responses.get(key))
        return tuple(side for side in found if side is not None)

    def _load(self, key: int, version: int) -> Exchange:
        """Import the layouts of a key and a version, and return them as a new Exchange; the caller
        keeps it. A request, response or header that does not have the version is None, which can be
        all of them. Raise IndexError for an unknown key.
        """
        request, response = self._requests.get(key), self._responses.get(key)
        first = self._sides(key)[0]
        return Exchange(
            key=key,
            version=version,
            request=None if request is None else request.load(version),
            request_header=None if request is None else request.load_header(version),
            response=None if response is None else response.load(version),
            response_header=None if response is None else response.load_header(version),
            is_unstable=version in first.unstable,
        )

    def _peek(self, data: Any, name: str | None) -> int:
        """Return the number in the field ``name``, which all headers of requests have at the same
        offset. Raise TypeError if ``name`` is None or no request has a header; CodecError if
        ``data`` ends before the field.
        """
        headers = [h for side in self._requests.values() for h in side.headers]
        if name is None or not headers:
            raise TypeError(
                "no request header of this table has the key and the version of the message"
            )
        header = headers[0].load()
        offset = header.offset_of(name)
        source = Source(data, Session(), pos=min(offset, len(data)))
        try:
            return int(header.codec_of(name).read(source, None))
        except CodecError as error:
            raise prefix_path(error, name).located(schema=header.source_file) from None


def _existing(layout: Layout | None, role: str, exchange: Exchange) -> Layout:
    """Return ``layout`` itself. Raise UnknownMessage if it is None: the schemas have no request or
    response (``role``) in this version.
    """
    if layout is None:
        key, version = exchange.key, exchange.version
        raise UnknownMessage(f"key {key} has no {role} of version {version}", key, version, ())
    return layout


def _parse(
    layout: Layout,
    header: Layout | None,
    exchange: Exchange,
    data: Any,
    strict: bool,
    limits: Limits | None,
    findings: list[ParseError] | None,
) -> ParsedMessage:
    """Return the header (None if ``header`` is) and the message that all of ``data`` encodes. Raise
    ParseError if one does not parse, or bytes follow the message (a finding of a lenient parse if
    the layout has ``trailing``). Errors in the message have positions in ``data``.
    """
    end, front = 0, None
    if header is not None:
        session = Session(strict=strict, limits=limits or Limits())
        if findings is not None:
            session.findings = findings
        source = Source(data, session)
        front = header.read(source, None)
        end = source.pos
    body = layout.parse(data[end:], position=end, strict=strict, limits=limits, findings=findings)
    return ParsedMessage(exchange.key, exchange.version, front, body)


def _list_numbers(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, two or more consecutive ones as a range: ``0-4, 7``. Return
    ``""`` for none.
    """
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


__all__ = [
    "Exchange",
    "Header",
    "MessageTable",
    "MessageVersions",
    "ParsedMessage",
    "UnknownMessage",
]
