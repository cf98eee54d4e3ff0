"""Values in YAML, in the forms of examples, as bytes; what is wrong with them, at its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codecgen.diagnostics import Diagnostic
from codecgen.examples.trial import Mismatch, built, place_of
from codecgen.runtime.errors import CodecError
from codecgen.schema import forms, yaml_tree
from codecgen.schema.types import Span
from codecgen.values.named import Named

MOST = 1 << 26
"""The bytes of values that are taken. Each takes some hundred bytes of memory as YAML."""
DEEPEST = 100


class Wrong(Exception):
    """The values cannot be built."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics


def build_all(named: Named, file: str, text: str) -> bytes:
    """The bytes of each document of a YAML file, one after the other. Raises Wrong."""
    documents, found = yaml_tree.load(file, text, most=MOST, deepest=DEEPEST)
    if not documents and not found:
        found = [Diagnostic("", "there are no values", Span(file, 1, 1, 2))]
    if found:
        raise Wrong(found)
    return b"".join(_bytes(named, documents))


def _bytes(named: Named, documents: list[yaml_tree.Mapping]) -> Iterator[bytes]:
    for document in documents:
        values = forms.plain(document)
        try:
            if not isinstance(values, Mapping):  # {hex: ..} is
                raise Mismatch("a mapping of fields is needed")
            plan, codec = named.layout_of_values(values)
            yield built(named.plan, plan, codec, values)
        except Mismatch as error:
            raise Wrong([_wrong(document, error.reason, error.path, "")]) from None
        except CodecError as error:
            schema = error.where.schema
            help = f"{schema} says what stands here" if schema else ""
            path = error.where.path or ""
            reason = f"{path}: {error.reason}" if path else error.reason
            raise Wrong([_wrong(document, reason, path, help)]) from None


def _wrong(document: yaml_tree.Mapping, reason: str, path: str, help: str) -> Diagnostic:
    places = {"values": document.span, **dict(forms.value_places(document, "values"))}
    return Diagnostic("", reason, place_of(places, path) or document.span, help=help)
