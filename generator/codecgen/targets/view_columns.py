"""Descriptions of the columns of views, as modules of the generated package ``columns``."""

from __future__ import annotations

from codecgen.plan import Plan
from codecgen.plan.columns import Leaf, ViewPlan, has_layouts, plan_view
from codecgen.plan.payloads import PayloadPlan, has_all_parts, plan_payloads
from codecgen.plan.sensitive_columns import sensitivity
from codecgen.schema.model import View
from codecgen.targets.made_for import package_text
from codecgen.targets.python_source import (
    Call,
    Code,
    assign,
    call,
    docstring,
    mapping,
    sensitive_code,
    string,
    tuple_of,
)

RUNTIME = "codecgen.runtime.arrow.view"


def emit(plan: Plan, mark: str) -> dict[str, str]:
    """Return a module with the columns of each view, and the ``__init__.py`` of their package, by
    path. Skip views whose layouts the plan lacks; return ``{}`` if none is left. ``__init__.py``
    lists the views of payloads with their parts. ``mark`` begins the note in each docstring that
    the file is generated. The checks must have accepted the views; otherwise AssertionError,
    KeyError or ValueError is possible.
    """
    package = f"{plan.manifest.package}/columns"
    files: dict[str, str] = {}
    of_payloads: list[tuple[str, Code]] = []
    for view in plan.model.views.values():
        if view.parts and has_all_parts(plan, view):
            payloads = plan_payloads(plan, view)
            code = _payload_view(plan, payloads)
            files[f"{package}/{view.name}.py"] = module_of(plan, payloads, code, mark)
            parts: list[tuple[str, Code]] = [
                (string(n), string(of)) for n, of in view.parts.items()
            ]
            of_payloads.append((string(view.name), mapping(parts)))
        elif not view.parts and has_layouts(plan, view):
            made = plan_view(plan, view)
            code = call("Columns", name=string(view.name), columns=columns_of(plan, made))
            files[f"{package}/{view.name}.py"] = module_of(plan, made, code, mark)
    if files:
        head = f"{plan.manifest.title}: columns of views. {mark} YAML; do not edit."
        text = package_text(head)
        if of_payloads:
            doc = "The views into payloads, each with the layouts or choices that its parts are."
            text += f"\n{assign('PAYLOAD_VIEWS', mapping(of_payloads))}\n{docstring(doc)}\n"
        files[f"{package}/__init__.py"] = text
    return files


def payload_kernels_module(plan: Plan, view: View) -> str | None:
    """Return the dotted name of the module for the compiled kernels of a payload view, None if the view asks for none."""
    return f"{plan.manifest.package}.arrow.{view.name}_kernels" if view.kernels else None


def _payload_view(plan: Plan, view: PayloadPlan) -> Call:
    """Return the ``PayloadView`` call for a view of payloads: its parts, columns, the module of its
    row functions and, if the view asks for them, of its kernels.
    """
    kernels = payload_kernels_module(plan, view.view)
    return call(
        "PayloadView",
        name=string(view.view.name),
        parts=tuple_of([string(part.name) for part in view.parts]),
        columns=columns_of(plan, view),
        rows=string(f"{plan.manifest.package}.rows.{view.view.name}"),
        kernels=None if kernels is None else string(kernels),
    )


def module_of(plan: Plan, view: ViewPlan | PayloadPlan, code: Call, mark: str, *names: str) -> str:
    """Return the text of the module that assigns ``code``, the description of a view, to the view's
    upper-case name. It imports the class of ``code``, ``Column`` and ``names`` from the runtime,
    and ``Sensitive`` if a column may be secret. ``mark`` begins the note that the file is
    generated.
    """
    of: View = view.view
    lines = [
        docstring(of.doc or f"The view {of.name}.", f"{mark} {of.span.file}; do not edit."),
        "",
        f"from {RUNTIME} import {', '.join(sorted({*names, 'Column', code.head}))}",
    ]
    if any(sensitivity(plan, view, leaf) for leaf in view.leaves):
        lines.append("from codecgen.runtime.sensitive import Sensitive")
    lines += ["", assign(of.name.upper(), code), "", f"__all__ = [{string(of.name.upper())}]"]
    return "\n".join(lines) + "\n"


def columns_of(plan: Plan, view: ViewPlan | PayloadPlan) -> Call:
    """Return the columns of a view."""
    return tuple_of([_column(plan, view, leaf) for leaf in view.leaves if leaf.inside is None])


def _column(plan: Plan, view: ViewPlan | PayloadPlan, leaf: Leaf) -> Call:
    """Return the ``Column`` call for a column: name, type, index, members or element,
    documentation, and whether it is nullable, on request or secret, each if it applies.
    """
    column = leaf.column
    inside: list[Code] = [_column(plan, view, inner) for inner in view.inside(leaf)]
    element = column.element is not None
    secret = sensitivity(plan, view, leaf)
    return call(
        "Column",
        string(column.name),
        string(column.type),
        str(leaf.index),
        members=tuple_of(inside) if inside and not element else None,
        element=inside[0] if element else None,
        nullable="True" if column.nullable else None,
        on_request="True" if column.on_request else None,
        doc=string(column.doc) if column.doc else None,
        sensitive=None if secret is None else sensitive_code("Sensitive", secret),
    )
