"""A schema directory as plain mappings: what random schemas are made of, and what their meaning is read from.

The laws never look at the generator's own model: values, bytes and rows are worked out from the YAML alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from codecgen.schema import expression
from tests.laws import apart, flexible
from tests.laws.none import counted_arrays, heard, spoken

Tree = dict[str, Any]

INTEGERS = {f"{sign}{8 * size}": (size, sign == "i") for sign in "iu" for size in (1, 2, 3, 4, 8)}
VARINTS = {
    "varint": (32, True),
    "varlong": (64, True),
    "uvarint": (32, False),
    "uvarlong": (64, False),
    "vlq32": (32, False),
    "vlq64": (64, False),
    "bijective_vlq32": (32, False),
    "bijective_vlq64": (64, False),
}
_64 = (1 << 64) - 1
CHECKS: Mapping[str, tuple[int, int, int, bool, int]] = {
    "crc16_arc": (16, 0x8005, 0, True, 0),
    "crc16_ibm_3740": (16, 0x1021, 0xFFFF, False, 0),
    "crc16_ibm_sdlc": (16, 0x1021, 0xFFFF, True, 0xFFFF),
    "crc16_kermit": (16, 0x1021, 0, True, 0),
    "crc16_modbus": (16, 0x8005, 0xFFFF, True, 0),
    "crc16_xmodem": (16, 0x1021, 0, False, 0),
    "crc24_openpgp": (24, 0x864CFB, 0xB704CE, False, 0),
    "crc32": (32, 0x04C11DB7, 0xFFFFFFFF, True, 0xFFFFFFFF),
    "crc32_bzip2": (32, 0x04C11DB7, 0xFFFFFFFF, False, 0xFFFFFFFF),
    "crc32_mpeg_2": (32, 0x04C11DB7, 0xFFFFFFFF, False, 0),
    "crc32c": (32, 0x1EDC6F41, 0xFFFFFFFF, True, 0xFFFFFFFF),
    "crc64_ecma_182": (64, 0x42F0E1EBA9EA3693, 0, False, 0),
    "crc64_nvme": (64, 0xAD93D23594C93659, _64, True, _64),
    "crc64_redis": (64, 0xAD93D23594C935A9, 0, True, 0),
    "crc64_xz": (64, 0x42F0E1EBA9EA3693, _64, True, _64),
}
"""CRCs: width, polynomial, what it begins with, whether bits are turned round, what it ends with."""
CHECK_WIDTHS: Mapping[str, int] = {name: crc[0] for name, crc in CHECKS.items()} | {
    "xxh3_64": 64,
    "xxh64": 64,
}
"""The bits of each checksum."""
LENGTHS = (*INTEGERS, *VARINTS, "compact")


class Quoted(str):
    """Text that stands in quotes."""

    __slots__ = ()


class Hexed(int):
    """A number that stands in hexadecimal digits."""


def reach(name: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer type."""
    if name in INTEGERS:
        bits, signed = 8 * INTEGERS[name][0], INTEGERS[name][1]
    else:
        bits, signed = VARINTS.get(name, (32, False))
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


@dataclass
class World:
    """A schema directory: the manifest, and the documents of each file."""

    manifest: Tree
    files: dict[str, list[Tree]] = field(default_factory=dict)

    def of(self, kind: str) -> dict[str, Tree]:
        """The documents of one kind (layout, choice, view) by their names."""
        return {doc[kind]: doc for doc in self.documents() if kind in doc}

    def documents(self) -> Iterator[Tree]:
        for documents in self.files.values():
            yield from documents

    @property
    def layouts(self) -> dict[str, Tree]:
        return self.of("layout")

    @property
    def enums(self) -> dict[str, Tree]:
        return {
            name: enum for doc in self.documents() for name, enum in doc.get("enums", {}).items()
        }

    @property
    def package(self) -> str:
        return str(self.manifest["package"])

    def texts(self) -> dict[str, str]:
        """The YAML of every file, also of those of the directory that is used."""
        names = apart.declared(self.files)
        out = {"codecgen.yaml": text_of(self.manifest)}
        if names:
            manifest = {**self.manifest, "package": apart.PACKAGE}
            out[f"{apart.PLACE}codecgen.yaml"] = text_of(
                {key: value for key, value in manifest.items() if key != "uses"}
            )
        for name, documents in self.files.items():
            if not name.startswith(apart.PLACE):
                documents = [apart.used(document, names) for document in documents]
            out[name] = "---\n".join(text_of(spoken(document)) for document in documents)
        return out

    def __str__(self) -> str:
        return "\n".join(f"# {name}\n{text}" for name, text in self.texts().items())

    @classmethod
    def read(cls, texts: Mapping[str, str]) -> World:
        """The directory that some YAML files are."""
        files = {}
        for name, text in texts.items():
            files[name] = [heard(_plain(n)) for n in yaml.compose_all(text, yaml.SafeLoader)]
        manifest = files.pop("codecgen.yaml")[0]
        files.pop(f"{apart.PLACE}codecgen.yaml", None)
        files = {name: [apart.plain(one) for one in some] for name, some in files.items()}
        return cls(manifest, files)


