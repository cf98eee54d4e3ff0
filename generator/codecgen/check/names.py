"""Check names: generated code can have them, and no two become the same name there."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable, Iterator

from codecgen.diagnostics import Diagnostic, Span
from codecgen.plan.generated_names import SHIPPED, TARGET_DIRECTORIES, TARGET_PACKAGES, identifier
from codecgen.schema.declarations import used_of
from codecgen.schema.key_types import FLEXIBLE
from codecgen.schema.lookup import members
from codecgen.schema.model import Layout, Model
from codecgen.schema.scalars import SCALARS
from codecgen.spans import place

LONGEST = 64
CONTAINER = frozenset(
    [
        "clear",
        "copy",
        "fromkeys",
        "get",
        "items",
        "keys",
        "pop",
        "popitem",
        "search",
        "search_all",
        "setdefault",
        "update",
        "values",
    ]
)
"""Attributes of the mapping that parsers return: a field of that name would hide behind them."""

EXPRESSION = frozenset(
    ["if", "then", "else", "and", "or", "not", "null", "first", "last", "item", "true", "false"]
)
"""Words that mean something in expressions."""

RUNTIME = frozenset(
    [
        "array",
        "base64_uuid",
        "bit",
        "bits",
        "boolean",
        "bytes",
        "choice",
        "chosen",
        "compressed",
        "container",
        "decimal",
        "derived",
        "each_line",
        "enum_field",
        "enumeration",
        "field",
        "fill",
        "float32",
        "float64",
        "given",
        "giving",
        "integer",
        "layout",
        "layout_rule",
        "layout_versions",
        "lazy",
        "line_value",
        "lines_file",
        "mask",
        "nullable",
        "outer_length",
        "padding",
        "properties_file",
        "property",
        "rest_of_line",
        "rule",
        "sensitive",
        "tags",
        "text",
        "text_line",
        "until",
        "uuid",
        "varint",
        "versioned_layout",
        "vlq",
        "word",
        "zero_filled",
        "zero_terminated",
    ]
)
"""Enums of these names would give classes that generated modules import."""

HELPERS = frozenset(
    [
        "wrap",
        "end_of",
        "look_up",
        "max_of",
        "min_of",
        "minus",
        "ordered",
        "plus",
        "value_at",
        "item",
        "int",
        "str",
        "bytes",
        "bool",
        "float",
    ]
)
"""Functions and parameters of generated modules."""

TAKEN_PACKAGES = frozenset(
    [
        "codecgen",
        "construct",
        "crc32c",
        "cramjam",
        "jinja2",
        "lz4",
        "numba",
        "numpy",
        "pyarrow",
        "snappy",
        "yaml",
        "zstandard",
    ]
)
"""What generated code imports, or what it stands on does."""

WINDOWS = frozenset(
    [
        "con",
        "prn",
        "aux",
        "nul",
        *(f"{device}{n}" for device in ("com", "lpt") for n in range(1, 10)),
    ]
)
_FILE_PART = re.compile(r"[a-z][a-z0-9_-]*\Z")


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each name of the package, a file, a declaration, a field or a derived
    value that is reserved, too long or invalid in Python, or that collides with another name in
    generated code.
    """
    yield from _check_package(model)
    yield from _check_files(model)
    yield from _check_declarations(model)
    for layout in model.layouts.values():
        yield from _check_fields(layout)
    for choice in model.choices.values():
        for f in choice.outer:
            yield from check_word(f.name, f.span, CONTAINER | EXPRESSION, field=True)
    yield from _check_symbols(model)
    yield from _check_used(model)


