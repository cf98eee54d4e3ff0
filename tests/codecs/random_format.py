"""A version of the log format that nobody knows, drawn at random and added to a copy of the schemas by YAML alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from codecgen.runtime.checksums import CHECKSUMS
from tests.paths import ROOT

MAGIC = 3
LAYOUT, RECORD = "drawn_batch", "drawn_record"

Fields = list[tuple[str, dict[str, Any]]]

_WIDTHS = {name: kind.width for name, kind in CHECKSUMS.items()}
_READ_BY_KERNELS = sorted(name for name, width in _WIDTHS.items() if width != 24)
"""The checksums whose numbers kernels load."""

_BITS = {
    "compression": 3,
    "timestamp_type": 1,
    "is_transactional": 1,
    "is_control": 1,
    "has_delete_horizon": 1,
}
_NUMBERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32")
_RARE_NUMBERS = ("i24", "u24", "u64")
"""Types that Kafka's formats do not use. Each version has one field of each, in its batches or its records."""


@dataclass(frozen=True, slots=True)
class Format:
    """Fields of the batches and the records of a version, in the order of the bytes. ``batch`` and ``record`` are texts in YAML."""

    batch: str
    record: str

    def add_to(self, schemas: Path) -> None:
        """Add it to schemas: two layouts, a case of the choice, and the rows that it has in the views."""
        records = schemas / "records"
        (records / f"{LAYOUT}.yaml").write_text(self.batch, "utf-8")
        (records / f"{RECORD}.yaml").write_text(self.record, "utf-8")
        entry = records / "log_entry.yaml"
        text = entry.read_text("utf-8")
        entry.write_text(text.rstrip() + f"\n  {MAGIC}: {LAYOUT}\n", "utf-8")
        crc = yaml.safe_load(self.batch)["fields"]["crc"]
        for view in ("batches", "records"):
            path = schemas / "views" / f"{view}.yaml"
            text = path.read_text("utf-8")
            if crc["type"] == "u64":
                text = text.replace("  crc: {type: int64,", "  crc: {type: uint64,")
            rows = re.search(r"  - of: record_batch\n.*?(?=\n  - of: )", text, re.DOTALL)
            assert rows is not None
            copy = rows[0].replace("of: record_batch", f"of: {LAYOUT}")
            path.write_text(text.replace(rows[0], f"{rows[0]}\n{copy}"), "utf-8")


def add_columns(schemas: Path) -> None:
    """Give the views columns that only its layouts have values for."""
    for view, name, value in (
        ("batches", "topic_epoch", "topic_epoch"),
        ("records", "timestamp_delta", "item.timestamp_delta"),
    ):
        path = schemas / "views" / f"{view}.yaml"
        column = f"  {name}: {{type: int64, nullable: true, on_request: true, doc: New.}}\n"
        text = path.read_text("utf-8").replace("\nrows:\n", f"{column}\nrows:\n", 1)
        head, of, rows = text.partition(f"  - of: {LAYOUT}\n")
        place = "      position: position\n"
        path.write_text(
            head + of + rows.replace(place, f"{place}      {name}: {value}\n", 1), "utf-8"
        )


def add_version(schemas: Path) -> None:
    """Add a version of today's layouts instead: batches with a field more, and records with a checksum each."""
    records = schemas / "records"
    versions = f"versions: 2-{MAGIC}\n\nfields:\n"
    for name, after, field in (
        ("record_batch", "  last_offset_delta:\n", "topic_epoch: {type: i32, none: -1"),
        (
            "record",
            "  attributes:\n",
            "sum: {type: u32, checksum: crc32c, covers: {from: attributes}",
        ),
    ):
        path = records / f"{name}.yaml"
        text = path.read_text("utf-8").partition("\nexamples:")[0] + "\n"
        text = text.replace("fields:\n", versions, 1).replace("const: 2", "is: version")
        added = f"  {field}, versions: {MAGIC}+, doc: New.}}\n"
        path.write_text(text.replace(after, added + after, 1), "utf-8")
    path = records / "log_entry.yaml"
    cases = f"  2: record_batch@2\n  {MAGIC}: record_batch@{MAGIC}"
    path.write_text(path.read_text("utf-8").replace("  2: record_batch", cases, 1), "utf-8")


