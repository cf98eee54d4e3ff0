"""Laws about texts: values and bytes are worked out from the YAML alone."""

from __future__ import annotations

import base64
import random
import uuid
from types import ModuleType
from typing import Any

from codecgen.runtime.errors import BuildError, CodecError
from tests.laws.codec_laws import LIMITS, parse_or_refuse, symbol_of, typed
from tests.laws.made import Generated
from tests.laws.memory import Broken
from tests.laws.mutations import mutated
from tests.laws.stub_types import Stubs
from tests.laws.values import NoValue
from tests.laws.world import Tree, World, reach

LETTERS = "abcXYZ09.:=#!\\,;-_é€😀\u00a0"
BLANKS = " \t\f"
EDITS = (
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"0",
    b"+",
    b"-",
    b"=",
    b":",
    b"#",
    b"\\",
    b"\\u0041",
    b"\xff",
)
_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}


def text_laws(made: Generated, package: ModuleType, r: random.Random, values: int = 3) -> None:
    """Every text builds what it parses, parses what it builds, and refuses with a CodecError. Raises Broken."""
    stubs = Stubs(made.files)
    for name, tree in made.world.of("text").items():
        codec = getattr(package, name.upper())
        for _ in range(values):
            try:
                value = Values(tree, r).text()
            except NoValue:
                continue
            data = built(tree, value)
            one_text(codec, name, value, data)
            typed(stubs, symbol_of(name), codec, data)
            for bad in edited(data, r, 8):
                parse_or_refuse(codec, bad)
                typed(stubs, symbol_of(name), codec, bad)
                typed(stubs, symbol_of(name), codec, bad, strict=False)
                built_again(codec, name, bad)


def one_text(codec: Any, name: str, value: Tree, data: bytes) -> None:
    """parse(build(x)) = x, and build(parse(b)) = b."""
    try:
        found = codec.build(value)
        parsed = codec.parse(data, limits=LIMITS)
    except CodecError as error:
        raise Broken(f"{name}: {value} or {data!r} is refused: {error}") from error
    if found != data:
        raise Broken(f"{name}: build({value}) gives {found!r}, not {data!r}")
    if (plain := _bare(parsed)) != value:
        raise Broken(f"{name}: {data!r} of {value} is read as {plain}")
    if codec.build(parsed) != data:
        raise Broken(f"{name}: {data!r} is built again as {codec.build(parsed)!r}")


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _bare(one) for name, one in value.items()}
    return [_bare(one) for one in value] if isinstance(value, list) else value


def built_again(codec: Any, name: str, data: bytes) -> None:
    """What a strict reader takes is built as it was. What a lenient one takes is built as a strict one takes it."""
    for strict in (True, False):
        try:
            parsed = codec.parse(data, strict=strict, limits=LIMITS)
        except CodecError:
            continue
        try:
            again = codec.build(parsed)
        except BuildError as error:
            if strict:
                raise Broken(f"{name}: {data!r} is read as {parsed}, refused: {error}") from error
            continue
        if strict and again != data:
            raise Broken(f"{name}: {data!r} is built again as {again!r}")
        try:
            codec.parse(again, limits=LIMITS)
        except CodecError as error:
            raise Broken(f"{name}: {data!r} is built as {again!r}, refused: {error}") from error


