"""Tables of the checks against what they are about."""

from __future__ import annotations

import importlib.util
import inspect
from inspect import signature

import construct
import pytest

from codecgen.check import names
from codecgen.plan import make_plan
from codecgen.plan.generated_names import TARGET_DIRECTORIES, TARGET_PACKAGES
from codecgen.runtime import construct as runtime
from codecgen.schema.expression import _KEYWORDS, Expression, parse
from codecgen.schema.grammar import FIELD_OF_CHOICE, FORMS
from codecgen.schema.key_types import OneOf
from codecgen.schema.lookup import integer_range
from codecgen.schema.model import TOLERANCES, Field
from codecgen.schema.scalars import LENGTHS
from codecgen.schema.texts import TEXT_TOLERANCES
from codecgen.spans import expression_span
from codecgen.targets.construct import module as construct_module
from codecgen.targets.construct.homes import class_name, module_path
from codecgen.targets.registry import TARGETS
from tests.codecgen.schemas import model_of, our_model


def test_words_that_containers_have_are_taken() -> None:
    public = {name for name in dir(construct.Container) if not name.startswith("_")}
    assert public == names.CONTAINER


def test_words_of_expressions_are_taken() -> None:
    assert _KEYWORDS | {"item"} <= names.EXPRESSION


def test_classes_and_functions_of_the_runtime_are_taken() -> None:
    classes = {name for name in (*runtime.__all__, "Container") if name[0].isupper()}
    classes -= {"Codec"}  # no generated module imports it
    assert 'use("Codec")' not in inspect.getsource(construct_module)
    assert classes <= {class_name(name) for name in names.RUNTIME}
    functions = {name for name in runtime.__all__ if name[0].islower()}
    assert functions <= names.HELPERS


def test_packages_that_are_taken_exist_or_are_of_a_later_stage() -> None:
    assert all(
        importlib.util.find_spec(name) for name in ("construct", "codecgen", "lz4", "crc32c")
    )
    assert {"construct", "codecgen", "lz4", "crc32c", "zstandard", "snappy"} <= names.TAKEN_PACKAGES


def test_ranges_of_integers() -> None:
    assert {name: integer_range(name) for name in ("i8", "u8", "i64", "u64")} == {
        "i8": (-128, 127),
        "u8": (0, 255),
        "i64": (-9223372036854775808, 9223372036854775807),
        "u64": (0, 18446744073709551615),
    }
    assert integer_range("varint") == (-(2**31), 2**31 - 1)
    assert integer_range("uvarlong") == (0, 2**64 - 1)
    assert integer_range("f64") is None
    assert all(integer_range(name) for name in LENGTHS)


def test_every_key_of_a_field_is_read_or_is_a_type() -> None:
    """A key of the grammar that the loader forgot would be taken and have no effect."""
    types = {
        "type",
        "bits",
        "bytes",
        "string",
        "array",
        "layout",
        "fields",
        "members",
        "count",
        "length",
        "until",
        "padded",
        "padding",
    }
    types |= {"compressed", "nesting", "at_least", "none", "enum", "only", "documentation"}
    types |= set(FIELD_OF_CHOICE)
    attributes = set(signature(Field).parameters)
    renamed = {"is": "is_version"}
    keys = [*FORMS["field"].keys, *FORMS["field_documentation"].keys]
    assert {renamed.get(key, key) for key in keys if key not in types} <= attributes


def test_freedoms_of_the_grammar_are_those_of_the_model() -> None:
    for forms, freedoms in (
        (("layout", "field"), TOLERANCES),
        (("text",), TEXT_TOLERANCES),
    ):
        for form in forms:
            accepts = FORMS[form].keys["accepts"].kind
            assert getattr(accepts, "item", None) == OneOf(tuple(freedoms))


def _words(text: str) -> dict[str, tuple[int, int]]:
    """Where the words of the expression of field b stand, as line and column."""
    model = model_of(text)
    when = model.layouts["a"].fields[-1].when
    assert isinstance(when, Expression)
    spans = {str(p): expression_span(model, when, p.column, len(p.names[0])) for p in when.paths()}
    return {word: (span.line, span.column) for word, span in spans.items()}


def test_places_in_expressions() -> None:
    head = "layout: a\nfields:\n  x: u8\n  y: u8\n  b:\n    type: u8\n"
    assert _words(head + "    when: x == y\n") == {"x": (7, 11), "y": (7, 16)}
    assert _words(head + '    when: "x == y"\n') == {"x": (7, 12), "y": (7, 17)}
    assert _words(head + "    when: >-\n      x ==\n\n      y\n") == {"x": (8, 7), "y": (10, 7)}
    assert _words(head + "    when: x\n      == y\n") == {"x": (7, 11), "y": (8, 10)}
    assert _words(head + "    when: |2\n        x == y\n") == {"x": (8, 9), "y": (8, 14)}


def test_a_place_that_cannot_be_followed_is_where_the_expression_begins() -> None:
    model = model_of("layout: a\nfields: {x: u8}\n")
    stray = parse("q == x", "case.yaml", 2, 3)
    span = expression_span(model, stray, 5)
    assert (span.line, span.column) == (2, 3)
    assert expression_span(model, parse("x", "gone.yaml", 1, 1)).line == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in ("arrow", "docs"))) for n in TARGETS]
)
def test_targets_write_where_no_schema_can(name: str) -> None:
    """Beside the modules of YAML files a target writes only to places whose names `check` refuses, and fast parsers."""
    plan = make_plan(our_model())
    package = plan.manifest.package
    modules = {"/".join(module_path(file)) for file in plan.modules()}
    directories = {module.rpartition("/")[0] for module in modules}
    emitted = TARGETS[name](plan)
    assert emitted.files
    for path in emitted.files:
        first, _, below = path.partition("/")
        if first != package:
            assert first in TARGET_DIRECTORIES
            continue
        directory, _, file = below.rpartition("/")
        assert (
            below.removesuffix("i").removesuffix(".py").removesuffix("_fast") in modules
            or below.split("/")[0] in TARGET_PACKAGES
            or (directory in directories | {""} and file in ("__init__.py", "py.typed"))
            or below in ("__init__.pyi", "_exports.py")
        ), path
