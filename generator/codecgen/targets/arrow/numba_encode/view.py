"""What all kernels that write a view share: the module, the slots of its tables, the programs of its cases."""

from __future__ import annotations

from codecgen.plan import LayoutPlan, Plan, nodes
from codecgen.plan.column_sources import UnsupportedSource, require_simple_columns
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.plan.writable import WriteError
from codecgen.plan.write_ops import Bits, Number, columns_of
from codecgen.plan.write_program import WriteProgram, is_written, write_program
from codecgen.targets.arrow.checks import Unsupported, function_name
from codecgen.targets.arrow.code_tree import Global
from codecgen.targets.arrow.module import KernelModule

SLOTS = ("CASE", "FIRST", "ROWS", "SIZE", "SIZES", "CODEC", "SECTION", "SECTION_SIZE")
"""What the table says of an entry, before the values of its fields."""

BUFFERS = ("data", "offsets", "validity", "bit", "step", "end", "given")
"""What the kernels are told of a column: addresses, the bit where it begins, 1 or 0 for one value for all rows, the
address where the data end, whether the rows have the column."""

BYTES_LIKE = ("binary", "string")

UNWRITTEN = ("uint8", "uint16", "uint32", "uint64", "float", "double", "uuid", "struct")
"""Types of columns, and of values inside columns, that kernels only read."""

Key = tuple[str, str]


class Encoders:
    """Generated numba functions that write the rows of one view as entries, with the module that
    they are emitted to, its tables, and the write program of each case by number. Pass 1 plans
    entries in the entry table, pass 2 writes them. A case says which layout rows are written to.

    ``varying`` collects the columns that readers compute from each row, not from the entry alone.
    """

    def __init__(self, plan: Plan, view: ViewPlan) -> None:
        self.plan = plan
        self.view = view
        self.module = KernelModule()
        self.varying: set[str] = set()
        for leaf in view.leaves:
            if leaf.column.type in UNWRITTEN:
                raise Unsupported(f"a column with {leaf.column.type} values", leaf.root.column)
        try:
            written = [case for case in view.cases if is_written(case)]
            for case in written:
                require_simple_columns(view, case)
            self.programs = {case.number: write_program(plan, view, case) for case in written}
        except WriteError as error:
            raise Unsupported(error.reason, error.field) from None
        except UnsupportedSource as error:
            raise Unsupported(error.reason, error.field) from None
        self.places = position_columns(view)
        constant = self.module.constant
        self.module.group("A row of the table of entries.")
        self.table = {name: constant(name, 8 * i) for i, name in enumerate(SLOTS)}
        named = sorted(
            {key for program in self.programs.values() for key in stored_values(program)}
        )
        self.kept: dict[Key, Global] = {}
        for i, (kind, name) in enumerate(named, len(SLOTS)):
            self.kept[kind, name] = constant(f"{kind}_{name}".replace(" ", "_").upper(), 8 * i)
        self.width = len(SLOTS) + len(named)
        self.size_of_entry = constant("SIZE_OF_ENTRY", 8 * self.width)
        self.module.group("What is known of columns.")
        self.extra = constant("EXTRA", 0)
        self.columns = {
            (leaf.index, part): constant(
                f"{leaf.name}_{part}".upper(), 8 + 8 * (len(BUFFERS) * leaf.index + i)
            )
            for leaf in view.leaves
            for i, part in enumerate(BUFFERS)
        }
        self.functions: dict[tuple[str, int], Global] = {}

    def function(self, verb: str, case: CasePlan) -> Global:
        """Return the name expression of the function for ``verb``, such as ``write_rows``, and a
        case. The name is reserved on the first call; later calls return the same.
        """
        key = (verb, case.number)
        if key not in self.functions:
            self.functions[key] = Global(self.module.name(f"{verb}_{case.name}"))
        return self.functions[key]

    def entry_function(self, verb: str, entry: LayoutPlan) -> str:
        """Reserve and return a name for the function that does ``verb`` with many entries."""
        return self.module.name(function_name(verb, entry))

    def leaf(self, name: str) -> Leaf:
        """Return the leaf of the column ``name``."""
        return next(x for x in self.view.leaves if x.inside is None and x.column.name == name)

    def entries(self) -> list[tuple[int, LayoutPlan, list[CasePlan]]]:
        """Return the layouts that the kernels write, each once: its first discriminator, its plan,
        and its cases that have write programs. Layouts without such a case are left out.
        """
        out: list[tuple[int, LayoutPlan, list[CasePlan]]] = []
        for key, entry in self.view.entries:
            cases = [c for c in self.view.cases_of(entry) if c.number in self.programs]
            if cases and all(p is not entry for _, p, _ in out):
                out.append((key, entry, cases))
        return out


def stored_values(program: WriteProgram) -> list[Key]:
    """Return the kind and name of each value that pass 1 stores in the entry table for pass 2, each
    once: numbers and bits around the rows, and columns of the first row with their null flags. Rows
    that are entries themselves store nothing.
    """
    out = [("entry", op.field.name) for op in program.around if isinstance(op, Number | Bits)]
    for op in program.row if program.around else ():
        for value in columns_of(op):
            if value.which == "first":
                out.append(("first row", value.column.name))
                if value.type.nullable:
                    out.append(("null first row", value.column.name))
    return list(dict.fromkeys(out))


def position_columns(view: ViewPlan) -> tuple[str, ...]:
    """Return the names of the top-level columns that cases compute from a place, such as the file
    position of an entry, in each case that gives them a value. Such columns are not written.
    """
    out = []
    for leaf in view.leaves:
        found = [case.values.get(leaf.name) for case in view.cases if leaf.inside is None]
        values = [value for value in found if value is not None]
        if values and all(
            any(isinstance(node, nodes.PlaceValue) for node in nodes.iterate_nodes(value))
            for value in values
        ):
            out.append(leaf.name)
    return tuple(out)