def edited(data: bytes, r: random.Random, number: int) -> list[bytes]:
    """The text with other bytes, some of them those that mean something in texts."""
    out = list(mutated(data, r, number // 2))
    for _ in range(number - len(out)):
        at = r.randrange(len(data) + 1)
        out.append(data[:at] + r.choice(EDITS) + data[at + r.choice((0, 0, 1)) :])
    return out


# ---------------------------------------------------------------- values


class Values:
    """Random values of a text that keep its rules."""

    def __init__(self, tree: Tree, r: random.Random) -> None:
        self.tree = tree
        self.r = r

    def text(self) -> Tree:
        if "properties" in self.tree:
            return self.properties()
        lines = self.tree["lines"]
        if self.tree.get("may_be_empty") and self.r.random() < 0.2:
            return dict.fromkeys(lines)
        out: Tree = {}
        for name, spec in lines.items():
            if "each" in spec:
                out[name] = [self.each(spec["each"]) for _ in range(self.r.choice((0, 1, 1, 3)))]
            else:
                out[name] = self.value(name, spec, out) if "counts" not in spec else 0
        for name, spec in lines.items():
            if "counts" in spec:
                out[name] = len(out[spec["counts"]])
                if not _holds(spec, name, out):
                    raise NoValue("a count that no rule wants")
        # A rule about a count is about the number that it became.
        if not all(_holds(spec, name, out) for name, spec in lines.items()):
            raise NoValue("a rule about a count")
        data = built(self.tree, out)
        if not self.tree.get("final_newline", True) and (not data or data.endswith(b"\n")):
            raise NoValue("an empty last line that nothing ends")
        return out

    def each(self, values: Tree) -> Tree:
        out: Tree = {}
        for name, spec in values.items():
            out[name] = self.value(name, spec, out)
        return out

    def properties(self) -> Tree:
        r, out = self.r, Tree()
        keys = self.tree["properties"]
        for name, spec in keys.items():
            out[name] = None
            if r.random() < 0.7:
                out[name] = self.value(name, spec, out)
        if not all(_holds(spec, name, out) for name, spec in keys.items()):
            raise NoValue("a rule about a key that is not there")
        known = {spec.get("spelled", name) for name, spec in keys.items()}
        others = {}
        if self.tree.get("unknown") == "keep" and r.random() < 0.5:
            others = {self.string(): self.string() for _ in range(r.choice((1, 2)))}
        out["unknown"] = {k: v for k, v in others.items() if k not in known}
        out["comments"] = [self.line() for _ in range(r.choice((0, 0, 1, 2)))]
        order = [spec.get("spelled", n) for n, spec in keys.items() if out[n] is not None]
        order += [*out["unknown"], *(None for _ in out["comments"])]
        r.shuffle(order)
        out["order"] = order
        return out

    def value(self, name: str, spec: Tree, others: Tree) -> Any:
        r = self.r
        for _ in range(20):
            found: Any
            if "const" in spec:
                found = spec["const"]
            elif "decimal" in spec:
                low, high = reach(spec["decimal"])
                near = r.choice((0, 1, 7, 99, 100, 101, low, high, r.randint(low, high)))
                found = min(max(near, low), high)
            elif "uuid" in spec:
                found = uuid.UUID(int=r.choice((0, 1, r.getrandbits(128))))
            elif spec["string"] == "word":
                found = "".join(r.choice(LETTERS) for _ in range(r.choice((1, 2, 6))))
            elif "properties" in self.tree:
                found = self.string()
            else:
                found = self.line()
            if _holds(spec, name, {**others, name: found}):
                return found
        raise NoValue(f"{name} keeps no rule")

    def line(self) -> str:
        return "".join(self.r.choice(LETTERS + BLANKS) for _ in range(self.r.choice((0, 1, 5))))

    def string(self) -> str:
        letters = LETTERS + BLANKS + "\n\r"
        return "".join(self.r.choice(letters) for _ in range(self.r.choice((0, 1, 5))))


def _holds(spec: Tree, name: str, values: Tree) -> bool:
    """Whether the rules of a value hold; they compare it with another value or a number."""
    for key in ("valid", "refuse"):
        if key not in spec:
            continue
        left, operator, right = spec[key].split()
        a = values[left]
        b = int(right) if right.isdecimal() else values.get(right)
        found = {
            "==": a == b,
            "!=": a != b,
            "<=": a is not None and b is not None and a <= b,
        }[operator]
        if found != (key == "valid"):
            return False
    return True


# ---------------------------------------------------------------- bytes


def built(tree: Tree, value: Tree) -> bytes:
    """The bytes of values."""
    if "properties" in tree:
        return _properties(tree["properties"], value)
    lines: list[str] = []
    if all(one is None for one in value.values()):
        return b""
    for name, spec in tree["lines"].items():
        if "each" in spec:
            for item in value[name]:
                parts = [_spelled(s, item[n]) for n, s in spec["each"].items()]
                lines.append(spec.get("separator", "").join(parts))
        else:
            head = spec["label"] + spec["separator"] if "label" in spec else ""
            lines.append(head + _spelled(spec, value[name]))
    text = "".join(line + "\n" for line in lines)
    return (text if tree.get("final_newline", True) else text[:-1]).encode()


def _properties(keys: Tree, value: Tree) -> bytes:
    texts = dict(value["unknown"])
    for name, spec in keys.items():
        if value[name] is not None:
            texts[spec.get("spelled", name)] = _spelled(spec, value[name])
    comments = iter(value["comments"])
    out = ""
    for key in value["order"]:
        if key is None:
            out += f"#{next(comments)}\n"
        else:
            out += _escaped(key, True) + "=" + _escaped(texts[key], False) + "\n"
    return out.encode()


def _escaped(text: str, key: bool) -> str:
    out = "".join(_ESCAPES.get(c, f"\\{c}" if c in "=:#!" else c) for c in text)
    if key:
        return out.replace(" ", "\\ ")
    return f"\\{out}" if out.startswith(" ") else out


def _spelled(spec: Tree, value: Any) -> str:
    if "decimal" in spec:
        return str(value)
    if "uuid" in spec:
        return base64.urlsafe_b64encode(value.bytes).decode()[:22]
    return str(value)


# ---------------------------------------------------------------- examples


def add_examples(world: World, seed: int, released: bool) -> None:
    """Fill in the examples of the texts that are to have some."""
    r = random.Random(seed)
    for tree in world.of("text").values():
        if "examples" not in tree:
            continue
        try:
            value = Values(tree, r).text()
        except NoValue:
            del tree["examples"]
            continue
        example: Tree = {"name": "one"}
        if r.random() < 0.5:
            example["doc"] = "One of many."
        if released and r.random() < 0.5:
            example["since"] = {"doc_no": 1}
        text = built(tree, value).decode()
        example |= {"build": True} if r.random() < 0.3 else {"text": text}
        example["values"] = _plain(value)
        tree["examples"] = [example]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, uuid.UUID) else value
