"""Base of codecs for whole values: layouts, choices and text files. Their type parameter is what they parse to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from codecgen.runtime.declared import Declared
from codecgen.runtime.errors import ParseError
from codecgen.runtime.located_bytes import DEFAULT_LIMITS, Limits, Session

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # for the default; type checkers bring it with them

    P = TypeVar("P", covariant=True, default=Any)
    L = TypeVar("L", covariant=True, default=Any)
    B = TypeVar("B", contravariant=True, default=Mapping[str, Any])
else:
    from typing import TypeVar

    P, L, B = TypeVar("P"), TypeVar("L"), TypeVar("B")

Trace = list[tuple[str, int, int, bool]]


class EntryPoint(Declared, Generic[P, L]):
    """Parses bytes that are one whole value.

    For type checkers ``P`` is the class of a strict parse, or a union of classes, and ``L`` that of a lenient
    parse. Layouts have ``Any`` for ``L``, since a lenient parse keeps unknown numbers of enums as numbers.
    """

    @overload
    def parse(
        self,
        data: Any,
        *,
        file: str | None = None,
        position: int = 0,
        strict: Literal[True] = True,
        limits: Limits | None = None,
        findings: list[ParseError] | None = None,
        trace: Trace | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> P: ...
    @overload
    def parse(
        self,
        data: Any,
        *,
        file: str | None = None,
        position: int = 0,
        strict: bool,
        limits: Limits | None = None,
        findings: list[ParseError] | None = None,
        trace: Trace | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> L: ...
    def parse(
        self,
        data: Any,
        *,
        file: str | None = None,
        position: int = 0,
        strict: bool = True,
        limits: Limits | None = None,
        findings: list[ParseError] | None = None,
        trace: Trace | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the value that all of ``data`` encodes. Raise ParseError if it does not parse, or
        bytes follow it. With ``strict=False``, do not check rules that relate several fields, and
        tolerate unknown enum numbers, wrong checksums and what the schema lists as tolerated; each
        of these is added to ``findings``, if given. ``position`` and ``file`` only locate errors.

        Args:
            data: The bytes.
            file: Name of the file, for errors.
            position: Position of the bytes in the file, for errors.
            strict: Refuse everything that the schema does not allow. A lenient parse takes the tolerances of the
                schema.
            limits: Limits on memory, depth and counts.
            findings: Receives what a lenient parse tolerated.
            trace: Receives (path, first byte, end, in the decompressed stream?) of every field.
            given: The values that the layout gets from outside, by name. Only layouts that declare some take any.

        Raises:
            ParseError: if the bytes are not such a value.
        """
        noted = [] if findings is None else findings
        # Keyword arguments would take longer than the parse of a small value.
        session = Session(strict, limits or DEFAULT_LIMITS, file, noted, trace)
        session.given = given
        return self.parse_whole(data, position, session)

    def parse_whole(self, data: Any, position: int, session: Session) -> Any:
        """Return the value that all of ``data`` encodes, parsed in an existing session;
        ``position`` is where ``data`` begins in its file. Subclasses implement it.
        """
        raise NotImplementedError


__all__ = ["EntryPoint"]
