"""Bytes with their place in a file, and the state of a parse: the input of all codecs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from codecgen.runtime.nouns import count_noun


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what a parser does for its input.

    Attributes:
        decompressed: Maximum bytes of the decompressed sections of one layout, together. None: the limits of the schema.
        depth: Maximum depth of layouts inside layouts.
        elements: Maximum number of elements of an array, and of lines of a text. An element takes about 2 KiB of
            memory as Python objects.
        findings: Maximum number of findings of one parse.
        text: Maximum bytes of a text file.
        line: Maximum bytes of one line of a text file.
    """

    decompressed: int | None = None
    depth: int = 32
    elements: int = 2_000_000
    findings: int = 100_000
    text: int = 16 << 20
    line: int = 1 << 16


DEFAULT_LIMITS = Limits()
"""The limits of a parse for which the caller sets none."""


@dataclass(slots=True)
class Session:
    """State of one parse or build: its options, and what it found.

    A strict parser refuses everything that the layout does not allow. A lenient one takes the tolerances that the
    schema lists, and wrong checksums, and notes each in ``findings``.

    Attributes:
        strict: Refuse what the layout does not allow.
        findings: Errors that a lenient parser passed over.
        trace: Collects (path, first byte, end, in the decompressed stream?) of every field, if it is a list.
        begun: Collects layouts and arrays by path when their parse begins, so that they can be had after an error.
            Needs ``trace``.
        level: Compression level of a build.
        section: Bytes of the sections that may be compressed of the first layout with any: as stored, and decompressed.
        decompressed: Bytes that were decompressed so far of the layout that is being parsed.
        any_version: Take a version field that is not the version of the layout.
        rules: Let a lenient parser check the rules of layouts, and note those that are broken.
        torn: Take what is there of a section of elements that is longer than the bytes around it.
        given: The values that the layout which is parsed is given, by name.
    """

    strict: bool = True
    limits: Limits = DEFAULT_LIMITS
    file: str | None = None
    findings: list[ParseError] = field(default_factory=list)
    trace: list[tuple[str, int, int, bool]] | None = None
    begun: dict[str, Any] | None = None
    prefix: list[str] = field(default_factory=list)
    depth: int = 0
    nesting: int = 0
    level: int | None = None
    section: tuple[int, int] | None = None
    section_depth: int = 0
    decompressed: int = 0
    any_version: bool = False
    rules: bool = False
    torn: bool = False
    given: Mapping[str, Any] | None = None

    def enter(self) -> None:
        """Increase the depth for a layout that is built inside another one. Raise BuildError, with
        the depth unchanged, beyond the session's maximum depth. The caller decreases the depth
        again.
        """
        self.depth += 1
        if self.depth > self.limits.depth:
            self.depth -= 1
            raise BuildError(
                f"layouts are nested more than {self.limits.depth} deep, the limit (Limits.depth)"
            )

    def count_section(self, stored: int, plain: int) -> None:
        """Add the bytes of a section, as stored and decompressed, to ``section``. Do nothing unless
        the section lies exactly as deep in layouts and arrays as the first one.
        """
        if self.section is None:
            self.section, self.section_depth = (stored, plain), self.depth
        elif self.depth == self.section_depth:
            self.section = self.section[0] + stored, self.section[1] + plain

    @property
    def path(self) -> str:
        """Return the path of the field that is being parsed; complete only while ``trace`` is collected."""
        return ".".join(self.prefix).replace(".[", "[")

    def tolerate(self, error: ParseError) -> None:
        """Raise ``error`` if the session is strict; else add it to ``findings``. Raise LimitError
        if a lenient session has its maximum number of findings already.
        """
        if self.strict:
            raise error
        if len(self.findings) >= self.limits.findings:
            raise LimitError(
                f"more than {count_noun(self.limits.findings, 'finding')} in one parse, the limit (Limits.findings): {error.reason}",
                error.where,
            )
        self.findings.append(error)


