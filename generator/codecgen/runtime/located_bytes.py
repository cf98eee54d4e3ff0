"""Bytes that know where they came from: what parsers read from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from codecgen.runtime.errors import (
    BuildError,
    CodecError,
    LengthError,
    LimitError,
    ParseError,
    TruncatedError,
    Where,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a parser may be made to do by its input.

    ``decompressed`` is the most bytes that one compressed section may hold (None: what the schema says),
    ``depth`` how deep layouts may lie in each other, ``elements`` how many elements one array may have (each
    takes about 2 KiB of memory as Python objects), ``findings`` how many oddities are noted in one parse. ``text`` is the
    most bytes that a text may have, ``line`` the most of one line of it, and it has no more lines than ``elements``.
    """

    decompressed: int | None = None
    depth: int = 32
    elements: int = 2_000_000
    findings: int = 100_000
    text: int = 16 << 20
    line: int = 1 << 16


@dataclass(slots=True)
class Session:
    """One parse or build: how strict, how much, and what was noticed.

    A strict parser refuses everything that the layout does not allow. A lenient one takes the freedoms that
    the schema lists, and wrong checksums, and notes them in ``findings``. It looks at the rules of layouts only with ``rules``, and
    notes those that are broken. With ``any_version`` it also takes a version that
    is not that of the layout, with ``torn`` what is there of a section of elements that is longer than what is around it.
    ``trace`` gathers (path, first byte, byte after the last, in the decompressed stream?) of every field. With it,
    ``begun`` gathers layouts and arrays by their paths as they are begun: what is there of them when an error ends the
    parse. ``section`` are the bytes of the first section that may be compressed, as it is and without compression.
    """

    strict: bool = True
    limits: Limits = field(default_factory=Limits)
    file: str | None = None
    findings: list[ParseError] = field(default_factory=list)
    trace: list[tuple[str, int, int, bool]] | None = None
    begun: dict[str, Any] | None = None
    prefix: list[str] = field(default_factory=list)
    depth: int = 0
    nesting: int = 0
    level: int | None = None
    section: tuple[int, int] | None = None
    any_version: bool = False
    rules: bool = False
    torn: bool = False

    def deeper(self) -> None:
        """Count a layout inside a layout that is built."""
        self.depth += 1
        if self.depth > self.limits.depth:
            self.depth -= 1
            raise BuildError(f"layouts lie more than {self.limits.depth} deep")

    @property
    def path(self) -> str:
        """The path of the field that is parsed, while ``trace`` is gathered."""
        return ".".join(self.prefix).replace(".[", "[")

    def tolerate(self, error: ParseError) -> None:
        """Raise the error when the session is strict, note it otherwise."""
        if self.strict:
            raise error
        if len(self.findings) >= self.limits.findings:
            raise LimitError(
                f"more than {self.limits.findings} oddities: {error.reason}", error.where
            )
        self.findings.append(error)


class Source:
    """A window of bytes, and where it lies in the file.

    ``origin`` is the position in the file of the window's data, or, when ``inner`` is set, of the compressed
    section that the data was in; ``pending`` is the error to raise where the data ends early; ``pauses`` are the places
    at which the data may have ended.
    """

    __slots__ = ("data", "end", "inner", "origin", "pauses", "pending", "pos", "session")

    def __init__(
        self,
        data: bytes | memoryview,
        session: Session,
        *,
        pos: int = 0,
        end: int | None = None,
        origin: int = 0,
        inner: bool = False,
        pending: CodecError | None = None,
        pauses: frozenset[int] = frozenset(),
    ) -> None:
        self.data = data
        self.session = session
        self.pos = pos
        self.end = len(data) if end is None else end
        self.origin = origin
        self.inner = inner
        self.pending = pending
        self.pauses = pauses

    @property
    def left(self) -> int:
        """Bytes that are left in the window."""
        return self.end - self.pos

    def where(self, pos: int | None = None) -> Where:
        """The place of a byte of this window (the next one, unless told)."""
        at = self.pos if pos is None else pos
        file = self.session.file
        if self.inner:
            return Where(position=self.origin, stream_position=at, file=file)
        return Where(position=self.origin + at, file=file)

    def take(self, n: int) -> bytes:
        """The next ``n`` bytes."""
        pos = self.pos
        if n > self.end - pos:
            raise self.short(n)
        self.pos = pos + n
        return bytes(self.data[pos : pos + n])

    def short(self, n: int) -> CodecError:
        """The error for ``n`` bytes that are not there."""
        if self.pending is not None:
            return self.pending
        return TruncatedError(f"{n} bytes are needed, {self.left} are left", self.where())

    def lacking(self, reason: str, pos: int) -> CodecError:
        """The error that what a number at ``pos`` promises is not there. Where the data ends early, that is why."""
        return LengthError(reason, self.where(pos)) if self.pending is None else self.pending

    def window(self, n: int, what: str) -> Source:
        """A window of the next ``n`` bytes; this one goes on after it."""
        if n < 0:
            raise LengthError(f"{what} is {n}: a length cannot be negative", self.where())
        if n > self.left:
            raise self.lacking(f"{what} is {n}, but {self.left} bytes are left", self.pos)
        inside = Source(
            self.data,
            self.session,
            pos=self.pos,
            end=self.pos + n,
            origin=self.origin,
            inner=self.inner,
        )
        self.pos += n
        return inside

    def deeper(self) -> None:
        """Count a layout inside a layout."""
        self.session.depth += 1
        if self.session.depth > self.session.limits.depth:
            raise LimitError(
                f"layouts lie more than {self.session.limits.depth} deep", self.where()
            )

    # What construct's own classes ask of a stream, so that they can stand inside our layouts.
    def read(self, n: int = -1) -> bytes:
        n = self.left if n < 0 else min(n, self.left)
        return self.take(n)

    def tell(self) -> int:
        return self.pos

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self.pos, self.end)[whence]
        self.pos = max(0, min(base + offset, self.end))
        return self.pos


Condition = Callable[[Any], Any]
"""A function of the fields that were parsed so far."""
