"""Every field of the foreign formats: its value, what a builder fills in, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from codecgen.plan import make_plan
from codecgen.runtime.enums import Enumeration
from codecgen.runtime.errors import ParseError, TrailingError
from codecgen.schema import loader
from tests.codecgen.language.foreign import Case, files, logs, messages, networks
from tests.codecgen.language.foreign.enums import ENUMS
from tests.codecgen.schemas import checked, codecs_of
from tests.paths import FOREIGN

CASES = [*files.CASES, *logs.CASES, *messages.CASES, *networks.CASES]
cases = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@cache
def codecs(path: str) -> Any:
    """The generated module of a schema file of a format: `protobuf/wire`."""
    name, _, file = path.partition("/")
    plan = make_plan(checked(loader.read_files(FOREIGN / name)))
    return codecs_of(plan, f"{file or name}.yaml")


def codec_of(case: Case) -> Any:
    return getattr(codecs(case.format), case.codec)


def plain(value: Any) -> Any:
    """Return mappings as dictionaries, and enum values as labels."""
    if isinstance(value, Enumeration):
        return value.label
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def without(value: Any, path: str) -> Any:
    """Return values without those of a path, which goes through the elements of arrays too."""
    if isinstance(value, list):
        return [without(item, path) for item in value]
    name, _, rest = path.partition(".")
    if not rest:
        return {key: item for key, item in value.items() if key != name}
    return {key: without(item, rest) if key == name else item for key, item in value.items()}


@pytest.mark.slow
@pytest.mark.share(4)
@cases
def test_fields(case: Case) -> None:
    codec = codec_of(case)
    for data, others in ((case.data, {}), *case.others):
        values = {**case.values, **others}
        parsed = plain(codec.parse(data))
        assert parsed == values
        assert repr(parsed) == repr(values)  # the order too, and true is not 1
        assert codec.build(values) == data


@cases
def test_builders_find_what_follows(case: Case) -> None:
    values: Any = case.values
    for path in case.derived:
        values = without(values, path)
        assert codec_of(case).build(without(case.values, path)) == case.data
    assert codec_of(case).build(values) == case.data


def refused_at(codec: Any, data: bytes, *, strict: bool = True) -> str | None:
    """Return the path of the error with which bytes are refused."""
    with pytest.raises(ParseError) as caught:
        codec.parse(data, strict=strict)
    path: str | None = caught.value.where.path
    return path


@cases
def test_refusals(case: Case) -> None:
    codec = codec_of(case)
    assert [refused_at(codec, data) for data, _ in case.refused] == [p for _, p in case.refused]
    paths = [refused_at(codec, data, strict=False) for data, _ in case.never]
    assert paths == [path for _, path in case.never]
    if not case.is_open:
        for strict in (True, False):
            with pytest.raises(TrailingError):
                codec.parse(case.data + b"\0", strict=strict)


@pytest.mark.parametrize(("path", "name"), ENUMS, ids=[f"{path}-{name}" for path, name in ENUMS])
def test_values_of_enums(path: str, name: str) -> None:
    found = getattr(codecs(path), name)
    assert {member.name.lower(): int(member) for member in found} == ENUMS[path, name]
