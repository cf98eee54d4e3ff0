"""The modules of a view into payloads: its description, and its kernel."""

from __future__ import annotations

from codecgen.diagnostics import Diagnostic
from codecgen.plan import Plan
from codecgen.plan.columns import Leaf, ViewPlan
from codecgen.plan.payloads import PayloadPlan, is_whole, plan_payloads
from codecgen.plan.sensitive_columns import sensitivity
from codecgen.schema.model import View
from codecgen.targets.arrow.checks import Unsupported, refusal, tuple_of
from codecgen.targets.arrow.numba_decode.payload_kernels import payload_kernels_of
from codecgen.targets.python_source import Code, assign, call, docstring, sensitive_code, string
from codecgen.targets.target_output import Emitted


def emit(plan: Plan, view: View, mark: str) -> Emitted:
    """What there is of a view. Without a kernel it is read by the reference codecs, and a note says why."""
    if not is_whole(plan, view):
        return Emitted({})  # the formats as they were before there was any of it
    made = plan_payloads(plan, view)
    package = plan.manifest.package
    files: dict[str, str] = {}
    notes: list[Diagnostic] = []
    try:
        doc = (
            f"Kernel of the view {view.name}. {mark} {view.span.file}; do not edit.",
            f"It reads what {', '.join(made.files())} describe. It takes addresses, and trusts nothing in the bytes that these "
            "point to.",
        )
        files[f"{package}/arrow/{view.name}_kernels.py"] = payload_kernels_of(plan, made, *doc)
    except Unsupported as error:
        help = f'the view "{view.name}" at {view.span} is read by the reference codecs'
        notes.append(refusal(error, "target arrow", help))
    files[f"{package}/arrow/{view.name}.py"] = _description(package, made, mark, bool(files))
    return Emitted(files, notes=tuple(notes))


def _description(package: str, view: PayloadPlan, mark: str, kernels: bool) -> str:
    of = view.view
    columns = [column_of(view, leaf) for leaf in view.leaves if leaf.inside is None]
    code = call(
        "PayloadView",
        name=string(of.name),
        parts=tuple_of([string(part.name) for part in view.parts]),
        columns=tuple_of(columns),
        rows=string(f"{package}.rows.{of.name}"),
        kernels=string(f"{package}.arrow.{of.name}_kernels") if kernels else None,
    )
    lines = [
        docstring(of.doc or f"The view {of.name}.", f"{mark} {of.span.file}; do not edit."),
        "",
        "from codecgen.runtime.arrow.view import Column, PayloadView",
        *sensitive_import(view),
        "",
        assign(of.name.upper(), code),
    ]
    return "\n".join([*lines, "", f"__all__ = [{string(of.name.upper())}]"]) + "\n"


def sensitive_import(view: ViewPlan | PayloadPlan) -> list[str]:
    """Return the line that imports what :func:`column_of` needs for secrets; none if there are no secrets."""
    if not any(sensitivity(view, leaf) for leaf in view.leaves):
        return []
    return ["from codecgen.runtime.sensitive import Sensitive"]


def column_of(view: ViewPlan | PayloadPlan, leaf: Leaf) -> Code:
    """A column, as the description of a view says it."""
    column = leaf.column
    inside: list[Code] = [column_of(view, inner) for inner in view.inside(leaf)]
    element = column.element is not None
    secret = sensitivity(view, leaf)
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
