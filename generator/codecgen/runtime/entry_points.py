"""What bytes are given to as a whole: layouts, choices and texts. Their type says what they parse to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from codecgen.runtime.declared import Declared
from codecgen.runtime.errors import ParseError
from codecgen.runtime.located_bytes import Limits, Session

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
    """Parses bytes that are one whole ``P``: for type checkers the class of the fields, or a union of such classes. ``L`` is
    what lenient parses give. Of layouts that is Any: a number that an enum has no name for stays a number there."""

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
    ) -> Any:
        """Parse bytes that are one whole layout, or text.

        ``position`` is where they lie in ``file``; both are for errors. A lenient parse (``strict=False``)
        takes what the schema's freedoms allow, and puts what it noticed into ``findings``.
        Raises :class:`~codecgen.runtime.errors.ParseError`.
        """
        session = Session(strict=strict, limits=limits or Limits(), file=file, trace=trace)
        if findings is not None:
            session.findings = findings
        return self.parse_whole(data, position, session)

    def parse_whole(self, data: Any, position: int, session: Session) -> Any:
        """What the bytes are, in a session. ``position`` is where they lie."""
        raise NotImplementedError


__all__ = ["EntryPoint"]
