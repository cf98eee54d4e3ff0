"""Jinja2 templates in a sandbox: they see only the values that they are given, and are limited in time and output.

Printed values pass through the ``finalize`` function of the target, which escapes text of schemas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateError
from jinja2 import nodes as tree
from jinja2.exceptions import SecurityError, TemplateNotFound, TemplateRuntimeError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer
from markupsafe import Markup

from codecgen.diagnostics import Diagnostic, Span

_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(
        [
            "capitalize",
            "count",
            "endswith",
            "find",
            "index",
            "isalnum",
            "isalpha",
            "isdecimal",
            "isdigit",
            "islower",
            "isupper",
            "lower",
            "lstrip",
            "partition",
            "removeprefix",
            "removesuffix",
            "rfind",
            "rindex",
            "rpartition",
            "rsplit",
            "rstrip",
            "split",
            "splitlines",
            "startswith",
            "strip",
            "swapcase",
            "title",
            "upper",
        ]
    ),
    bytes: frozenset(),
    int: frozenset(),
    float: frozenset(),
}
"""The methods of plain values that templates may call: those that give no more than they were given."""
_WITHOUT = frozenset(
    [
        "batch",
        "center",
        "format",
        "indent",
        "pprint",
        "random",
        "safe",
        "slice",
        "tojson",
        "urlize",
        "wordwrap",
        "xmlattr",
    ]
)
"""Filters that are left out: they grow without bound, differ from run to run, or leave text unescaped."""
_LONGEST_NUMBER = 256
WASTE = 16

_OF_OURS = re.compile(r"'codecgen\.[A-Za-z_.]*\.(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """Limits for one rendered file: its characters, and the rounds of loops and macros.

    All text that is printed or concatenated on the way may have ``WASTE`` times as many characters.
    """

    characters: int = 4 << 20
    rounds: int = 1_000_000


class RenderError(Exception):
    """Raised when a template cannot be rendered. ``template`` is its file, ``line`` the line of the error."""

    def __init__(self, reason: str, template: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.template = template
        self.line = line

    def diagnostic(self) -> Diagnostic:
        """Return the error as a C033 finding."""
        span = Span(self.template, self.line, 1, 1)
        return Diagnostic("C033", f"the template cannot be rendered: {self.reason}", span)


class Renderer:
    """Renders templates by name, with the filters and the escaping of a target."""

    def __init__(
        self,
        templates: Mapping[str, str],
        finalize: Callable[[Any], object],
        filters: Mapping[str, Callable[..., object]],
        limits: RenderLimits | None = None,
    ) -> None:
        self._templates = templates
        self._limits = limits or RenderLimits()
        self._environment = _Sandbox(
            self._limits,
            loader=_Loader(templates),
            autoescape=True,
            finalize=finalize,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            cache_size=-1,
        )
        for name in _WITHOUT:
            del self._environment.filters[name]
        del self._environment.globals["lipsum"]
        self._environment.filters.update(
            replace=self._environment.replace, join=self._environment.join
        )
        self._environment.filters.update(filters)

    def render(self, name: str, **values: object) -> str:
        """Return the text of the template ``name`` rendered with ``values``. Raise RenderError if
        the template is missing or invalid, uses an unknown value, raises an error, includes itself,
        or exceeds a limit (characters of the text or of values, rounds of loops and macros). Counts
        begin at 0 in each call.
        """
        self._environment.rounds = self._environment.made = 0
        parts = []
        written = 0
        try:
            for part in self._environment.get_template(name).generate(**values):
                written += len(part)
                if written > self._limits.characters:
                    raise TemplateRuntimeError(
                        f"the template writes more than {self._limits.characters} characters, the limit"
                    )
                parts.append(part)
        except TemplateNotFound as error:
            raise self._error(error, name, f"there is no template {error.name!r}") from None
        except RecursionError as error:
            raise self._error(
                error, name, "macros or includes call themselves without end"
            ) from None
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise self._error(error, name, str(error) or type(error).__name__) from None
        except AttributeError as error:
            raise self._error(error, name, str(error)) from None
        return "".join(parts)

    def _error(self, error: Exception, name: str, reason: str) -> RenderError:
        """Return a RenderError for an exception, with the innermost template and line that its
        traceback or a syntax error names; the first line of ``name`` if there is none. For endless
        recursion, take the line that calls.

        In endless recursion, the last frame is only where the stack was full.
        """
        places = [(name, 1)]
        at = error.__traceback__
        while at is not None:
            if at.tb_frame.f_code.co_filename in self._templates:
                places.append((at.tb_frame.f_code.co_filename, at.tb_lineno))
            at = at.tb_next
        endless = isinstance(error, RecursionError) and len(places) > 2
        template, line = places[-2 if endless else -1]
        if isinstance(number := getattr(error, "lineno", None), int):
            template, line = getattr(error, "name", None) or template, number
        words = _OF_OURS.sub("'", " ".join(reason.split()))
        return RenderError(words, template, line)


class _Loader(BaseLoader):
    """Loads templates by name from a mapping in memory."""

    def __init__(self, templates: Mapping[str, str]) -> None:
        self.templates = templates

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool]]:
        """Return the text of a template that is held in memory, its name, and a function that says
        it is current. Raise TemplateNotFound for an unknown name.
        """
        if template not in self.templates:
            raise TemplateNotFound(template)
        return self.templates[template], template, lambda: True


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja2's sandbox, with limits on rounds of loops and macros and on characters of values, and
    with escaped concatenation.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, limits: RenderLimits, **options: Any) -> None:
        super().__init__(**options)
        self.limits = limits
        self.rounds = 0
        self.made = 0
        finalize = options["finalize"]

        def finalize_counted(value: object) -> object:
            """Return ``finalize(value)`` and count its characters."""
            text = finalize(value)
            self.made += len(text) if isinstance(text, str) else 0
            self.check_size(0)
            return text

        self.finalize = finalize_counted

    def count_round(self, characters: int) -> None:
        """Count a round of a loop or the call of a macro, and the ``characters`` of template text
        in it. Raise TemplateRuntimeError above the limit of rounds. Raise its subclass
        SecurityError if all values and counted text of the file exceed 16 times the limit of
        characters.
        """
        self.rounds += 1
        self.made += characters
        self.check_size(0)
        if self.rounds > self.limits.rounds:
            raise TemplateRuntimeError(
                f"the template runs more than {self.limits.rounds} rounds of loops and macros, the limit"
            )

    def concatenate(self, *parts: object) -> str:
        """Return the operands of the template operator ``~`` as text. If all are text, integers or
        bools, the result is plain text; otherwise each operand is escaped as if printed alone, and
        the result is Markup. Raise SecurityError if it, or all values of the file, are too long. What
        ``finalize`` raises, such as TypeError for None, passes.
        """
        plain = all(type(part) in (str, int, bool) for part in parts)
        finalize = str if plain else self.finalize or str
        out = []
        size = 0
        for part in parts:
            out.append(str(finalize(part)))
            size += len(out[-1])
            self.check_size(size)
        self.made += size
        return "".join(out) if plain else Markup("".join(out))

    def join(self, values: Iterable[object], between: object = "") -> str:
        """Return ``values`` joined by ``between`` (the template filter ``join``): plain text if all
        parts, also ``between``, are text, integers or bools, otherwise Markup with each part
        escaped. Return ``""`` for no values. Raise SecurityError and what ``finalize`` raises, as
        :meth:`concatenate` does.
        """
        parts: list[object] = []
        size = 0
        for value in values:
            parts += [between, value] if parts else [value]
            size += len(value) + 1 if isinstance(value, str) else 1
            self.check_size(size)
        return self.concatenate(*parts)

    def replace(self, text: object, old: str, new: str) -> str:
        """Return ``text`` with every ``old`` replaced by ``new`` (the filter ``replace``). Raise
        TypeError unless all three are plain ``str``, not Markup; SecurityError if the result is too
        long.
        """
        if type(text) is not str or type(old) is not str or type(new) is not str:
            raise TypeError("the filter replace takes plain text only")
        self.check_size(len(text) + text.count(old) * len(new))
        found = text.replace(old, new)
        self.made += len(found)
        return found

    def check_size(self, size: int) -> None:
        """Raise SecurityError if ``size`` exceeds the limit of characters of one value, or if
        ``size`` more characters exceed 16 times that limit, the limit of all values of a file.
        Count nothing.
        """
        if size > self.limits.characters:
            raise SecurityError(
                f"the template makes a value of more than {self.limits.characters} characters, the limit"
            )
        if self.made + size > WASTE * self.limits.characters:
            raise SecurityError(
                f"the template makes values of more than {WASTE * self.limits.characters} characters"
            )

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Return the result of ``+``, ``*`` or ``%`` on integers, or of ``+`` on other values but
        text. Raise SecurityError for text, for ``**``, and for ``*`` and ``%`` on other values, and
        if the result is an integer above 256 bits or a list or tuple above the size limit. Python's
        own TypeError and ZeroDivisionError pass. Other operators are not intercepted.
        """
        numbers = isinstance(left, int) and isinstance(right, int)
        if operator == "**" or not (numbers or operator == "+"):
            raise SecurityError(f"the operator {operator} is for numbers only, and ** for none")
        if isinstance(left, str) or isinstance(right, str):
            raise SecurityError("text is joined with ~, not with +")
        value = super().call_binop(context, operator, left, right)
        if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
            raise SecurityError(
                f"the template makes a number of more than {_LONGEST_NUMBER} bits, the limit"
            )
        if isinstance(value, list | tuple):
            self.check_size(len(value))
            self.made += len(value)
        return value

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template may use an attribute. Of text only methods whose result cannot
        grow are allowed, of bytes and numbers none; for other values Jinja2's sandbox decides.
        """
        for kind, allowed in _METHODS.items():
            if isinstance(obj, kind):
                return attr in allowed
        return super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Raise SecurityError if ``value`` is ``str.format`` or ``str.format_map``; return None otherwise."""
        if super().wrap_str_format(value) is not None:
            raise SecurityError(
                "templates cannot use the methods format and format_map: join text with ~"
            )
        return None

    def _parse(self, source: str, name: str | None, filename: str | None) -> tree.Template:
        """Return the parsed template, with calls inserted that count rounds of loops and macros and
        that replace the operator ``~``. Raise TemplateSyntaxError if it is invalid.
        """
        parsed = super()._parse(source, name, filename)
        _Guards().visit(parsed)
        parsed.set_environment(self)
        return parsed


