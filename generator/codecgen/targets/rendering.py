"""Templates in Jinja2's sandbox: they see what they are given, and are bounded in what they do and write.

What a template prints goes through ``finalize`` of its target, so that text of a schema is escaped wherever it stands.
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

from codecgen.diagnostics import Diagnostic
from codecgen.schema.model import Span

_GROWING = {"center", "expandtabs", "ljust", "rjust", "zfill"}
"""Methods of text that make much of little."""
_WITHOUT = (
    "center",
    "format",
    "indent",
    "pprint",
    "random",
    "safe",
    "urlize",
    "wordwrap",
    "xmlattr",
)
"""Filters that are left out: they grow without bound, differ from run to run, or leave text unescaped."""

_OF_OURS = re.compile(r"'codecgen\.[A-Za-z_.]*\.(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """The most that one file may take: characters, and rounds of loops and macros."""

    characters: int = 16 << 20
    rounds: int = 1_000_000


class RenderError(Exception):
    """A template cannot be rendered. ``template`` is its file, ``line`` where it went wrong."""

    def __init__(self, reason: str, template: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.template = template
        self.line = line

    def diagnostic(self) -> Diagnostic:
        span = Span(self.template, self.line, 1, 1)
        return Diagnostic("C033", f"the template cannot be rendered: {self.reason}", span)


class Renderer:
    """Templates by name, with the filters and the escaping of a target."""

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
        self._environment.filters.update(filters)

    def render(self, name: str, **values: object) -> str:
        """The text that a template gives. Raises :class:`RenderError`."""
        self._environment.rounds = 0
        parts = []
        written = 0
        try:
            for part in self._environment.get_template(name).generate(**values):
                written += len(part)
                if written > self._limits.characters:
                    raise TemplateRuntimeError(
                        f"it writes more than {self._limits.characters} characters"
                    )
                parts.append(part)
        except TemplateNotFound as error:
            raise self._error(error, name, f"there is no template {error.name!r}") from None
        except RecursionError as error:
            raise self._error(error, name, "macros or includes call themselves") from None
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise self._error(error, name, str(error) or type(error).__name__) from None
        except AttributeError as error:
            raise self._error(error, name, str(error)) from None
        return "".join(parts)

    def _error(self, error: Exception, name: str, reason: str) -> RenderError:
        """The error with the innermost place in a template."""
        template, line = name, 1
        at = error.__traceback__
        while at is not None:
            if at.tb_frame.f_code.co_filename in self._templates:
                template, line = at.tb_frame.f_code.co_filename, at.tb_lineno
            at = at.tb_next
        if isinstance(number := getattr(error, "lineno", None), int):
            template, line = getattr(error, "name", None) or template, number
        words = _OF_OURS.sub("'", " ".join(reason.split()))
        return RenderError(words, template, line)


class _Loader(BaseLoader):
    def __init__(self, templates: Mapping[str, str]) -> None:
        self.templates = templates

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool]]:
        if template not in self.templates:
            raise TemplateNotFound(template)
        return self.templates[template], template, lambda: True


class _Sandbox(ImmutableSandboxedEnvironment):
    """The sandbox, with rounds counted, and values that are put together bounded and escaped."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, limits: RenderLimits, **options: Any) -> None:
        super().__init__(**options)
        self.limits = limits
        self.rounds = 0

    def count_round(self) -> None:
        """Count a round of a loop or the call of a macro."""
        self.rounds += 1
        if self.rounds > self.limits.rounds:
            raise TemplateRuntimeError(f"more than {self.limits.rounds} rounds of loops and macros")

    def together(self, *parts: object) -> str:
        """The operator ``~``: with anything but plain text, each part as if it were printed alone."""
        if all(type(part) in (str, int, bool) for part in parts):
            return str(self.bounded("".join(map(str, parts))))
        finalize = self.finalize or str
        return Markup(self.bounded("".join(str(finalize(part)) for part in parts)))

    def bounded(self, value: Any) -> Any:
        if isinstance(value, str | list | tuple) and len(value) > self.limits.characters:
            raise SecurityError(f"a value of more than {self.limits.characters} characters")
        return value

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        numbers = isinstance(left, int) and isinstance(right, int)
        if operator == "**" or not (numbers or operator == "+"):
            raise SecurityError(f"the operator {operator} is for numbers only, and ** for none")
        if isinstance(left, str) or isinstance(right, str):
            raise SecurityError("text is put together with ~")
        return self.bounded(super().call_binop(context, operator, left, right))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str) and attr in _GROWING:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        if super().wrap_str_format(value) is not None:
            raise SecurityError("the methods format and format_map are not for templates")
        return None

    def _parse(self, source: str, name: str | None, filename: str | None) -> tree.Template:
        parsed = super()._parse(source, name, filename)
        _Guards().visit(parsed)
        parsed.set_environment(self)
        return parsed


class _Guards(NodeTransformer):
    """Puts the sandbox's own functions into templates: where rounds begin, and where values are put together."""

    def visit_For(self, node: tree.For) -> tree.Node:
        return self._counted(node)

    def visit_Macro(self, node: tree.Macro) -> tree.Node:
        return self._counted(node)

    def visit_Concat(self, node: tree.Concat) -> tree.Node:
        self.generic_visit(node)
        return _call(node, "together", node.nodes)

    def _counted(self, node: tree.For | tree.Macro) -> tree.Node:
        self.generic_visit(node)
        node.body.insert(0, tree.ExprStmt(_call(node, "count_round", []), lineno=node.lineno))
        return node


def _call(node: tree.Node, method: str, arguments: list[tree.Expr]) -> tree.Call:
    function = tree.EnvironmentAttribute(method, lineno=node.lineno)
    return tree.Call(function, arguments, [], None, None, lineno=node.lineno)


def packaged(package: str, folder: str) -> dict[str, str]:
    """The templates of a folder of a package of ours, by path below it."""
    return dict(_read(files(package) / folder, ""))


def _read(folder: Traversable, prefix: str) -> Iterable[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _read(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".j2"):
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")
