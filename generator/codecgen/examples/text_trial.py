"""Try the examples of texts on the generated codecs: parse, compare, and build again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from codecgen.diagnostics import Diagnostic, Span, format_value
from codecgen.examples.codecs import ExampleCodecs
from codecgen.plan import Plan
from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from codecgen.schema.texts import EachLine, Text, TextExample, TextValue


@dataclass(frozen=True, slots=True)
class TriedText:
    """A valid example: its bytes, its values, and the place of each value (path, first byte, end, False)."""

    example: TextExample
    data: bytes
    value: Any
    trace: tuple[tuple[str, int, int, bool], ...]


class _Mismatch(Exception):
    """An example contradicts its text. ``path`` is the value at fault."""

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


def text_findings(plan: Plan, codecs: ExampleCodecs) -> Iterator[Diagnostic]:
    """Yield a diagnostic C024 for each example of a text (a file of lines or properties) that the
    codec does not read and write as given.
    """
    for text in plan.model.texts.values():
        for example in text.examples:
            result = try_text(codecs, text, example)
            if isinstance(result, Diagnostic):
                yield result


def try_text(codecs: ExampleCodecs, text: Text, example: TextExample) -> TriedText | Diagnostic:
    """Return the example with its bytes, parsed values and places. Return a diagnostic C024 if its
    bytes do not parse, its values cannot be built, or bytes and values contradict each other.
    """
    try:
        return _run_example(codecs.text(text), text, example)
    except _Mismatch as mismatch:
        reason, path = mismatch.reason, mismatch.path
    except CodecError as error:
        reason, path = str(error), error.where.path or ""
    message = f'example "{example.name}" of {text.name}: {reason}'
    return Diagnostic("C024", message, _place_at(example, path))


def _place_at(example: TextExample, path: str) -> Span:
    """Return the place of the value at ``path`` in an example, or of the nearest value around it;
    that of all values or of the example if there is none.
    """
    places = example.places
    while path and f"values.{path}" not in places:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return places.get(f"values.{path}", places.get("values", example.span))


def _run_example(codec: Any, text: Text, example: TextExample) -> TriedText:
    """Return the example with its bytes, built if it gives none, and its parsed values. Raise
    _Mismatch if a value is read otherwise or other bytes are built from the parsed values;
    CodecError if the bytes do not parse or the values do not build.
    """
    meant = _as_built(text, example.value)
    data = codec.build(meant) if example.data is None else example.data
    trace: list[tuple[str, int, int, bool]] = []
    parsed = codec.parse(data, trace=trace)
    _compare(meant, parsed, "")
    again = codec.build(parsed)
    if again != data:
        raise _Mismatch(f"the values build {again!r}, which is not the text of the example", "")
    return TriedText(example, data, parsed, tuple(trace))


def _as_built(text: Text, given: object) -> dict[str, object]:
    """Return the values of an example of a text as its builder takes them, with uuids as UUID
    objects. Unknown names and None stay unchanged. Raise _Mismatch if the values are no mapping, a
    uuid is invalid, or repeated lines are no list of mappings.
    """
    if not isinstance(given, Mapping):
        raise _Mismatch("the values of an example must be a mapping of names to values", "")
    kinds = {value.name: value for value in text.properties}
    lines = {line.name: line for line in text.lines}
    out: dict[str, object] = {}
    for name, value in given.items():
        line = lines.get(str(name), kinds.get(str(name)))
        if isinstance(line, EachLine) and value is not None:
            out[name] = [
                _convert_line(line, item, f"{name}[{i}]")
                for i, item in enumerate(_require_list(value, str(name)))
            ]
        else:
            out[name] = (
                value
                if line is None or isinstance(line, EachLine)
                else _convert_value(line, value, str(name))
            )
    return out


def _require_list(value: object, path: str) -> list[object]:
    """Return ``value`` as a list. Raise _Mismatch if it is not one."""
    if not isinstance(value, list):
        raise _Mismatch(f"{path}: a list is needed, not {format_value(value)}", path)
    return value


def _convert_line(line: EachLine, item: object, path: str) -> object:
    """Return the values of one of repeated lines as the builder takes them; unknown names stay
    unchanged. Raise _Mismatch, which names ``path``, if ``item`` is no mapping or a uuid is
    invalid.
    """
    if not isinstance(item, Mapping):
        raise _Mismatch(
            f"{path}: a mapping with the values of the line is needed, not {format_value(item)}",
            path,
        )
    kinds = {value.name: value for value in line.values}
    return {
        name: _convert_value(kinds[name], value, f"{path}.{name}") if name in kinds else value
        for name, value in item.items()
    }


def _convert_value(kind: TextValue, value: object, path: str) -> object:
    """Return a value as the codec takes it: the text of a uuid as UUID, None and values of other
    kinds unchanged. Raise _Mismatch, which names ``path``, for an invalid uuid.
    """
    if kind.kind != "uuid" or value is None:
        return value
    try:
        return uuid.UUID(str(value))
    except ValueError:
        raise _Mismatch(f"{path}: a uuid is needed, not {format_value(value)}", path) from None


def _compare(given: Any, parsed: Any, path: str) -> None:
    """Raise _Mismatch at the first given value that differs from the parsed one in value or type,
    is missing, or is a list of another length. Parsed values that are not given are ignored.
    """
    if isinstance(given, Mapping) and isinstance(parsed, Mapping):
        for name, value in given.items():
            here = f"{path}.{name}" if path else str(name)
            if name not in parsed:
                raise _Mismatch(f"the format has no value {here}: correct the name", path)
            _compare(value, parsed[name], here)
    elif isinstance(given, list) and isinstance(parsed, list):
        if len(given) != len(parsed):
            raise _Mismatch(
                f"{path} has {count_noun(len(parsed), 'element')}, not {len(given)}", path
            )
        for i, (one, other) in enumerate(zip(given, parsed, strict=True)):
            _compare(one, other, f"{path}[{i}]")
    elif given != parsed or type(given) is not type(parsed):
        raise _Mismatch(f"{path} is {format_value(parsed)}, not {format_value(given)}", path)
