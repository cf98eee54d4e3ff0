"""The kernels of a view as Python: index the entries, check their rows and write them into Arrow buffers."""

from __future__ import annotations

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.columns import ViewPlan
from codecgen.targets.arrow.checks import function_name
from codecgen.targets.arrow.code_tree import Call, Function, Global, Var, call
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.index_kernel import Index
from codecgen.targets.arrow.numba_decode.rows_kernel import RowsKernel
from codecgen.targets.arrow.numba_decode.view import Kernels


def kernels_of(plan: Plan, view: ViewPlan, *doc: str) -> tuple[Kernels, str]:
    """Return the Kernels of a view and the source of their module; ``doc`` has the paragraphs of
    the module's docstring, at least one. Raise Unsupported if kernels cannot read the view; callers
    have let :func:`refuse_unsupported_view` refuse other fields before.
    """
    kernels = Kernels(plan, view)
    passes = []
    for entry, keys in view.layouts():
        index = Index(kernels, entry, keys)
        names = [index.emit(), ""]
        fills = [RowsKernel(kernels, index, case) for case in view.cases_of(entry)]
        for fill in fills:
            fill.rows()
            fill.same()
        names[1] = decode(kernels, entry, fills)
        passes += [f"    {key}: ({', '.join(names)})," for key in keys]
    table = ["KERNELS: dict[int, tuple[Any, Any]] = {", *passes, "}"]
    table.append('"""The two passes, by the number that tells entries apart."""')
    return kernels, kernels.module.text(table, doc[0], *doc[1:])


def decode(kernels: Kernels, entry: LayoutPlan, fills: list[RowsKernel]) -> str:
    """Emit the function that decodes the rows of the entries from index ``first`` to ``last``
    (exclusive), pass 2, and return its name. The function returns ``last``, or the index of the
    first entry that failed in pass 1, is invalid or does not fit, where it stops. Columns that are
    equal in all rows of an entry are filled for the rows that it wrote, also if it failed in this
    pass. ``fills`` has the row functions of each case.
    """
    code, slots = Builder(), kernels.slots
    parameters = [
        Var(n) for n in ("table", "first", "last", "max_elements", "bias", "out", "state", "room")
    ]
    table, first, last, max_elements, bias, out, state, room = parameters
    i, row, case, at, done = map(Var, ("i", "row", "case", "at", "done"))
    with code.count(i, first, last):
        code.assign(row, table + i * kernels.row_size)
        with code.when(call("load_i64_le", row + slots["STATUS"])):
            code.emit_return(i)
        code.assign(case, call("load_i64_le", row + slots["CASE"]))
        code.assign(at, call("load_i64_le", state + kernels.state["ROWS"]))
        code.assign(done, 0)
        for fill in fills:
            with code.when(case.eq(fill.case.number)):
                arguments = (row, out, state, room, max_elements, bias)
                code.assign(done, Call(Global(fill.rows_name), arguments, (), False))
                same = (row, out, state, at, bias)
                code.do_call(Call(Global(fill.same_name), same, (), False))
        with code.when(done.eq(0)):
            code.emit_return(i)
    code.emit_return(last)
    name = kernels.module.name(function_name("decode_all", entry))
    doc = (
        "Pass 2: check the rows of entries and write them, until one is not as it should be or does not fit. The first "
        "entry that is not done."
    )
    typed = [(parameter, "int") for parameter in parameters]
    kernels.module.functions.append(Function(name, typed, "int", doc, code.body, "jit"))
    return name