def drawn(number: int, *, kernels: bool = True) -> Format:
    """Return the version that a seed draws: one that kernels read, or one of all that the language has."""
    found: list[Format] = []

    @seed(number)
    @settings(
        max_examples=10,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(formats(kernels))
    def draw(one: Format) -> None:
        found.append(one)

    draw()
    return found[-1]  # the first ones are the simplest


def sealed(checksum: str, mask: Mapping[str, int] | None = None) -> Format:
    """Return a version that differs from today's in its checksum, and in a field after it."""
    batch, record = _read("record_batch"), _read("record")
    crc: dict[str, Any] = {"type": f"u{_WIDTHS[checksum]}", "checksum": checksum}
    crc |= {"covers": {"from": "attributes"}, "doc": "Of what follows."}
    fields = batch["fields"] | {"crc": crc if mask is None else crc | {"mask": dict(mask)}}
    fields["magic"]["const"] = MAGIC
    fields["records"]["array"] = RECORD
    epoch = {"type": "i32", "none": -1, "doc": "Epoch of the topic."}
    names = [name for name in fields if name != "topic_epoch"]
    names.insert(names.index("last_offset_delta"), "topic_epoch")
    fields = {name: epoch if name == "topic_epoch" else fields[name] for name in names}
    return Format(
        _text(batch | {"layout": LAYOUT, "fields": fields}), _text(record | {"layout": RECORD})
    )


@st.composite
def formats(draw: st.DrawFn, kernels: bool) -> Format:
    """Draw a version: header size, checksum, positions of all fields, types, and fields that the others do not have."""
    in_batch = draw(st.sets(st.sampled_from(_RARE_NUMBERS)))
    in_record = [kind for kind in _RARE_NUMBERS if kind not in in_batch]
    batch = _batch(draw, kernels, sorted(in_batch))
    return Format(_text(batch), _text(_record(draw, kernels, in_record)))


def _text(layout: dict[str, Any]) -> str:
    return yaml.safe_dump(layout, sort_keys=False, width=1000)


@cache
def _parsed(name: str) -> dict[str, Any]:
    text = (ROOT / "schemas" / "records" / f"{name}.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(text.partition("\nexamples:")[0])
    return found


def _read(name: str) -> dict[str, Any]:
    return deepcopy(_parsed(name))


def _batch(draw: st.DrawFn, kernels: bool, numbers: Sequence[str]) -> dict[str, Any]:
    found = _read("record_batch")
    known: dict[str, dict[str, Any]] = found["fields"]
    known["attributes"] = _attributes(draw, known["attributes"])
    known["record_count"] = {"type": draw(st.sampled_from(["i32", "i16", "u16"])), **_less(known["record_count"])}  # fmt: skip
    known["crc"] = _checksum(draw, kernels)
    known["records"]["array"] = RECORD
    # The magic byte lies where it lies in all versions, after 16 others.
    eight = ["base_offset", "base_timestamp", "max_timestamp", "producer_id"]
    four = ["partition_leader_epoch", "last_offset_delta", "base_sequence"]
    first, second = draw(st.sampled_from(eight)), draw(st.sampled_from(four))
    fixed = {"batch_length", "magic", "records", first, second}
    rest: Fields = [(n, f) for n, f in known.items() if n not in fixed]
    rest.append(("topic_epoch", {"type": "i32", "none": -1, "doc": "Epoch of the topic."}))
    extra = [*draw(st.lists(st.sampled_from(_NUMBERS), max_size=3)), *numbers]
    rest += [(f"more_{i}", {"type": kind, "default": i, "doc": "More."}) for i, kind in enumerate(extra)]  # fmt: skip
    rest = draw(st.permutations(rest))
    if draw(st.booleans()):
        rest.append(("host", {"bytes": "varint", "none": -1, "doc": "Who wrote it."}))
    known["magic"]["const"] = MAGIC
    start = [(name, known[name]) for name in draw(st.permutations([first, second, "batch_length"]))]
    fields = [*start, ("magic", known["magic"]), *rest, ("records", known["records"])]
    names = [name for name, _ in fields]
    measured = names[names.index("batch_length") + 1 :]
    if names.index("max_timestamp") < names.index("base_timestamp"):
        del known["max_timestamp"]["default"]  # which takes the base
    known["batch_length"]["measures"] = {"from": draw(st.sampled_from([measured[0], "magic"]))}
    known["batch_length"]["refuse"] = "batch_length < 8"
    after = names[names.index("crc") + 1]
    known["crc"]["covers"] = {"from": after}
    if not kernels and after != "records" and draw(st.booleans()):
        known["crc"]["covers"] = [{"from": after, "to": after}, {"from": "records"}]
    return found | {"layout": LAYOUT, "fields": dict(fields)}


def _less(field: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in field.items() if name not in ("type", "documentation")}


def _attributes(draw: st.DrawFn, known: dict[str, Any]) -> dict[str, Any]:
    """Draw the width of the bits, and where each of them lies."""
    width = draw(st.sampled_from([8, 16]))
    members: dict[str, Any] = {}
    at = 0
    for name in draw(st.permutations(list(_BITS))):
        end = at + _BITS[name] - 1
        place = at if end == at else f"{at}-{end}"
        members[name] = {**known["members"][name], "at": place}
        members[name].pop("since", None)
        at = end + 1
    members["unused"] = {"reserved": "keep"}
    return {**known, "bits": f"i{width}", "members": members}


def _record(draw: st.DrawFn, kernels: bool, numbers: Sequence[str]) -> dict[str, Any]:
    found = _read("record")
    known: dict[str, dict[str, Any]] = found["fields"]
    for name in ("key", "value"):
        lead, null = draw(st.sampled_from([("varint", -1), ("compact", 0), ("i32", -1)]))
        known[name] = {"bytes": lead, "none": null, "doc": "Bytes."}
    known["headers"]["count"] = draw(st.sampled_from(["varint", "uvarint", "i16"]))
    known["timestamp_delta"] = {**_less(known["timestamp_delta"]), "type": draw(st.sampled_from(["varlong", "i64"]))}  # fmt: skip
    known["offset_delta"]["type"] = draw(st.sampled_from(["varint", "i32"]))
    length = known.pop("length")
    length["type"] = draw(st.sampled_from(["varint", "i32"]))
    fields = draw(st.permutations(list(known.items())))
    kinds = st.sampled_from([*_NUMBERS, "uvarint", "varlong"])
    extra = [*draw(st.lists(kinds, max_size=2)), *numbers]
    for i, kind in enumerate(extra):
        at = draw(st.sampled_from(range(len(fields) + 1)))
        fields.insert(at, (f"more_{i}", {"type": kind, "default": i, "doc": "More."}))
    if draw(st.booleans()):
        at = draw(st.sampled_from(range(len(fields))))
        fields.insert(at, ("sum", {**_checksum(draw, kernels), "covers": {"from": fields[at][0]}}))
    found["fields"] = {"length": length, **dict(fields)}
    types = str(found["fields"])
    allowed = ("'varint'" in types or "'varlong'" in types, "'null': -1" in types)
    found["accepts"] = [name for name, is_there in zip(found["accepts"], allowed, strict=True) if is_there]  # fmt: skip
    return found | {"layout": RECORD}


def _checksum(draw: st.DrawFn, kernels: bool) -> dict[str, Any]:
    """Draw the kind of a checksum, its width, and which of its bits are kept."""
    name = draw(st.sampled_from(_READ_BY_KERNELS if kernels else sorted(_WIDTHS)))
    width = _WIDTHS[name]
    found = {"type": f"u{width}", "checksum": name, "doc": "Of it."}
    mask = draw(st.sampled_from([None, "keep", "change"]))
    if mask == "keep":
        found["mask"] = draw(st.integers(1, (1 << width) - 1))
    if mask == "change":
        add = draw(st.integers(0, (1 << width) - 1))
        found["mask"] = {"rotate_right": draw(st.integers(1, width - 1)), "add": add}
    return found
