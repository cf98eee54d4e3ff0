"""The kernels that write a view as Python: cut rows into entries, and write these."""

from __future__ import annotations

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.columns import CasePlan, ViewPlan
from codecgen.targets.arrow.code_tree import Call, Function, Var, call
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_encode.entry_planner import EntryPlanner, plan_entries
from codecgen.targets.arrow.numba_encode.entry_writer import EntryWriter
from codecgen.targets.arrow.numba_encode.view import Encoders


def encoders_of(plan: Plan, view: ViewPlan, *doc: str) -> tuple[Encoders, str]:
    """Return the Encoders of a view and the source of the kernel module that writes it; ``doc`` has
    the paragraphs of the module's docstring, at least one. Raise Unsupported if kernels cannot
    write the view.
    """
    encoders = Encoders(plan, view)
    table = ["KERNELS: dict[int, tuple[Any, Any, Any]] = {"]
    for key, entry, cases in encoders.entries():
        programs = [encoders.programs[case.number] for case in cases]
        for program in programs:
            EntryPlanner(encoders, program).emit()
        names = [plan_entries(encoders, entry, cases)]
        for program in programs:
            EntryWriter(encoders, program, rows=True).emit()
            if program.around:
                EntryWriter(encoders, program, rows=False).emit()
        names += [
            write_compressed_rows(encoders, entry, cases),
            write_entries(encoders, entry, cases),
        ]
        table.append(f"    {key}: ({', '.join(names)}),")
    table.append("}")
    table.append('"""What cuts, fills and writes, by the number that tells entries apart."""')
    return encoders, encoders.module.text(table, doc[0], *doc[1:])


def write_compressed_rows(encoders: Encoders, entry: LayoutPlan, cases: list[CasePlan]) -> str:
    """Emit the function that writes the rows, not yet compressed, of the entries ``first`` to
    ``last`` (exclusive) whose codec is not 0, one after the other at ``p``. It notes their
    addresses in the table and returns the address after them. Return the function's name.
    """
    code = Builder()
    columns, table, first, last, p = parameters = _parameters()
    i, own, case = map(Var, ("i", "entry", "case"))
    slots = encoders.table
    with code.count(i, first, last):
        code.assign(own, table + i * encoders.size_of_entry)
        with code.when(call("load_i64_le", own + slots["CODEC"]).eq(0)):
            code.leave("continue")
        code.do("store_64", own + slots["SECTION"], p)
        code.assign(case, call("load_i64_le", own + slots["CASE"]))
        for written in cases:
            if written.array is not None:
                with code.when(case.eq(written.number)):
                    rows = encoders.function("write_rows", written)
                    code.assign(p, Call(rows, (columns, own, p), (), False))
    code.emit_return(p)
    doc = (
        "Write the rows of the entries that are compressed, one after the other, and note where they are. The address "
        "after them."
    )
    name = encoders.entry_function("write_compressed_rows", entry)
    typed = [(parameter, "int") for parameter in parameters]
    encoders.module.functions.append(Function(name, typed, "int", doc, code.body, "jit"))
    return name


def write_entries(encoders: Encoders, entry: LayoutPlan, cases: list[CasePlan]) -> str:
    """Emit the function that writes the entries ``first`` to ``last`` (exclusive) of the table at
    ``p``, one after the other, and returns the address after them. An entry without fields around
    its rows is its rows. Return the function's name.
    """
    code = Builder()
    columns, table, first, last, p = parameters = _parameters()
    i, own, case = map(Var, ("i", "entry", "case"))
    with code.count(i, first, last):
        code.assign(own, table + i * encoders.size_of_entry)
        code.assign(case, call("load_i64_le", own + encoders.table["CASE"]))
        for written in cases:
            with code.when(case.eq(written.number)):
                verb = "write_rows" if written.array is None else "write_entry"
                function = encoders.function(verb, written)
                code.assign(p, Call(function, (columns, own, p), (), False))
    code.emit_return(p)
    name = encoders.entry_function("write_entries", entry)
    doc = "Pass 2: write entries one after the other. The address after them."
    typed = [(parameter, "int") for parameter in parameters]
    encoders.module.functions.append(Function(name, typed, "int", doc, code.body, "jit"))
    return name


def _parameters() -> tuple[Var, Var, Var, Var, Var]:
    """Return the variables of the parameters that the writing functions share."""
    return Var("columns"), Var("table"), Var("first"), Var("last"), Var("p")
