"""The target knows no Kafka: layouts that were made up give kernels too, and what it cannot express it names."""

from __future__ import annotations

import importlib
import sys
import uuid
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from crc32c import crc32c

from codecgen.runtime.arrow.decoder import Rejected
from codecgen.runtime.arrow.view import Place
from codecgen.runtime.errors import CodecError
from codecgen.schema import loader
from tests.codecgen.schemas import unread_by_kernels
from tests.support.other_layouts import FORMAT, MANIFEST, decoded, emitted


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    root = tmp_path_factory.mktemp("made_up")
    for path, text in emitted({"codecgen.yaml": MANIFEST, "format.yaml": FORMAT}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(root))
    try:
        yield importlib.import_module("made_up_codecs")
    finally:
        sys.path.remove(str(root))


Decode = Callable[..., tuple[list[dict[str, Any]], list[Rejected]]]

SAMPLES: list[dict[str, Any]] = [
    {"delta": 5, "level": 1, "history": [], "tags": [], "note": "ä"},
    {"delta": -1, "level": 250, "history": [1, 2], "tags": [{"name": "a", "blob": None}], "note": None},
    {"delta": 1 << 40, "level": 0, "history": [9], "tags": [{"name": "", "blob": b"x"}] * 2, "note": ""},
]  # fmt: skip


def many(codecs: ModuleType, squeeze: str, samples: list[dict[str, Any]], is_test: bool) -> bytes:
    flags = {"squeeze": codecs.Squeeze[squeeze.upper()], "is_test": is_test}
    value = {"flags": flags, "base": 1000, "samples": samples}
    return bytes(codecs.MANY.build(value))


def single(codecs: ModuleType, label: str | None) -> bytes:
    value = {"number": -(1 << 63), "ratio": 0.5, "id": uuid.UUID(int=1), "label": label}
    return bytes(codecs.SINGLE.build(value))


@pytest.fixture(params=["kernels", "numpy"])
def decode(request: pytest.FixtureRequest, made_up: ModuleType) -> Decode:
    """Decodes bytes by the kernels, or by the readers that need no compiler."""
    view = importlib.import_module("made_up_codecs.arrow.samples").SAMPLES
    module = importlib.import_module(f"made_up_codecs.arrow.samples_{request.param}")
    return lambda data, columns=None: decoded(view, module, data, columns)


@pytest.mark.slow
def test_rows_of_a_layout_that_was_made_up(made_up: ModuleType, decode: Decode) -> None:
    parts = [
        single(made_up, "one"),
        many(made_up, "none", SAMPLES, True),
        many(made_up, "zstd", SAMPLES, False),
        single(made_up, None),
        many(made_up, "none", [], False),
    ]
    names = ["number", "level", "note", "tags", "position", "is_test", "last"]
    rows, rejected = decode(b"".join(parts), names)
    assert rejected == []
    places = [sum(map(len, parts[:i])) for i in range(len(parts))]
    first: dict[str, Any] = {
        "level": None,
        "tags": [],
        "is_test": False,
        "last": None,
        "number": -(1 << 63),
    }
    expected = [first | {"note": "one", "position": 0}]
    wrapped = (1000 + (1 << 40) + (1 << 31)) % (1 << 32) - (1 << 31)
    for place, is_test in ((places[1], True), (places[2], False)):
        for sample, number in zip(SAMPLES, (1005, 1000, wrapped), strict=True):
            tags = {"tags": sample["tags"], "level": sample["level"], "note": sample["note"]}
            last = 1003 if is_test else None
            entry = {"number": number, "position": place, "is_test": is_test, "last": last}
            expected.append(entry | tags)
    expected.append(first | {"note": None, "position": places[3]})
    assert rows == [{name: row[name] for name in names} for row in expected]


@pytest.mark.slow
def test_every_flipped_bit_is_noticed_or_changes_nothing_that_is_checked(
    made_up: ModuleType, decode: Decode
) -> None:
    good = single(made_up, "one") + many(made_up, "none", SAMPLES, True)
    start = len(single(made_up, "one"))
    layouts = {7: made_up.SINGLE, 9: made_up.MANY}
    for at in range(len(good)):
        for bit in range(8):
            data = bytearray(good)
            data[at] ^= 1 << bit
            rows, rejected = decode(bytes(data))
            whole = len(rows) == 1 + len(SAMPLES) and not rejected
            part = bytes(data[:start]) if at < start else bytes(data[start:])
            try:
                layouts.get(part[0], made_up.MANY).parse(part)
                fine = True
            except CodecError:
                fine = False
            assert whole == fine, (at, bit)


@pytest.mark.slow
@pytest.mark.share(2)
def test_a_broken_rule_names_its_line(
    made_up: ModuleType, decode: Decode, request: pytest.FixtureRequest
) -> None:
    bad = SAMPLES[0] | {"level": 250}
    data = many(made_up, "none", SAMPLES, True)
    assert decode(data)[1] == []
    raw = bytearray(many(made_up, "none", [bad | {"level": 199}], True))
    at = raw.index(199)
    raw[at] = 250
    raw[3:7] = crc32c(bytes(raw[7:])).to_bytes(4, "little")
    rows, rejected = decode(bytes(raw))
    assert rows == []
    line = next(i for i, text in enumerate(FORMAT.split("\n"), 1) if "note: {string: i16" in text)
    assert [(item.start, item.end) for item in rejected] == [(0, len(raw))]
    by_kernels = request.node.callspec.params["decode"] == "kernels"
    place = Place("note", "format.yaml", line)
    assert rejected[0].place == (
        place if by_kernels else None
    )  # the other readers do not say which


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "number: i64",
            "number: {type: i64, valid: number + 1 > 0}",
            '"number" is checked by a sum',
        ),
        (
            "ratio: f64",
            "ratio: u64\n  rest: {array: single, count: u8}",
            '"rest" is a layout that holds itself',
        ),
        (
            "history: {array: u16,",
            "history: {array: u16, length: u16,",
            '"history" is an array with',
        ),
        ("number: i64", "number: uvarlong", '"number" is a value of type uvarlong'),
    ],
)
def test_what_cannot_be_expressed_is_refused(before: str, after: str, message: str) -> None:
    text = FORMAT.replace(before, after)
    assert text != FORMAT
    files = {"codecgen.yaml": MANIFEST, "format.yaml": text}
    model, _ = loader.load(files)
    assert model is not None
    (found,) = unread_by_kernels(model)
    assert message in found.message