class Source:
    """A window of bytes with a read position, and its place in the file.

    Attributes:
        origin: Position in the file of the first byte of ``data``, or, if ``inner``, of the compressed section that
            held the data.
        inner: The data is a decompressed stream.
        pos: The next byte to read.
        end: The end of the window (excluded).
        pending: Error to raise where the data ends early, such as the error of a decompression.
        pauses: Positions at which the data may have ended.
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
        """Return the number of bytes between the read position and the end of the window."""
        return self.end - self.pos

    def where(self, pos: int | None = None) -> Where:
        """Return the place of the byte at index ``pos`` of the data, by default of the next one:
        its position in the file or, for decompressed data, the position of the compressed section
        and the index as ``stream_position``.
        """
        at = self.pos if pos is None else pos
        file = self.session.file
        if self.inner:
            return Where(position=self.origin, stream_position=at, file=file)
        return Where(position=self.origin + at, file=file)

    def take(self, n: int) -> bytes:
        """Return the next ``n`` bytes, and move behind them. Raise TruncatedError, or the pending
        error (such as that of a decompression), if fewer are left in the window; the position then
        stays. Callers check that ``n`` is not negative.
        """
        pos = self.pos
        if n > self.end - pos:
            raise self.truncated_error(n)
        self.pos = pos + n
        return bytes(self.data[pos : pos + n])

    def truncated_error(self, n: int) -> CodecError:
        """Return the error for ``n`` bytes of which some are missing: the pending error, or a TruncatedError."""
        if self.pending is not None:
            return self.pending
        return TruncatedError(
            f"{count_noun(n, 'byte is', 'bytes are')} needed, {count_noun(self.left, 'is', 'are')} left",
            self.where(),
        )

    def missing_bytes_error(self, reason: str, pos: int) -> CodecError:
        """Return the error for a length or count at ``pos`` that promises more than is left: the pending error, or a
        LengthError.
        """
        return LengthError(reason, self.where(pos)) if self.pending is None else self.pending

    def window(self, n: int, what: str) -> Source:
        """Return a Source of the next ``n`` bytes, and move behind them. Raise LengthError if ``n``
        is negative or larger than the bytes that are left; in the latter case the pending error, if
        there is one. The new Source has no pending error. ``what`` names the length in errors.
        """
        if n < 0:
            raise LengthError(f"{what} is {n}: a length cannot be negative", self.where())
        if n > self.left:
            raise self.missing_bytes_error(
                f"{what} is {n}, but {count_noun(self.left, 'byte is', 'bytes are')} left", self.pos
            )
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

    def enter(self) -> None:
        """Increase the session's depth for a layout that is parsed inside another one. Raise
        LimitError, with the depth unchanged, beyond its maximum depth. The caller decreases the
        depth again.
        """
        self.session.depth += 1
        if self.session.depth > self.session.limits.depth:
            self.session.depth -= 1
            raise LimitError(
                f"layouts are nested more than {self.session.limits.depth} deep, the limit (Limits.depth)",
                self.where(),
            )

    # What construct's own classes ask of a stream, so that they can stand inside our layouts.
    def read(self, n: int = -1) -> bytes:
        """Return the next ``n`` bytes, or fewer at the end of the window, and move behind them; all
        that are left if ``n`` is negative. It makes the Source a stream for Construct's own
        classes.
        """
        n = self.left if n < 0 else min(n, self.left)
        return self.take(n)

    def tell(self) -> int:
        """Return the read position."""
        return self.pos

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move the read position, as a stream does, and return it. Offset 0 is the first byte of
        the data, not of the window. Positions before it become 0, those beyond the window its end.
        """
        base = (0, self.pos, self.end)[whence]
        self.pos = max(0, min(base + offset, self.end))
        return self.pos


Condition = Callable[[Any], Any]
"""A function of the fields that were parsed so far."""
