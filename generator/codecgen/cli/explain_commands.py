"""The commands explain, diff and json-schema."""

from __future__ import annotations

import argparse
import json

from codecgen.cli import evolution_commands
from codecgen.cli.common import FINDINGS, GOOD, UsageError, print_result, release_of, sound
from codecgen.diagnostics import suggest
from codecgen.plan import as_of
from codecgen.schema.uses import within


def explain(arguments: argparse.Namespace) -> int:
    """Run ``codecgen explain``: print the explanation of a diagnostic id (no schemas are loaded
    then) or of a name. With ``--program`` print the programs of a layout or view. Return 0, or 1
    after printing the diagnostics of the schemas. Raise UsageError for an unknown name or a missing
    schema directory.
    """
    from codecgen.explain import declarations, programs

    advice = None if arguments.program else declarations.explain_diagnostic(arguments.name)
    if advice is not None:
        print_result(*advice.split("\n"))
        return GOOD
    model = sound(arguments.schemas)
    if model is None:
        return FINDINGS
    explained = programs.explain_program if arguments.program else declarations.explain
    try:
        print_result(*explained(model, arguments.name).split("\n"))
    except declarations.UnknownName as error:
        raise UsageError(str(error)) from None
    return GOOD


def diff(arguments: argparse.Namespace) -> int:
    """Run ``codecgen diff``: print the changes between two versions or releases, or since
    ``--against``. Return 0, or 1 after printing the diagnostics of the schemas. Raise UsageError
    for missing or excess arguments, an unknown layout, version or release, a version beside a
    release, or schemas that cannot be loaded.
    """
    from codecgen import diff as differences

    if arguments.against is not None:
        if arguments.layout is not None:
            raise UsageError("--against compares all schemas; leave out LAYOUT, FROM and TO")
        return evolution_commands.diff_against(arguments)
    if arguments.after is None:
        raise UsageError(
            "name LAYOUT, FROM and TO, or another state with --against; see codecgen diff --help"
        )
    model = sound(arguments.schemas)
    if model is None:
        return FINDINGS
    model, name = within(model, arguments.layout)
    known = [*model.layouts, *model.texts]
    layout = model.layouts.get(name)
    if layout is None and name not in model.texts:
        hint = suggest(arguments.layout, known, "declared layouts and texts")
        raise UsageError(f"unknown layout {arguments.layout!r}; {hint}")
    versions = None if layout is None else layout.versions
    sides = []
    for wanted in (arguments.before, arguments.after):
        if versions is not None and wanted.isdecimal() and wanted.isascii():
            if int(wanted) not in versions:
                raise UsageError(f"{name} has versions {versions}, not {wanted}")
            sides.append(differences.Side(f"version {wanted}", model, int(wanted)))
        else:
            release = release_of(wanted, model)
            sides.append(differences.Side(str(release), as_of(model, release), None))
    if (sides[0].version is None) != (sides[1].version is None):
        raise UsageError("a version and a release cannot be compared; name two of a kind")
    print_result(*differences.diff(name, *sides).split("\n"))
    return GOOD


def print_json_schema(arguments: argparse.Namespace) -> int:
    """Run ``codecgen json-schema``: print the JSON Schema of the schema language. Return 0."""
    from codecgen.json_schema import json_schema

    print(json.dumps(json_schema(), indent=2))
    return GOOD
