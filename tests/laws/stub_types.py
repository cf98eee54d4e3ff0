"""Whether values are what stubs say of them: a reader of stubs that knows nothing of who wrote them."""

from __future__ import annotations

import ast
import importlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codecgen.runtime.parsed import Parsed, TaggedField

PLAIN: Mapping[str, type] = {
    "bool": bool,
    "bytes": bytes,
    "float": float,
    "int": int,
    "str": str,
    "UUID": uuid.UUID,
}
OUTSIDE = ("builtins", "collections.abc", "typing", "uuid", "codecgen.")


@dataclass
class Class:
    """A class of a stub: what it is derived from, its fields, and its properties."""

    name: str
    bases: list[str]
    fields: dict[str, ast.expr] = field(default_factory=dict)
    properties: dict[str, ast.expr] = field(default_factory=dict)
    hidden: bool = False
    members: dict[str, int] = field(default_factory=dict)


class Stub:
    """One stub: what its names mean."""

    def __init__(self, module: str, text: str) -> None:
        self.module = module
        self.classes: dict[str, Class] = {}
        self.unions: dict[str, ast.expr] = {}
        self.codecs: dict[str, ast.expr] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom):
                for name in node.names:
                    self.imports[name.asname or name.name] = (node.module or "", name.name)
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = _class(node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.unions[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.codecs[node.target.id] = node.annotation


def _class(node: ast.ClassDef) -> Class:
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    found = Class(node.name, bases, hidden=bool(node.decorator_list))
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            found.fields[one.target.id] = one.annotation
        elif isinstance(one, ast.FunctionDef) and one.returns is not None:
            if one.args.args:
                found.properties[one.name] = one.returns
        elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            found.members[one.targets[0].id] = ast.literal_eval(one.value)
    return found


class Stubs:
    """The stubs of packages, by module. The modules can be imported."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.by_module = {
            module: Stub(module, text)
            for path, text in files.items()
            if path.endswith(".pyi")
            for module in [path.removesuffix(".pyi").replace("/", ".")]
        }

    def wrong(self, symbol: str, value: Any) -> str:
        """What is wrong with a value that a strict parse of a codec gave, or nothing."""
        stub = next(one for one in self.by_module.values() if symbol in one.codecs)
        annotation = stub.codecs[symbol]
        assert isinstance(annotation, ast.Subscript)
        parsed = annotation.slice  # a codec of layouts has the values that its builder takes, too
        if isinstance(parsed, ast.Tuple):
            parsed = parsed.elts[0]
        return self.mismatch(value, parsed, stub, symbol)

    def mismatch(self, value: Any, of: ast.expr, stub: Stub, path: str) -> str:
        """Where a value is not what an annotation says, or nothing."""
        match of:
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                first = self.mismatch(value, left, stub, path)
                return first and self.mismatch(value, right, stub, path)
            case ast.Constant(value=None):
                return "" if value is None else f"{path} is {value!r}, not None"
            case ast.Name(id=name):
                return self.named(value, name, stub, path)
            case ast.Subscript(value=ast.Name(id=name), slice=inner):
                origin = stub.imports.get(name, ("builtins", name))[1]
                return self.generic(value, origin, inner, stub, path)
        raise AssertionError(f"{stub.module}: {ast.unparse(of)}")

    def generic(self, value: Any, origin: str, inner: ast.expr, stub: Stub, path: str) -> str:
        if origin == "Literal":
            wanted = ast.literal_eval(inner)
            same = type(value) is type(wanted) and value == wanted
            return "" if same else f"{path} is {value!r}, not {wanted!r}"
        if origin == "Sequence":
            if not isinstance(value, list):
                return f"{path} is {value!r}, no list"
            items = enumerate(value)
            found = (self.mismatch(one, inner, stub, f"{path}[{i}]") for i, one in items)
            return next(filter(None, found), "")
        assert origin == "dict" and isinstance(inner, ast.Tuple), origin
        key, item = inner.elts
        if not isinstance(value, dict):
            return f"{path} is {value!r}, no dict"
        found = (
            self.mismatch(k, key, stub, path) or self.mismatch(v, item, stub, f"{path}.{k}")
            for k, v in value.items()
        )
        return next(filter(None, found), "")

    def named(self, value: Any, name: str, stub: Stub, path: str) -> str:
        module, origin = stub.imports.get(name, (stub.module, name))
        if module == stub.module and name not in {*stub.classes, *stub.unions}:
            module = "builtins"
        if origin == "TaggedField" and module.startswith("codecgen."):
            right = type(value) is TaggedField and type(value["tag"]) is int
            return "" if right and type(value["data"]) is bytes else f"{path} is {value!r}"
        if module.startswith(OUTSIDE):
            return "" if type(value) is PLAIN[origin] else f"{path} is {value!r}, no {origin}"
        there = self.by_module[module]
        if origin in there.unions:
            return self.mismatch(value, there.unions[origin], there, path)
        return self.instance(value, there.classes[origin], there, path)

    def instance(self, value: Any, of: Class, stub: Stub, path: str) -> str:
        """What is wrong with an instance of a class: of one that has that name at run time, too, unless it is hidden."""
        if not of.hidden and not isinstance(
            value, getattr(importlib.import_module(stub.module), of.name)
        ):
            return f"{path} is {value!r}, no {of.name}"
        if of.members:
            same = of.members.get(value.name) == int(value)
            return "" if same else f"{path} is {value!r}, and {of.name} has {of.members}"
        if not isinstance(value, Parsed):
            return f"{path} is {value!r}, no {of.name}"
        fields, properties = self.whole(of, stub)
        if set(value) != set(fields):
            return f"{path} has {sorted(value)}, and {of.name} {sorted(fields)}"
        for name, (annotation, there) in fields.items():
            if found := self.mismatch(value[name], annotation, there, f"{path}.{name}"):
                return found
            if getattr(value, name) is not value[name]:
                return f"{path}.{name} is hidden by an attribute"
        for name, (annotation, there) in properties.items():
            found = self.mismatch(
                _number(getattr(value, name)), annotation, there, f"{path}.{name}"
            )
            if found:
                return found
        return ""

    def whole(self, of: Class, stub: Stub) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields and the properties of a class and of what it is derived from, each with the stub that it stands in."""
        fields: dict[str, Any] = {}
        properties: dict[str, Any] = {}
        for base in of.bases:
            module, origin = stub.imports.get(base, (stub.module, base))
            if module in self.by_module:
                there = self.by_module[module]
                more = self.whole(there.classes[origin], there)
                fields |= more[0]
                properties |= more[1]
        fields |= {name: (one, stub) for name, one in of.fields.items()}
        properties |= {name: (one, stub) for name, one in of.properties.items()}
        return fields, properties


def _number(value: Any) -> Any:
    """A derived value: an enum's value, or true or false, is a number there."""
    return int(value) if isinstance(value, int) else value