def _check_package(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the package name is a directory that targets write, a module of the
    standard library or one that generated code imports, a Python keyword, or longer than
    ``LONGEST``. Only the first of these is reported. That the name is snake_case is checked where
    the manifest is read.
    """
    name = model.manifest.package
    where = place(model.manifest, "package")
    if name in TARGET_DIRECTORIES:
        message = f'"{name}" is taken: a target writes a directory of that name'
        yield Diagnostic("C027", message, where, help=f'take another name, perhaps "{name}_codecs"')
    elif name in sys.stdlib_module_names or name in TAKEN_PACKAGES:
        message = f'a package "{name}" would hide the module that generated code imports'
        yield Diagnostic("C027", message, where, help=f'take another name, perhaps "{name}_codecs"')
    else:
        yield from check_word(name, where, frozenset())


def _check_files(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each schema file whose path cannot be a module name or whose first
    part is reserved, and for files that become the same module, or a module where another needs a
    package. The manifest is skipped.
    """
    modules: dict[str, str] = {}
    directories: dict[str, str] = {}
    for file in model.files:
        if "/" not in file and file == model.manifest.span.file:
            continue
        where = Span(file, 1, 1, 1)
        parts = file.removesuffix(".yaml").removesuffix(".yml").split("/")
        for part in parts:
            bare = part.replace("-", "_")
            if not _FILE_PART.match(part) or keyword.iskeyword(bare) or part in WINDOWS:
                message = f'"{part}" cannot be the name of a generated module'
                help = "use lower-case letters, digits, _ and -; begin with a letter"
                if _FILE_PART.match(part):
                    what = "keyword of Python" if keyword.iskeyword(bare) else "device of Windows"
                    help = f"take another name; this is a {what}"
                yield Diagnostic("C027", message, where, help=help)
                break
        else:
            if parts[0].replace("-", "_") in TARGET_PACKAGES:
                message = f'"{parts[0]}" is taken: a target writes a package of that name'
                yield Diagnostic("C027", message, where, help="take another name")
            if parts[0] == SHIPPED:
                message = f'"{parts[0]}" is taken: a package that brings its schemas has them there'
                yield Diagnostic("C027", message, where, help="take another name")
            module = "/".join(parts).replace("-", "_")
            if module in modules:
                message = f"two files would become one module: {modules[module]} and {file}"
                yield Diagnostic("C008", message, where, help="rename one of them")
            modules.setdefault(module, file)
            for i in range(1, len(parts)):
                directories.setdefault("/".join(parts[:i]).replace("-", "_"), file)
    for module, file in modules.items():
        if module in directories:
            message = f"{file} would become a module where {directories[module]} needs a package"
            help = f"rename {file} or the directory"
            yield Diagnostic("C008", message, Span(file, 1, 1, 1), help=help)


def _check_declarations(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each layout, choice, text or enum whose name is a Python keyword,
    longer than ``LONGEST`` or taken by generated code. A layout must not have the name of a type,
    the class of an enum no name that generated modules import. An enum value is reported only if it
    is a word of expressions other than ``item``, is ``labels``, or is too long.
    """
    for layout in model.layouts.values():
        if layout.name in (*SCALARS, *FLEXIBLE):
            message = f'"{layout.name}" is the name of a type, so a layout cannot have it'
            yield Diagnostic("C027", message, layout.span, help="take another name")
        yield from check_word(layout.name, layout.span, HELPERS if layout.derived else frozenset())
    for choice in model.choices.values():
        yield from check_word(choice.name, choice.span, frozenset())
    for text in model.texts.values():
        yield from check_word(text.name, text.span, frozenset())
    for enum in model.enums.values():
        yield from check_word(enum.name, enum.span, RUNTIME)
        if keyword.iskeyword(class_of(enum.name)):
            message = f'the class of "{enum.name}" would be called {class_of(enum.name)}, a keyword of Python'
            yield Diagnostic("C027", message, enum.span, help="take another name")
        elif enum.name not in RUNTIME and class_of(enum.name) in map(class_of, RUNTIME):
            message = f'the class of "{enum.name}" would be called {class_of(enum.name)}, which generated modules import'
            yield Diagnostic("C027", message, enum.span, help="take another name")
        for value in enum.values:
            if value.name in EXPRESSION - {"item"}:
                message = f'"{value.name}" is a word of expressions, so no expression could name the value'
                yield Diagnostic("C027", message, value.span, help=f'write "{value.name}_"')
            elif value.name == "labels":
                message = '"labels" is the name of an attribute of generated enum classes'
                yield Diagnostic("C027", message, value.span, help="take another name")
            elif len(value.name) > LONGEST:
                yield _too_long(value.name, value.span)


def _check_fields(layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each field, value from outside, bit member, rule or derived value
    whose name is reserved or too long. Also yield one for a value from outside or derived value of
    the layout that is named like a field, and for two derived values that become one function.
    """
    taken = CONTAINER | EXPRESSION
    seen: dict[str, Span] = {}
    for f in layout.fields:
        yield from check_word(f.name, f.span, taken, field=True)
        seen[f.name] = f.span
        for m in members(f):
            yield from check_word(m.name, m.span, taken, field=True)
    for f in layout.given:
        yield from check_word(f.name, f.span, taken, field=True)
        if f.name in seen:
            help = f"the field is at {seen[f.name]}"
            yield Diagnostic("C008", f'"{f.name}" is a field already', f.span, help=help)
        seen[f.name] = f.span
    for rule in layout.rules:
        yield from check_word(rule.name, rule.span, frozenset())
    functions: dict[str, Span] = {}
    for d in layout.derived:
        yield from check_word(d.name, d.span, taken | HELPERS)
        if d.array is None and d.name in seen:
            help = f"the field is at {seen[d.name]}"
            yield Diagnostic("C008", f'"{d.name}" is a field already', d.span, help=help)
        function = d.name if d.array is None else f"{d.array}_{d.name}"
        if function in functions and d.array is not None:
            help = f"the other one is at {functions[function]}"
            message = f'two functions would be called "{function}"'
            yield Diagnostic("C008", message, d.span, help=help)
        functions.setdefault(function, d.span)


def check_word(
    name: str,
    where: Span,
    taken: frozenset[str],
    *,
    field: bool = False,
    kept: str = "to keep the name in the format's own documents",
) -> Iterator[Diagnostic]:
    """Yield one diagnostic, at ``where``, if a name is a Python keyword, in ``taken``, or longer
    than ``LONGEST``. ``field`` selects the help to use the name with ``_`` appended and
    ``spelled``; ``kept`` says what that is for.
    """
    help = "take another name"
    if field:
        help = f'write "{name}_", and `spelled: {name}` {kept}'
    if keyword.iskeyword(name):
        yield Diagnostic("C027", f'"{name}" is a keyword of Python', where, help=help)
    elif name in taken:
        what = "a word of expressions" if name in EXPRESSION else "a name in generated code"
        message = f'"{name}" is {what}, so it cannot be a name here'
        yield Diagnostic("C027", message, where, help=help)
    elif len(name) > LONGEST:
        yield _too_long(name, where)


def _too_long(name: str, where: Span) -> Diagnostic:
    """Return the diagnostic about a name that is too long."""
    message = f"the name has {len(name)} characters, more than {LONGEST}"
    return Diagnostic("C027", message, where, help="take a shorter name")


def class_of(enum: str) -> str:
    """Return the name of the class that is generated for an enum."""
    return "".join(part.capitalize() for part in enum.split("_"))


def symbols(model: Model) -> Iterator[tuple[str, str, Span]]:
    """Yield the exports of generated modules as (symbol, declaration, place), equal symbols too.
    First comes the class of each enum, then ``NAME`` of each layout, followed by ``NAME_V3`` of its
    versions (declaration ``name@3``), then ``NAME`` of each text and of each choice. The versions
    of a layout are left out if they have no end or are more than 1000.
    """
    for enum in model.enums.values():
        yield class_of(enum.name), enum.name, enum.span
    for layout in model.layouts.values():
        yield layout.name.upper(), layout.name, layout.span
        v = layout.versions
        if v is not None and v.high is not None and v.high - v.low < 1000:
            for version in range(v.low, v.high + 1):
                name = f"{layout.name}@{version}"
                yield f"{layout.name.upper()}_V{version}", name, layout.span
    for text in model.texts.values():
        yield text.name.upper(), text.name, text.span
    for choice in model.choices.values():
        yield choice.name.upper(), choice.name, choice.span


def _check_used(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each layout, enum or choice named like the alias of a used directory,
    and for layouts, used or own, whose names become the same identifier in generated code.
    """
    for things in (model.layouts, model.enums, model.choices):
        for name, thing in things.items():
            if name in model.manifest.uses:
                message = f'"{name}" is declared twice: it stands before names of a directory that is used'
                help = f"see {place(model.manifest, f'uses.{name}')}"
                yield Diagnostic("C008", message, thing.span, help=help)
    taken: dict[str, str] = {}
    for name in used_of(model.layouts):
        other = taken.setdefault(identifier(name), name)
        if other != name:
            message = (
                f'"{name}" and "{other}" would both become {identifier(name)} in generated code'
            )
            alias = name.partition(".")[0]
            yield Diagnostic("C008", message, place(model.manifest, f"uses.{alias}"))
    for layout in model.layouts.values():
        if layout.name in taken:
            message = f'"{layout.name}" and "{taken[layout.name]}" would both become {layout.name} in generated code'
            yield Diagnostic("C008", message, layout.span)


def _check_symbols(model: Model) -> Iterable[Diagnostic]:
    """Return a diagnostic for each declaration that exports the same symbol as another declaration.
    It points to the later of the two in file and line order. Two declarations of the same name,
    such as a layout and a choice, are not reported here.
    """
    seen: dict[str, tuple[str, Span]] = {}
    found = []
    for symbol, name, where in symbols(model):
        if symbol in seen and seen[symbol][0] != name:
            other, first = seen[symbol]
            message = f'"{name}" and "{other}" would both become {symbol} in generated code'
            later = max((where, first), key=lambda s: (s.file, s.line))
            earlier = first if later is where else where
            found.append(Diagnostic("C008", message, later, help=f"the other one is at {earlier}"))
        seen.setdefault(symbol, (name, where))
    return found
