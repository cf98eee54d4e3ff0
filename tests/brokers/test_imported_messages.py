"""All of Kafka's messages, imported from definitions and held against the message classes of Kafka: every version of every
message."""

from __future__ import annotations

import base64
import importlib
import random
import sys
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codecgen import directories
from codecgen.cli import GOOD, main
from codecgen.importers.kafka_names import snake
from codecgen.plan import LayoutPlan, Plan, make_plan
from codecgen.runtime.errors import CodecError
from codecgen.schema.lookup import reference_of
from codecgen.schema.types import Reference, TagsType
from tests.brokers import definitions
from tests.brokers.message_shapes import layout_of, plan, shape, shape_of
from tests.brokers.messages import Request, answers, damaged, messages
from tests.shares import PROFILE, draw_seeds

pytestmark = [pytest.mark.broker, pytest.mark.slow]

RANDOM, BROKEN = (6 if PROFILE == "full" else 16), 3
"""Messages that are made up of each version, and broken ones made of each."""
PACKAGE = "kafka_messages"
TAGGED = " (tagged)"


@dataclass(frozen=True)
class Imported:
    """Kafka's messages by the names of their classes, and the package that was generated for them."""

    kafka: dict[str, dict[str, Any]]
    plan: Plan
    package: Any

    def cases(self) -> Iterator[tuple[str, int]]:
        for name, message in self.kafka.items():
            for version in message["versions"]:
                yield name, int(version)

    def made_up(self, seeds: Iterable[int]) -> Iterator[Request]:
        """Requests for messages of every version that are made up, one for each seed."""
        for name, version in self.cases():
            for seed in seeds:
                yield {"message": name, "version": version, "random": seed}

    def layout(self, name: str, version: int) -> LayoutPlan:
        found = self.plan.versions[snake(definitions.name_of(self.kafka[name]))]
        return next(p for p in found if p.version in (version, None))

    def as_kafka(self, plan: LayoutPlan, value: Any) -> dict[str, Any]:
        """The value of a layout as Kafka's JSON has it; names of tagged fields end in a mark."""
        out = {}
        for fp in plan.fields:
            in_front = fp.field.is_version or fp.field.const is not None
            if in_front or isinstance(fp.field.type, TagsType):
                continue
            name = self.plan.spelling(fp.name, fp.field.spelled)
            found = self.plain(reference_of(fp.field), plan, value[fp.name])
            out[name + (TAGGED if fp.field.tag is not None else "")] = found
        return out

    def plain(self, ref: Reference | None, around: LayoutPlan, value: Any) -> Any:
        match value:
            case bytes():
                return base64.b64encode(value).decode()
            case uuid.UUID():
                return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
            case list():
                return [self.plain(ref, around, item) for item in value]
            case dict() if ref is not None:
                return self.as_kafka(self.plan.held(ref, around)[0], value)
            case _:
                return value

    def codec(self, name: str, version: int) -> Any:
        layout = snake(definitions.name_of(self.kafka[name])).upper()
        is_key = definitions.kind(self.kafka[name]) == "coordinator-key"
        return getattr(self.package, layout if is_key else f"{layout}_V{version}")

    def prefix(self, name: str, version: int) -> bytes:
        """What stands before what the class writes."""
        match definitions.kind(self.kafka[name]):
            case "coordinator-key":
                number: int = self.kafka[name]["api_key"]
                return number.to_bytes(2, "big")
            case "coordinator-value":
                return version.to_bytes(2, "big")
            case _:
                return b""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    kafka, directory = messages(), tmp_path_factory.mktemp("imported")
    schemas, out = directory / "schemas", directory / "out"
    definitions.write(kafka.values(), directory / "definitions")
    given = ["import", "kafka-json", str(directory / "definitions"), "--out", str(schemas)]
    assert main(given) == GOOD
    assert main(["generate", str(schemas), "--out", str(out), "--targets", "construct"]) == GOOD
    model, _, _ = directories.load(schemas)
    assert model is not None
    sys.path.insert(0, str(out))
    try:
        yield Imported(kafka, make_plan(model), importlib.import_module(PACKAGE))
    finally:
        sys.path.remove(str(out))
        for name in [n for n in sys.modules if n.partition(".")[0] == PACKAGE]:
            del sys.modules[name]


def test_every_version_of_every_message_is_there(imported: Imported) -> None:
    cases = list(imported.cases())
    assert len(imported.kafka) >= 278
    assert len(cases) >= 744
    assert all(imported.codec(*case) is not None for case in cases)


def test_what_was_written_by_hand_says_the_same(imported: Imported) -> None:
    """Our own schemas of the messages that lie in logs and files: the same fields in every version."""
    compared = 0
    for name, version in imported.cases():
        if layout_of(name) not in plan().versions:
            continue
        assert shape(name, version) == shape_of(imported.layout(name, version), imported.plan)
        compared += 1
    assert compared > 100


