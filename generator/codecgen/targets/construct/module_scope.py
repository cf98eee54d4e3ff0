"""Names that one generated module of target construct uses: imports, references, and expressions as Python."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.diagnostics import Diagnostic, Span
from codecgen.plan import Plan
from codecgen.plan.nodes import Value
from codecgen.targets.construct.class_names import Classes
from codecgen.targets.construct.expressions import PythonExpressions
from codecgen.targets.construct.homes import Aliases, Home, class_name
from codecgen.targets.python_source import Code

RUNTIME = "codecgen.runtime.construct"


class ModuleScope:
    """Imports, names and C023 findings of one generated module, shared by the classes that print
    its parts.

    ``homes`` has the module of each declaration, ``classes`` the names of the classes of parsed values. ``exported`` has
    the names that the module defines for others, ``defined`` the layouts that it has defined so far.
    """

    def __init__(
        self, plan: Plan, file: str, home: Home, homes: Mapping[str, Home], classes: Classes
    ) -> None:
        self.plan = plan
        self.file = file
        self.home = home
        self.homes = homes
        self.classes = classes
        self.runtime: set[str] = set()
        self.imports: dict[Home, set[str]] = {}
        self.exported: list[str] = []
        self.defined: set[str] = set()
        self.diagnostics: list[Diagnostic] = []
        self._aliases = Aliases(plan.model, classes.own.reserved_names)

    def use(self, name: str) -> str:
        """Import a name of the runtime, and return it."""
        self.runtime.add(name)
        return name

    def refer(self, thing: str, name: str) -> str:
        """Return the name by which this module knows ``name`` of the declaration ``thing``: itself,
        or a unique alias if another schema directory declares it. Import it unless this module
        defines it. Raise KeyError for an unknown declaration.
        """
        home = self.homes[thing]
        alias = self._aliases.name(thing, name)
        if home != self.home:
            imported = name if alias == name else f"{name} as {alias}"
            self.imports.setdefault(home, set()).add(imported)
        return alias

    def report_unsupported(self, message: str, span: Span, help: str = "") -> None:
        """Report C023: the target cannot express something."""
        self.diagnostics.append(Diagnostic("C023", message, span, help=help))

    def expressions(self, this: str = "this", bits: int | None = None) -> PythonExpressions:
        """Return a printer of expressions whose fields belong to the variable ``this``."""
        return PythonExpressions(lambda e: self.refer(e, class_name(e)), this=this, bits=bits)

    def function(self, value: Value | None) -> str | None:
        """Return the source of a lambda that computes a value from the fields of a layout (``lambda
        this: ..``, or ``lambda _: ..`` if it needs none), or None if ``value`` is None. Import the
        runtime functions that it calls and the enums that it names. Raise TypeError for values that
        have no expression.
        """
        if value is None:
            return None
        expressions = self.expressions()
        text = expressions.function(value)
        self.runtime |= expressions.helpers
        return text

    def condition(self, value: Value, bits: int | None = None) -> Code:
        """Return the code of a lambda that tests a condition on the fields of a layout. Import the
        runtime functions that it calls and the enums that it names. Sums wrap to ``bits`` bits
        (None: not at all). Raise TypeError for values that have no expression.
        """
        expressions = self.expressions(bits=bits)
        code = expressions.condition(value)
        self.runtime |= expressions.helpers
        return code
