"""The modules of a view into payloads: its description, and its kernel."""

from __future__ import annotations

from codecgen.diagnostics import Diagnostic
from codecgen.plan import Plan
from codecgen.plan.payloads import is_whole, plan_payloads
from codecgen.schema.model import View
from codecgen.targets.arrow.checks import Unsupported, refusal
from codecgen.targets.arrow.numba_decode.payload_kernels import payload_kernels_of
from codecgen.targets.target_output import Emitted
from codecgen.targets.view_columns import module_of, payload_view


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
    kernels = f"{package}.arrow.{view.name}_kernels" if files else None
    code = payload_view(plan, made, kernels)
    files[f"{package}/arrow/{view.name}.py"] = module_of(made, code, mark)
    return Emitted(files, notes=tuple(notes))
