"""Target template: a directory of the user's own templates, filled in with the plan as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.diagnostics import Diagnostic, Span, did_you_mean
from codecgen.plan import Plan
from codecgen.targets.rendering import RenderError, package_templates
from codecgen.targets.target_output import Emitted
from codecgen.targets.template.build import build
from codecgen.targets.template.outputs import PATHS, Output, outputs, unknown_names
from codecgen.targets.template.writing import Writer

KAITAI = "sets/kaitai"


def emit(plan: Plan, templates: Mapping[str, str]) -> Emitted:
    """Return the files that templates (text by path) produce, at the paths that their names give,
    with the warnings that templates add. Return only C034 findings if a name has an unknown or a
    second, different placeholder, or if two files get the same path in any letter case. Return only
    a C033 finding, for the first failure, if a template cannot be rendered.
    """
    wrong = [_unknown_placeholder(name, word) for name in templates for word in unknown_names(name)]
    if wrong:
        return Emitted({}, tuple(wrong))
    root = build(plan)
    found = outputs(root, templates)
    twice = _find_path_collisions(found)
    if twice:
        return Emitted({}, tuple(twice))
    writer = Writer(root, templates)
    try:
        files = {output.path: writer.write(output) for output in found}
    except RenderError as error:
        return Emitted({}, (error.diagnostic(),))
    return Emitted(files, warnings=writer.warnings)


def emit_kaitai(plan: Plan, templates: Mapping[str, str]) -> Emitted:
    """Return Kaitai Struct specifications (.ksy) of the parts of layouts at a fixed place or after a length."""
    return emit(plan, {**package_templates("codecgen.targets.template", KAITAI), **templates})


def _unknown_placeholder(template: str, word: str) -> Diagnostic:
    """Return the C034 finding for an unknown name in the name of a template."""
    hint = did_you_mean(word, PATHS) or f"a name may have {', '.join(PATHS)}"
    message = f"the name of the template {template} has {{{{{word}}}}}, which does not exist"
    return Diagnostic("C034", message, Span(template, 1, 1, 1), help=hint)


def _find_path_collisions(found: tuple[Output, ...]) -> list[Diagnostic]:
    """Return a C034 finding for each file whose path an earlier file already has, compared without
    case; ``[]`` if there are none.
    """
    taken: dict[str, Output] = {}
    out = []
    for output in found:
        other = taken.setdefault(output.path.lower(), output)
        if other is not output:
            message = f"{output.template} and {other.template} both give the file {output.path}"
            out.append(Diagnostic("C034", message, Span(output.template, 1, 1, 1)))
    return out
