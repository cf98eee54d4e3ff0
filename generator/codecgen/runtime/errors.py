"""Errors that codecs raise: what is wrong and where, as fields and as one line of text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import construct

if TYPE_CHECKING:
    _ConstructError = Exception
else:
    _ConstructError = construct.ConstructError


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the input. Each part may be unknown (None).

    Attributes:
        path: The field, with indices: ``records[17].headers[2].key``.
        position: A byte of the file, or of the bytes that were passed in. Inside a compressed section it is the
            first byte of that section.
        stream_position: A byte of the decompressed stream.
        file: The name of the file.
        schema: The line of YAML that describes the field: ``records/record.yaml:12``.
        line: The line of a text file; the first one is 1.
    """

    path: str | None = None
    position: int | None = None
    stream_position: int | None = None
    file: str | None = None
    schema: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        parts = []
        if self.path:
            parts.append(self.path)
        if self.position is not None:
            at = f"byte {self.position}"
            if self.line is not None:
                at = f"line {self.line}, {at}"
            if self.file:
                at += f" of {self.file}"
            parts.append(at)
        elif self.file:
            parts.append(self.file)
        if self.stream_position is not None:
            parts.append(f"byte {self.stream_position} of the decompressed stream")
        if self.schema:
            parts.append(self.schema)
        return ", ".join(parts)


class CodecError(_ConstructError):
    """Base of all errors that codecs raise; a ``construct.ConstructError``.

    Attributes:
        reason: What is wrong.
        where: The place of the error.
    """

    def __init__(self, reason: str, where: Where | None = None) -> None:
        Exception.__init__(self, reason, where or Where())

    @property
    def reason(self) -> str:
        """Return what is wrong."""
        return str(self.args[0])

    @reason.setter
    def reason(self, reason: str) -> None:
        self.args = (reason, self.where)

    @property
    def where(self) -> Where:
        """Return the place of the error."""
        where: Where = self.args[1]
        return where

    @where.setter
    def where(self, where: Where) -> None:
        self.args = (self.reason, where)

    @property
    def path(self) -> str | None:
        """Return the path of the field, as errors of Construct have it, or None if it is unknown."""
        return self.where.path

    def located(self, **known: str | int | None) -> Self:
        """Fill in the parts of the place that are still unknown, and return the error itself."""
        new = {name: value for name, value in known.items() if getattr(self.where, name) is None}
        self.where = replace(self.where, **new)  # type: ignore[arg-type]
        return self

    def without_frames(self) -> Self:
        """Drop the traceback and the context, so that a stored error holds no memory, and return the error itself."""
        self.__traceback__ = self.__context__ = None
        return self

    def __str__(self) -> str:
        where = str(self.where)
        return f"{self.reason} ({where})" if where else self.reason


class ParseError(CodecError):
    """Raised when the bytes do not follow the layout."""


class TruncatedError(ParseError):
    """Raised when the bytes end before the value does."""


class LengthError(ParseError):
    """Raised when a length or a count is impossible, or larger than the remaining bytes allow."""


class ChecksumError(ParseError):
    """Raised when the stored checksum differs from the computed one."""


class ValueRefused(ParseError):
    """Raised when the bytes hold a value that the layout does not allow."""


class RuleBroken(ValueRefused):
    """Raised when the fields of a layout together break one of its rules."""


class TrailingError(ParseError):
    """Raised when bytes follow the end of a layout."""


class CompressionError(ParseError):
    """Raised when a compressed section does not decompress."""


class LimitError(ParseError):
    """Raised when the input exceeds a limit on memory, depth or count."""


class UnsupportedCodec(CompressionError):
    """Raised when the library for a compression codec is missing, or the layout does not allow the codec."""


class BuildError(CodecError):
    """Raised when values cannot be written in a layout."""


def describe_value(value: Any) -> str:
    """Return a value for a message: bytes as ``hex`` with at most 16 bytes, a str quoted with at
    most 32 characters (``...`` follows if either is cut), anything else as ``str(value)``.
    """
    if isinstance(value, bytes):
        return f"hex {value[:16].hex()}" + ("..." if len(value) > 16 else "")
    if isinstance(value, str):
        return repr(value[:32]) + ("..." if len(value) > 32 else "")
    return str(value)


E = TypeVar("E", bound=CodecError)


def prefix_path(error: E, name: str) -> E:
    """Put ``name`` before the path of an error, in place, and return the same error. A dot joins
    them, unless the path is empty or begins with ``[``.
    """
    path = error.where.path
    joined = name if not path else name + path if path.startswith("[") else f"{name}.{path}"
    error.where = replace(error.where, path=joined)
    return error
