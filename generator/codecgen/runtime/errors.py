"""The errors of generated codecs: what is wrong, and where, as fields and as one line of text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import construct

if TYPE_CHECKING:
    _ConstructError = Exception
else:
    _ConstructError = construct.ConstructError


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the input. Every part may be unknown.

    ``position`` is a byte of the file (or of the bytes that were handed in); inside a compressed section it is
    where the compressed section begins, and ``stream_position`` is the byte in the decompressed stream.
    ``path`` names the field with indices (``records[17].headers[2].key``), ``schema`` the line of YAML
    that describes it (``records/record.yaml:12``). ``line`` is the line of a text, the first one is 1.
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
    """Base of all errors that codecs raise: a ``construct.ConstructError``. ``reason`` says what is wrong, ``where`` says where."""

    def __init__(self, reason: str, where: Where | None = None) -> None:
        Exception.__init__(self, reason, where or Where())

    @property
    def reason(self) -> str:
        """What is wrong."""
        return str(self.args[0])

    @reason.setter
    def reason(self, reason: str) -> None:
        self.args = (reason, self.where)

    @property
    def where(self) -> Where:
        """Where it is wrong."""
        where: Where = self.args[1]
        return where

    @where.setter
    def where(self, where: Where) -> None:
        self.args = (self.reason, where)

    @property
    def path(self) -> str | None:
        """The path of the field, as errors of Construct have it; None if it is unknown."""
        return self.where.path

    def located(self, **known: str | int | None) -> Self:
        """The same error with those parts of the place filled in that are still unknown."""
        new = {name: value for name, value in known.items() if getattr(self.where, name) is None}
        self.where = replace(self.where, **new)  # type: ignore[arg-type]
        return self

    def without_frames(self) -> Self:
        """The same error, to be kept: it no longer holds the functions that raised it, and what they held."""
        self.__traceback__ = self.__context__ = None
        return self

    def __str__(self) -> str:
        where = str(self.where)
        return f"{self.reason} ({where})" if where else self.reason


class ParseError(CodecError):
    """The bytes are not what the layout says."""


class TruncatedError(ParseError):
    """The bytes end before the value does."""


class LengthError(ParseError):
    """A length or a count says something that the bytes cannot hold."""


class ChecksumError(ParseError):
    """The bytes do not have the checksum that they carry."""


class ValueRefused(ParseError):
    """The bytes are whole but hold a value that the layout does not allow."""


class RuleBroken(ValueRefused):
    """The fields of a layout together break one of its rules."""


class TrailingError(ParseError):
    """Bytes are left over where the layout ends."""


class CompressionError(ParseError):
    """A compressed section does not decompress."""


class LimitError(ParseError):
    """The input asks for more than a stated limit (memory, depth, count)."""


class UnsupportedCodec(CompressionError):
    """The library for a compression codec is not installed, or the layout does not allow the codec."""


class BuildError(CodecError):
    """The values cannot be written in this layout."""


def shown(value: Any) -> str:
    """A value for people: bytes in hexadecimal digits, and no more of bytes and text than one can read."""
    if isinstance(value, bytes):
        return f"hex {value[:16].hex()}" + ("..." if len(value) > 16 else "")
    if isinstance(value, str):
        return repr(value[:32]) + ("..." if len(value) > 32 else "")
    return str(value)
