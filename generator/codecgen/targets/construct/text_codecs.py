"""Codecs of text files as Python: lines, and properties."""

from __future__ import annotations

from codecgen.plan.texts import TextPlan, ValuePlan
from codecgen.schema.lookup import integer_range
from codecgen.schema.texts import EachLine, Text, TextValue
from codecgen.targets.construct.module_scope import ModuleScope
from codecgen.targets.python_source import Call, Code, call, listing, string


class TextCodecs:
    """Prints, for one generated module, the Python code that creates the codecs of text files."""

    def __init__(self, scope: ModuleScope) -> None:
        self.scope = scope
        self.plan = scope.plan

    def text_file(self, text: Text) -> Call:
        """Return the call that creates the codec of a text: ``PropertiesFile`` if it has
        properties, otherwise ``LinesFile``, with its lines, properties, tolerances and other
        settings that differ from the default.
        """
        plan = self.plan.texts[text.name]
        items: list[tuple[str, Code]] = [("", string(text.name))]
        for line in text.lines:
            if isinstance(line, EachLine):
                items.append(("", self.each_line(line, plan)))
            else:
                items.append(("", self.text_line(plan.values[line.name], text)))
        items += [("", self.property(plan.values[p.name], text)) for p in text.properties]
        items.append(("source=", string(self.scope.file)))
        if text.accepts:
            items.append(("accepts=", _string_list(text.accepts)))
        if text.may_be_empty:
            items.append(("may_be_empty=", "True"))
        if not text.final_newline:
            items.append(("final_newline=", "False"))
        if text.keep_unknown:
            items.append(("keep_unknown=", "True"))
        kind = "PropertiesFile" if text.properties else "LinesFile"
        return Call(self.scope.use(kind), tuple(items))

    def text_line(self, plan: ValuePlan, text: Text) -> Call:
        """Return the ``TextLine`` call for a line with one value: its codec, source line and rules,
        and its label, separator, constant, count and tolerances if it has them. Raise TypeError if
        a rule or default has no Python expression.
        """
        v = plan.value
        return call(
            self.scope.use("TextLine"),
            string(v.name),
            self.text_value(v),
            line=str(v.span.line),
            label=None if v.label is None else string(v.label),
            separator=string(v.separator) if v.separator else None,
            const=None if v.const is None else str(v.const),
            counts=None if v.counts is None else string(v.counts),
            **self.rules(plan),
            accepts=self.own_tolerances(v.accepts, text),
        )

    def each_line(self, each: EachLine, plan: TextPlan) -> Call:
        """Return the ``EachLine`` call for repeated lines with the same values: codec and rules of
        each value, and the separator, count and tolerances of the lines if they have them. Raise
        TypeError if a rule or default has no Python expression.
        """
        values: list[Code] = []
        for v in each.values:
            rules = self.rules(plan.values[f"{each.name}.{v.name}"])
            name, value = string(v.name), self.text_value(v)
            values.append(
                call(self.scope.use("LineValue"), name, value, line=str(v.span.line), **rules)
            )
        return call(
            self.scope.use("EachLine"),
            string(each.name),
            listing(values),
            line=str(each.span.line),
            separator=string(each.separator) if each.separator else None,
            counted_by=None if each.counted_by is None else string(each.counted_by),
            accepts=self.own_tolerances(each.accepts, plan.text),
        )

    def property(self, plan: ValuePlan, text: Text) -> Call:
        """Return the ``Property`` call for a key of a properties file: its name and key, the codec,
        source line and rules of its value, and its tolerances if it has any. Raise TypeError if a
        rule or default has no Python expression.
        """
        v = plan.value
        return call(
            self.scope.use("Property"),
            string(v.name),
            string(v.key),
            self.text_value(v),
            line=str(v.span.line),
            **self.rules(plan),
            accepts=self.own_tolerances(v.accepts, text),
        )

    def rules(self, plan: ValuePlan) -> dict[str, Code | None]:
        """Return the named arguments ``default``, ``valid`` and ``refuse`` of a value as code, each
        None if the value does not have it. Raise TypeError if one has no Python expression.
        """
        return {
            "default": self.scope.function(plan.default),
            "valid": self.text_rule(plan.value, "valid", plan),
            "refuse": self.text_rule(plan.value, "refuse", plan),
        }

    def text_rule(self, v: TextValue, which: str, plan: ValuePlan) -> Code | None:
        """Return the ``Rule`` call for the rule of the value ``v`` that ``which`` names, ``valid``
        or ``refuse``; None if the value has no such rule. ``plan`` has the rule's condition,
        resolved. Raise TypeError if the condition has no Python expression.
        """
        code = v.valid if which == "valid" else v.refuse
        function = self.scope.function(plan.valid if which == "valid" else plan.refuse)
        if code is None or function is None:
            return None
        return call(self.scope.use("Rule"), string(str(code)), function)

    def text_value(self, v: TextValue) -> Code:
        """Return the call that creates the codec of a value in a text file: ``Decimal`` with the
        limits of its integer type, ``Base64Uuid`` for a uuid, ``Word`` for text without blanks, or
        ``RestOfLine`` for other text.
        """
        if v.kind == "decimal":
            low, high = integer_range(v.of) or (0, 0)
            return call(self.scope.use("Decimal"), str(low), str(high))
        if v.kind == "uuid":
            return call(self.scope.use("Base64Uuid"))
        return call(self.scope.use("Word" if v.of == "word" else "RestOfLine"))

    def own_tolerances(self, accepts: frozenset[str], text: Text) -> Code | None:
        """Return the tolerances of a value that the text as a whole does not have, or None if there are none."""
        own = accepts - text.accepts
        return call("frozenset", _string_list(own)) if own else None


def _string_list(words: frozenset[str]) -> Code:
    """Return a list of string literals, sorted."""
    return listing([string(word) for word in sorted(words)])