class Facts:
    """A directory that does not change any more, with what is asked for again and again at hand."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.layouts = with_local(world.layouts)
        self.enums = world.enums
        self.choices = world.of("choice")
        views = world.of("view")
        self.views = {n: view for n, view in views.items() if isinstance(view["of"], str)}
        self.payloads = {n: view for n, view in views.items() if n not in self.views}

    def fields(self, layout: str, version: int | None) -> list[tuple[str, Tree]]:
        """The fields that a version has. A bare word is a type."""
        tree = self.layouts[layout]
        specs = {**tree["fields"], **tree.get("tagged", {})}
        counted = {array for spec in specs.values() for array in counted_arrays(spec)}
        out = []
        for name, spec in specs.items():
            full = {"type": spec} if isinstance(spec, str) else spec
            if in_range(full.get("versions"), version):
                one = in_version(full, version)
                out.append((name, flexible.settled(one, tree, version, name in counted)))
        return out + flexible.sections(tree, version)

    def versions(self, layout: str) -> list[int | None]:
        given = self.layouts[layout].get("versions")
        if given is None:
            return [None]
        low, high = span(given)
        assert high is not None
        return list(range(low, high + 1))

    def held(self, reference: str, holder: int | None) -> list[int | None]:
        """The versions in which a layout can be held; that of the holder comes first."""
        name, _, version = reference.partition("@")
        if version:
            return [int(version)]
        there = self.versions(name)
        if version_field(self.layouts[name]):
            return sorted(there, key=lambda v: v != holder)
        return [holder] if holder in there else there

    def values(self, enum: str, only: Any = None) -> dict[str, int]:
        values = {
            name: v["value"] if isinstance(v, dict) else v
            for name, v in self.enums[enum]["values"].items()
        }
        wanted = listed(only) if only is not None else list(values)
        return {name: number for name, number in values.items() if name in wanted}

    def unknown(self, enum: str) -> bool:
        return bool(self.enums[enum].get("unknown") == "keep")


def with_local(layouts: dict[str, Tree]) -> dict[str, Tree]:
    """The layouts, with those that are written in the place of a field as layouts like any other."""
    out: dict[str, Tree] = {}

    def add(name: str, tree: Tree) -> None:
        fields: Tree = {}
        for field_name, spec in [*tree["fields"].items(), *tree.get("tagged", {}).items()]:
            own = f"{name}_{field_name}"
            inside = spec.get("array") if isinstance(spec, dict) else None
            for held, key in ((spec, "layout"), (inside, "array")):
                if isinstance(held, dict) and "fields" in held:
                    kept = {k: v for k, v in spec.items() if k not in ("fields", "array")}
                    around = {k: v for k, v in tree.items() if k in _AROUND}
                    add(own, {k: v for k, v in held.items() if k != "versions"} | around)
                    spec = kept | {key: own}
            fields[field_name] = spec
        versioned = any(_varies(out, spec, tree) for spec in fields.values())
        versioned = versioned or _first_differs(tree)
        kept = {k: v for k, v in tree.items() if k != "versions" or versioned or "layout" in tree}
        own = {k: spec for k, spec in fields.items() if k in tree["fields"]}
        out[name] = kept | {"fields": own}
        if "tagged" in tree:
            out[name]["tagged"] = {k: spec for k, spec in fields.items() if k not in own}

    for name, tree in layouts.items():
        add(name, tree)
    return out


_AROUND = ("endian", "versions", "flexible")


def _first_differs(tree: Tree) -> bool:
    """Whether versions before the first flexible one are other ones."""
    first = flexible.first_of(tree)
    low, high = span(tree["versions"]) if "versions" in tree else (0, 0)
    return first is not None and low < first <= (high or 0)


def version_field(layout: Tree) -> str | None:
    """The field that holds the version of a layout."""
    fields: Tree = layout.get("fields", {})
    found = (n for n, f in fields.items() if isinstance(f, dict) and f.get("is") == "version")
    return next(found, None)


def _varies(layouts: dict[str, Tree], spec: Any, around: Tree) -> bool:
    """Whether a field is another one in another version of the layout around it."""
    if not isinstance(spec, dict):
        return False
    if "versions" in spec or any("versions" in bit for bit in spec.get("members", {}).values()):
        return True
    inside = spec["array"] if isinstance(spec.get("array"), dict) else spec
    if any(isinstance(part.get(key), dict) for part in (spec, inside) for key in RANGED):
        return True
    held = spec.get("layout", spec.get("array"))
    inner = layouts.get(held, {}) if isinstance(held, str) else {}
    return "versions" in inner and version_field(inner) is None


def listed(value: Any) -> list[Any]:
    """What takes a list also takes a single value."""
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def span(versions: Any) -> tuple[int, int | None]:
    low, plus, rest = re.fullmatch(r"(\d+)(\+|-)?(\d*)", str(versions)).groups()
    return int(low), None if plus == "+" else int(rest or low)


def in_range(versions: Any, version: int | None) -> bool:
    if versions is None or version is None:
        return True
    low, high = span(versions)
    return low <= version and (high is None or version <= high)


RANGED = ("type", "bytes", "string", "count", "length", "present", "null")
"""Keys of a field that can have another value in other versions."""


def each(value: Any) -> list[Any]:
    """What a key says in some version."""
    return list(value.values()) if isinstance(value, dict) else [value]


def in_version(spec: Tree, version: int | None) -> Tree:
    """What a field says in one version."""
    if isinstance(spec.get("array"), dict):
        spec = spec | {"array": in_version(spec["array"], version)}
    if not any(isinstance(spec.get(key), dict) for key in RANGED):
        return spec
    out: Tree = {}
    for key, value in spec.items():
        if key not in RANGED or not isinstance(value, dict):
            out[key] = value
            continue
        for versions, part in value.items():
            if in_range(versions, version):
                out[key] = part
    return out


def bits_of(at: Any) -> tuple[int, int]:
    low, _, high = str(at).partition("-")
    return int(low), int(high or low)


def bit_width(type_: str) -> int:
    """The bits of a value of an integer type."""
    return 8 * INTEGERS[type_][0] if type_ in INTEGERS else VARINTS[type_][0]


def free_bits(spec: Tree, version: int | None) -> tuple[int, int]:
    """The bits that a reserved member has."""
    taken = set()
    for member in spec["members"].values():
        if "at" in member and in_range(member.get("versions"), version):
            low, high = bits_of(member["at"])
            taken |= set(range(low, high + 1))
    free = [bit for bit in range(bit_width(spec["bits"])) if bit not in taken]
    return free[0], free[-1]


def literal(spec: Tree, value: Any, words: Mapping[str, int]) -> Any:
    """What a constant of a field is, or a default that is no expression; ``words`` are the values of its enum."""
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    if isinstance(value, str) and "bytes" in spec:
        return value.encode()
    return words.get(value, value) if isinstance(value, str) and "enum" in spec else value


@cache
def parsed(text: str) -> expression.Node:
    """The tree of an expression. Its meaning is worked out in :mod:`.meaning`."""
    return expression.parse(text).node


def fields_of_run(names: list[str], own: str, run: Any) -> range:
    """The indices of a run among the fields of a version."""
    if run == "rest":
        return range(names.index(own) + 1, len(names))
    last = names.index(run["to"]) if "to" in run else len(names) - 1
    return range(names.index(run["from"]), last + 1)


# ------------------------------------------------------------ YAML

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_@.+-]*\Z")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"}


def text_of(document: Tree) -> str:
    """A document as YAML: one line for a key, and for each of its own where it is a mapping."""
    lines = []
    for key, value in document.items():
        if key in ("fields", "columns", "derived", "enums", "entry", "item") and value:
            lines.append(f"{key}:")
            lines += [f"  {name}: {_flow(part)}" for name, part in value.items()]
        elif key in ("rows", "examples"):
            lines.append(f"{key}:")
            for part in value:
                keys = [f"{name}: {_flow(inner)}" for name, inner in part.items()]
                lines += [f"  - {keys[0]}", *(f"    {line}" for line in keys[1:])]
        else:
            lines.append(f"{key}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {_flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Hexed):
        return hex(value)
    if isinstance(value, str):
        if isinstance(value, Quoted):
            return json.dumps(value, ensure_ascii=False)
        plain = _PLAIN.match(value) and value.lower() not in _WORDS
        return value if plain else json.dumps(value, ensure_ascii=False)
    return str(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[\w@.-]+", key, re.ASCII) else json.dumps(key, ensure_ascii=False)


def _plain(node: yaml.Node) -> Any:
    """YAML as plain Python, with keys that are always text."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: _plain(child) for key, child in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(child) for child in node.value]
    if node.style is None and re.fullmatch(r"-?[0-9]+", node.value):
        return int(node.value)
    if node.style is None and node.value in ("true", "false", "null", "~"):
        return {"true": True, "false": False}.get(node.value)
    if node.style is None and re.fullmatch(r"-?0x[0-9a-fA-F]+", node.value):
        return Hexed(node.value, 16)
    return node.value if node.style is None else Quoted(node.value)
