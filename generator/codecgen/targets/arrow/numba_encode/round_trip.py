"""Whether a reader finds the columns as they are in what was written."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.columns import Leaf
from codecgen.plan.nodes import Value
from codecgen.plan.read_program import array_refusals
from codecgen.plan.value_ranges import exact_range, wrapped_range
from codecgen.plan.write_ops import Bits, Number, leaf_of
from codecgen.targets.arrow.arithmetic import Term
from codecgen.targets.arrow.code_tree import (
    FALSE,
    TRUE,
    Expr,
    Num,
    Pick,
    Var,
    all_of,
    call,
    invert,
    replaced,
    variables,
)
from codecgen.targets.arrow.numba_encode.planner_function import PlannerFunction
from codecgen.targets.arrow.numba_encode.view import BYTES_LIKE


class RoundTrip:
    """Emits the checks, in pass 1 of writing, that a reader of the written entry would return the
    given columns, for the current row and for earlier rows of the entry. A row that fails one (a
    "stop") ends the entry before it, or is refused if it is the first.
    """

    def __init__(self, frame: PlannerFunction) -> None:
        self.frame = frame
        self.code = frame.code
        self.program = frame.program
        self.found = Var("back")
        self.numbers = [
            value
            for name, value in self.program.values.items()
            if frame.encoders.leaf(name).column.type not in (*BYTES_LIKE, "list")
            and name not in frame.encoders.places
        ]

    def ends(self) -> list[tuple[str, str]]:
        """Return the fields of the first and last array element that readers or rules use, as
        sorted pairs such as ``("last", "offset")``. Raise Unsupported if kernels cannot express
        what a reader computes for a column or requires of the array.
        """
        for value in self.numbers:
            self.frame.read(value)
        array = self.frame.case.array
        if array is not None:
            for rule in array_refusals(array):
                self.frame.condition(self.program.fold_rule(rule, "entry"), "entry", array.field)
        return sorted(self.frame.values.ends)

    def moving(self) -> dict[Var, Var]:
        """Return the variables whose value changes from row to row, each mapped to the variable of
        its value before the current row: fields around the rows that depend on each row, and fields
        of the last element.
        """
        frame = self.frame
        out = {}
        for op in self.program.around:
            if isinstance(op, Number) and op.running:
                name = op.field.name
                out[frame.variables.get("entry", name)] = frame.variables.get("before entry", name)
        for end, name in sorted(frame.values.ends):
            if end == "last":
                out[frame.variables.get(end, name)] = frame.variables.get("before last", name)
        return out

    # ------------------------------------------------------------ columns

    def columns(self, leaves: list[Leaf]) -> None:
        """Emit stops for rows in which a reader would not return the value of one of ``leaves``. If
        readers compute no value for a column, and for bytes and lists, a given column must be null,
        or an empty list; given columns of other types that are not nullable stop every row. Skip
        columns of file positions and columns that are read from the field that they are written to.
        Raise Unsupported if kernels cannot express a value.
        """
        frame = self.frame
        for leaf in leaves:
            value = self.program.values.get(leaf.column.name)
            if leaf.column.name in frame.encoders.places:
                continue
            if value is not None and self.is_itself(leaf, value):
                continue
            given = frame.variables.leaf_variable(leaf, "given")
            n = frame.variables.value(leaf)
            if leaf.column.type in (*BYTES_LIKE, "list"):
                there = n > 0 if leaf.column.type == "list" else n >= 0
                frame.stop(all_of([given, there]), leaf.index)
            elif value is None:
                null = frame.variables.get("null row", leaf.column.name)
                tests = [given, invert(null)] if leaf.column.nullable else [given]
                frame.stop(all_of(tests), leaf.index)
            else:
                self.number(leaf, value, given, n)

    def is_itself(self, leaf: Leaf, value: Value) -> bool:
        """Return True if ``value``, which a reader computes for a column, is the field or the bits
        of the row to which the same column is written unchanged.
        """
        while isinstance(value, nodes.DerivedValue) and not _wraps(value):
            value = value.value
        match value:
            case nodes.FieldValue(holders=()) as word:
                name = None
            case nodes.BitValue(word, m) if not word.holders:
                name = m.name
            case _:
                return False
        if word.owner == "own" and self.program.around:
            return False
        op = self.program.find_op("item", word.field.name)
        own: Value | None = None
        match op:
            case Number(value=own) if name is None:
                pass
            case Bits(members=members):
                own = next((m.value for m in members if m.bits.name == name), None)
        if op is not None and leaf_of(op) is leaf:
            return True
        return isinstance(own, nodes.ColumnValue) and (
            own.which == "row" and own.column.name == leaf.column.name
        )

    def number(self, leaf: Leaf, value: Value, given: Expr, n: Var) -> None:
        """Emit stops for rows in which ``value``, as a reader computes it, differs from the value
        of a numeric column, if the column is given; also as computed with the values before the
        row, so that earlier rows stay right. Note columns that vary by row in ``varying``. Raise
        Unsupported if kernels cannot express the value.
        """
        frame = self.frame
        term = frame.read(value)
        if leaf.column.type == "bool":
            term = Term(_as_bit(term, value), term.null)
        elif term.truth:
            term = Term(call("int", term.value), term.null)
        read = variables(term.value) | (set() if term.null is None else variables(term.null))
        moving = {old: new for old, new in self.moving().items() if old in read}
        rows = (op for op in self.program.row if isinstance(op, Number | Bits))
        own = {frame.variables.get("item", op.field.name) for op in rows}
        own |= {v for leaf in frame.encoders.view.leaves for v in [frame.variables.value(leaf)]}
        if moving or read & own:
            frame.encoders.varying.add(leaf.name)
        terms = [term]
        if moving:
            null = None if term.null is None else replaced(term.null, moving)
            terms.append(Term(replaced(term.value, moving), null))
        if isinstance(term.value, Pick) or leaf.column.nullable:
            with self.code.when(given):
                for found in terms:
                    self.compare(leaf, found, n)
            return
        for found in terms:
            frame.stop(all_of([given, _differs(found.value, n)]), leaf.index)

    def compare(self, leaf: Leaf, term: Term, n: Var) -> None:
        """Emit a stop where the value that a reader computes (``term``) differs from the column's
        value in the variable ``n``. For a nullable column, first compare whether both are null, and
        compare values only where they are not. The caller tests whether the column is given.
        """
        frame, back = self.frame, self.found
        if not leaf.column.nullable:
            self.code.choose(back, term.value)
            frame.stop(back.ne(n), leaf.index)
            return
        null = frame.variables.get("null row", leaf.column.name)
        expected = FALSE if term.null is None else term.null
        frame.stop(_unlike(null, expected), leaf.index)
        if expected == TRUE:
            return
        value = term.value
        if not isinstance(value, Num):
            self.code.choose(back, value)
            value = back
        frame.stop(all_of([invert(null), _differs(value, n)]), leaf.index)


def _wraps(value: nodes.DerivedValue) -> bool:
    """Return True if wrapping to its bits can change a derived value."""
    exact = exact_range(value.value)
    return wrapped_range(exact, value.bits) != exact


def _as_bit(term: Term, value: Value) -> Expr:
    """Return the value of a bool column as the number 1 or 0: conditions and numbers other than 0
    give 1. A number that is known to be 0 or 1 stays as it is.
    """
    if term.truth:
        return call("int", term.value)
    low, high = exact_range(value)
    return term.value if low >= 0 and high <= 1 else call("int", term.value.ne(0))


def _differs(value: Expr, n: Var) -> Expr:
    """Return the test that ``value`` differs from the variable ``n``."""
    return n.ne(value) if isinstance(value, Num) else value.ne(n)


def _unlike(null: Var, expected: Expr) -> Expr:
    """Return the condition that the null flag of a column differs from the reader's."""
    if expected == FALSE:
        return null
    return invert(null) if expected == TRUE else null.ne(expected)
