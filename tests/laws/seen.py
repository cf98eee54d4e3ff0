"""What a field lets expressions name, and other things that are seen from its keys alone."""

from __future__ import annotations

from typing import Any

from tests.laws.conditions import Seen
from tests.laws.world import INTEGERS, VARINTS, Tree, bits_of

FIXED = tuple(INTEGERS)
ALL_INTEGERS = (*FIXED, *VARINTS)
VLQS = tuple(name for name in VARINTS if "vlq" in name)
"""Numbers with the high bits first, which kernels do not read."""
UNSIGNED_VARINTS = ("uvarint", "uvarlong", *VLQS)
SCALARS = ("u8", *ALL_INTEGERS, "f32", "f64", "bool", "uuid")


def numbers_of(enum: Tree) -> dict[str, int]:
    return {name: v["value"] if isinstance(v, dict) else v for name, v in enum["values"].items()}


def framed(fields: Tree) -> bool:
    """Whether the first field measures all the others."""
    first = next(iter(fields.values()))
    return (
        isinstance(first, dict)
        and first.get("measures") == "rest"
        and first["type"] in INTEGERS
        and "when" not in first
    )


def solid(spec: Any) -> bool:
    """Whether a field takes a byte or more whatever it holds."""
    if not isinstance(spec, dict):
        return True
    if "when" in spec or "versions" in spec:
        return False
    if "layout" in spec or "fields" in spec:
        return "present" in spec
    if "choice" in spec:
        return "length" in spec
    if "padding" in spec:
        return False
    if "array" in spec:
        return bool({"count", "length"} & set(spec)) or spec.get("until", "end") != "end"
    return spec.get("bytes", spec.get("string")) != "rest"


def seen_of(
    name: str,
    spec: Any,
    numbers: dict[str, tuple[str, ...]] | None = None,
    enums: dict[str, Tree] | None = None,
) -> list[Seen]:
    """What a field lets expressions name."""
    spec = spec if isinstance(spec, dict) else {"type": spec}
    versions, nullable = spec.get("versions"), "when" in spec or "null" in spec
    late = "measures" in spec or "checksum" in spec
    if "bits" in spec:
        out: list[Seen] = []
        for member, bit in spec["members"].items():
            path = f"{name}.{member}"
            if "versions" in bit:
                continue
            if "enum" in bit:
                words = tuple(
                    bit.get("only") or numbers_of((enums or {}).get(bit["enum"], {"values": {}}))
                )
                out.append(Seen(path, "enum", words, nullable, versions, type=bit["enum"]))
            else:
                low, high = bits_of(bit["at"]) if "at" in bit else (0, 1)
                kind = "bool" if low == high and "at" in bit else "int"
                out.append(Seen(path, kind, (), nullable, versions))
        return out
    if "type" in spec:
        if "enum" in spec:
            words = tuple(
                spec.get("only") or numbers_of((enums or {}).get(spec["enum"], {"values": {}}))
            )
            return [Seen(name, "enum", words, nullable, versions, type=spec["enum"], late=late)]
        kind = {"bool": "bool", "f32": "float", "f64": "float", "uuid": "uuid"}.get(
            spec["type"], "int"
        )
        return [Seen(name, kind, (), nullable, versions, type=spec["type"], late=late)]
    if "array" in spec:
        held = "" if isinstance(spec["array"], dict) else spec["array"].partition("@")[0]
        element = (numbers or {}).get(held, ("",) if held in ALL_INTEGERS else ())
        return [Seen(name, "array", (), nullable, versions, element)]
    if "layout" in spec or "fields" in spec or "choice" in spec:
        return [Seen(name, "other", (), nullable, versions)]
    kind = "bytes" if "bytes" in spec else "text"
    return [Seen(name, kind, (), nullable, versions)]