class _Guards(NodeTransformer):
    """Inserts calls of the sandbox into a parsed template: one at the start of each loop round and
    macro, and one in place of each concatenation.
    """

    def visit_For(self, node: tree.For) -> tree.Node:
        """Return a loop that counts its rounds."""
        return self._with_round_count(node)

    def visit_Macro(self, node: tree.Macro) -> tree.Node:
        """Return a macro that counts its calls."""
        return self._with_round_count(node)

    def visit_Concat(self, node: tree.Concat) -> tree.Node:
        """Return a call of the sandbox's ``concatenate`` for the operator ``~``."""
        self.generic_visit(node)
        return _call(node, "concatenate", node.nodes)

    def _with_round_count(self, node: tree.For | tree.Macro) -> tree.Node:
        """Insert a call of ``count_round`` as the first statement of the body of a loop or macro,
        and return ``node`` itself. The argument is the number of characters of template text in it,
        inner loops included.
        """
        size = sum(len(text.data) for text in node.find_all(tree.TemplateData))
        self.generic_visit(node)
        count = _call(node, "count_round", [tree.Const(size, lineno=node.lineno)])
        node.body.insert(0, tree.ExprStmt(count, lineno=node.lineno))
        return node


def _call(node: tree.Node, method: str, arguments: list[tree.Expr]) -> tree.Call:
    """Return the call of a method of the sandbox."""
    function = tree.EnvironmentAttribute(method, lineno=node.lineno)
    return tree.Call(function, arguments, [], None, None, lineno=node.lineno)


def package_templates(package: str, folder: str) -> dict[str, str]:
    """Return the templates in a folder of an installed package, by path below the folder."""
    return dict(_read(files(package) / folder, ""))


def _read(folder: Traversable, prefix: str) -> Iterable[tuple[str, str]]:
    """Yield the path below the top folder and the text of each ``.j2`` file in a folder and its
    subfolders, sorted by name. ``prefix`` is the path of the folder.
    """
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _read(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".j2"):
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")
