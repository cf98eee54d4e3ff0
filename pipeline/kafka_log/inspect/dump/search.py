"""Search of a regular expression in the keys and values of records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.inspect.dump.decoding import KeyValueDecoder
from kafka_log.read.schemas import PARTS
from kafka_log.segment.arrow_text import utf8
from kafka_log.text.json_values import format_json


class PatternError(ValueError):
    """A text is no regular expression."""


class RecordSearch:
    """Filter of records in whose key or value a regular expression (RE2) matches somewhere.

    Keys and values are searched as text, or as bytes if they are not UTF-8. What a decoder makes of them is searched too: a text, or
    JSON, with an escape for half of a surrogate pair. If the pattern has bytes that are not UTF-8, all is searched as bytes. ``^`` and
    ``$`` match at line ends too. A missing key and a tombstone never match.

    Args:
        pattern: The regular expression. Lone surrogates from U+DC80 to U+DCFF stand for bytes, as in arguments of a process.
        ignore_case: Match upper and lower case alike.
        decoder: Decoder of keys and values. It is not changed.

    Raises:
        PatternError: If the pattern is invalid.
    """

    columns = ("topic", "key", "value", "headers", "is_control", "position", "segment")
    """Columns of a scan that the search needs."""

    def __init__(
        self,
        pattern: str,
        *,
        ignore_case: bool,
        decoder: KeyValueDecoder,
    ) -> None:
        """Compile the pattern. Raises PatternError as the class describes."""
        self._decoder = replace(
            decoder,
            render_bytes=lambda data: None,
            format_value=_format_decoded,
            parts=PARTS,
            schema_parts={},
            failures={},
        )
        try:
            encoded = pattern.encode("utf-8", "surrogateescape")
            self._text_type = (
                pa.large_string() if _as_text(encoded) == pattern else pa.large_binary()
            )
            self._options = pc.MatchSubstringOptions(b"(?m)" + encoded, ignore_case=ignore_case)
            self._match(pa.array([""], self._text_type))
        except (pa.ArrowInvalid, UnicodeEncodeError) as error:
            reason = str(error).removeprefix("Invalid regular expression: ")
            raise PatternError(
                f"--grep {pattern!r} is not a regular expression: {reason.replace('(?m)', '')}"
            ) from None

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch of one topic whose key or value the pattern matches anywhere,
        with all columns. Bytes are searched; if the topic's keys or values are decoded, or a row is
        a control record, the decoded texts too: a match in either counts. What cannot be decoded is
        searched as bytes only; null never matches, and record headers are not searched. Formats
        that need schemas raise a ValueError, DirectoryError, OSError or ModuleNotFoundError if
        these cannot be used.
        """
        if not batch.num_rows:
            return batch
        found = [self._match_bytes(batch.column(name)) for name in PARTS]
        topic = str(batch.column("topic")[0].as_py())
        controls = batch.column("is_control")
        if controls.true_count or any(self._decoder.is_decoded(topic, name) for name in PARTS):
            decoded = self._decoder.decode_columns(
                topic,
                str(batch.column("segment")[0].as_py()),
                batch.column("key"),
                batch.column("value"),
                controls.to_pylist(),
                batch.column("position").to_pylist(),
                batch.column("headers"),
            )
            found += [self._match(self._array_of(decoded.texts[name])) for name in PARTS]
        mask = found[0]
        for other in found[1:]:
            mask = pc.or_(mask, other)
        return batch.filter(mask)

    def _match(self, texts: Any) -> Any:
        """Return a mask of the texts or binaries that match; False for null."""
        return pc.fill_null(
            pc.call_function("match_substring_regex", [texts], self._options), False
        )

    def _array_of(self, texts: Sequence[str | None]) -> Any:
        """Return decoded texts as an array of the type that the pattern searches, text or bytes."""
        found = [None if text is None else utf8(text) for text in texts]
        return pa.array(found, pa.large_string()).cast(self._text_type)

    def _match_bytes(self, column: Any) -> Any:
        """Return a mask of the binaries that match, each as text if it is UTF-8 and the pattern
        too, else as bytes; False for null.
        """
        if self._text_type == pa.large_binary():
            return self._match(column)
        try:
            return self._match(column.cast(pa.string()))
        except pa.ArrowInvalid:
            values = column.to_pylist()
        texts = [_as_text(value) for value in values]
        others = [
            value if text is None else None for value, text in zip(values, texts, strict=True)
        ]
        as_text = self._match(pa.array(texts, pa.large_string()))
        return pc.or_(as_text, self._match(pa.array(others, pa.large_binary())))


def _as_text(value: bytes | None) -> str | None:
    """Return bytes as text; None for None, and if they are not UTF-8."""
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _format_decoded(value: Any) -> str:
    """Return a decoded value as the text that is searched: a text itself, else JSON as JSON lines have it."""
    return value if isinstance(value, str) else format_json(value)