def test_what_kafka_writes_is_read_and_written_again(imported: Imported) -> None:
    asked = list(imported.made_up(draw_seeds(RANDOM)))
    wrong: list[Any] = []
    for request, answer in zip(asked, answers(asked), strict=True):
        name, version = request["message"], request["version"]
        data = imported.prefix(name, version) + bytes.fromhex(answer["hex"])
        codec = imported.codec(name, version)
        try:
            again = codec.build(codec.parse(data))
        except CodecError as error:
            wrong.append((request, str(error)))
            continue
        if again != data:
            wrong.append((request, data.hex(), again.hex()))
    assert not wrong, (len(wrong), wrong[:5])


def test_values_have_the_names_and_the_meaning_that_kafka_gives_them(imported: Imported) -> None:
    asked = list(imported.made_up([0]))
    written = [{**q, "hex": answer["hex"]} for q, answer in zip(asked, answers(asked), strict=True)]
    for request in written:
        del request["random"]
    for request, answer in zip(written, answers(written), strict=True):
        name, version = request["message"], request["version"]
        prefix = imported.prefix(name, version)
        value = imported.codec(name, version).parse(prefix + bytes.fromhex(request["hex"]))
        ours = imported.as_kafka(imported.layout(name, version), value)
        assert with_theirs(ours, answer["value"]) == answer["value"], request


def with_theirs(ours: Any, theirs: Any) -> Any:
    """Our values without the tagged fields that Kafka leaves out, which hold their defaults."""
    if isinstance(ours, list):
        return [with_theirs(a, b) for a, b in zip(ours, theirs, strict=True)]
    if not isinstance(ours, dict) or theirs is None:
        return ours
    tagged = {name.removesuffix(TAGGED) for name in ours if name.endswith(TAGGED)}
    plain = {name.removesuffix(TAGGED): value for name, value in ours.items()}
    assert set(plain) - set(theirs) <= tagged
    return {name: with_theirs(plain[name], theirs.get(name)) for name in plain if name in theirs}


def test_records_are_told_apart_by_what_stands_around_them(imported: Imported) -> None:
    """Keys of coordinators by their types, records of the metadata logs in their frames."""
    asked = list(imported.made_up([1]))
    told = 0
    for request, answer in zip(asked, answers(asked), strict=True):
        name, version = request["message"], request["version"]
        message, data = imported.kafka[name], bytes.fromhex(answer["hex"])
        part = definitions.folder(message).replace("-", "_")
        match definitions.kind(message):
            case "coordinator-key":
                codec = getattr(imported.package, f"{part}_KEY".upper())
                data = imported.prefix(name, version) + data
            case "metadata":
                part = part if part == "metadata" else f"{part}_metadata"
                codec = getattr(imported.package, f"{part}_RECORD".upper())
                data = bytes([1, message["api_key"], version]) + data
            case _:
                continue
        told += 1
        assert codec.build(codec.parse(data)) == data, request
    assert told > 60


@pytest.mark.soak
def test_what_kafka_refuses_is_refused(imported: Imported) -> None:
    """Bytes that were changed, cut off or put in: both read them, with the same values, or neither does."""
    seeds = list(imported.made_up(draw_seeds(RANDOM, first=100)))
    r = random.Random("imported")
    asked = [
        {**request, "hex": damaged(bytes.fromhex(answer["hex"]), r).hex()}
        for request, answer in zip(seeds, answers(seeds), strict=True)
        if answer["hex"]
        for _ in range(BROKEN)
    ]
    for request in asked:
        del request["random"]
    wrong: list[Any] = []
    refused = 0
    for request, answer in zip(asked, answers(asked), strict=True):
        found = held_against(imported, request, answer)
        refused += found is None
        if found:
            wrong.append((request, answer, found))
    assert not wrong, (len(wrong), wrong[:5])
    assert refused > len(asked) // 10


def held_against(imported: Imported, request: dict[str, Any], answer: dict[str, Any]) -> str | None:
    """What differs between us and Kafka about some bytes; None where both refuse them."""
    name, version = request["message"], request["version"]
    codec, prefix = imported.codec(name, version), imported.prefix(name, version)
    data = prefix + bytes.fromhex(request["hex"])
    try:
        value = codec.parse(data, strict=False)
    except CodecError as error:
        return None if "error" in answer or answer["left"] else f"only we refuse: {error}"
    if "error" in answer:
        return "only Kafka refuses"
    if "unwritable" in answer:  # tags that Kafka does not know, and that do not ascend
        return ""
    again = codec.parse(prefix + bytes.fromhex(answer["again"]))
    return "" if again == value else f"{value} is {again} to Kafka"


def test_the_command_says_what_it_wrote(
    imported: Imported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    definitions.write(imported.kafka.values(), tmp_path / "definitions")
    out = tmp_path / "schemas"
    assert main(["import", "kafka-json", str(tmp_path / "definitions"), "--out", str(out)]) == GOOD
    said = capsys.readouterr()
    assert f"{len(imported.kafka)} messages" in said.out
    assert said.err == ""
