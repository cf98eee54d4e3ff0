"""Bodies of functions, put together statement by statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from codecgen.targets.arrow.code_tree import (
    Add,
    Assign,
    Branch,
    Call,
    Do,
    Expr,
    For,
    Leave,
    Pick,
    Return,
    Statement,
    Var,
    While,
    effect,
    expr,
)


class Builder:
    """Builds the body of a generated function as a tree, statement by statement. Methods append to
    the innermost open block. A context manager opens a block, and appends its compound statement
    when the context ends; after an exception the statement is dropped.

    Attributes:
        body: Statements of the innermost block that is open.
    """

    def __init__(self) -> None:
        self.body: list[Statement] = []

    def assign(self, target: Var, value: Expr | int, remark: str = "") -> None:
        """Add ``target = value``, with a comment if there is a ``remark``."""
        self.body.append(Assign((target,), expr(value), remark))

    def choose(self, target: Var, value: Expr, remark: str = "") -> None:
        """Add ``target = value``. If ``value`` is a conditional expression, add ``if``, ``elif``
        and ``else`` with an assignment each. ``remark`` becomes a comment of a single assignment
        only.
        """
        if not isinstance(value, Pick):
            self.assign(target, value, remark)
            return
        with self.when(value.condition):
            self.assign(target, value.then)
        rest = value.otherwise
        while isinstance(rest, Pick):
            with self.otherwise(rest.condition):
                self.assign(target, rest.then)
            rest = rest.otherwise
        with self.otherwise():
            self.assign(target, rest)

    def unpack(self, targets: tuple[Var, ...], value: Expr) -> None:
        """Add the assignment of the elements of ``value`` to several variables."""
        self.body.append(Assign(targets, value))

    def add(self, target: Var, value: Expr | int, remark: str = "") -> None:
        """Add ``target += value``."""
        self.body.append(Add(target, expr(value), "+=", remark))

    def subtract(self, target: Var, value: Expr | int) -> None:
        """Add ``target -= value``."""
        self.body.append(Add(target, expr(value), "-="))

    def do(self, name: str, *arguments: Expr | int, remark: str = "") -> None:
        """Add the call of a primitive whose result is not used."""
        self.body.append(Do(effect(name, *arguments), remark))

    def do_call(self, call: Call, remark: str = "") -> None:
        """Add a call whose result is not used."""
        self.body.append(Do(call, remark))

    def emit_return(self, value: Expr | int | None, remark: str = "") -> None:
        """Add ``return value``."""
        self.body.append(Return(None if value is None else expr(value), remark))

    def leave(self, word: str = "break") -> None:
        """Add ``break`` or ``continue``."""
        self.body.append(Leave(word))

    @contextmanager
    def when(self, condition: Expr) -> Iterator[None]:
        """Open the block of ``if condition:`` for the duration of the context; statements added in
        it go to that block. :meth:`otherwise` adds further arms.
        """
        block: list[Statement] = []
        with self._open_block(block):
            yield
        self.body.append(Branch([(condition, block)]))

    @contextmanager
    def otherwise(self, condition: Expr | None = None) -> Iterator[None]:
        """Open the block of ``elif condition:``, or of ``else:`` without a condition, for the
        duration of the context. The last statement of the open block must be a branch; otherwise
        raise AssertionError, or IndexError if the block is empty. An arm after ``else`` is not
        detected.
        """
        branch = self.body[-1]
        assert isinstance(branch, Branch)
        block: list[Statement] = []
        with self._open_block(block):
            yield
        branch.arms.append((condition, block))

    @contextmanager
    def loop(self, condition: Expr) -> Iterator[None]:
        """Open the block of ``while condition:`` for the duration of the context; statements added
        in it go to that block.
        """
        block: list[Statement] = []
        with self._open_block(block):
            yield
        self.body.append(While(condition, block))

    @contextmanager
    def count(self, variable: Var | None, *bounds: Expr | int) -> Iterator[None]:
        """Open the block of ``for variable in range(*bounds):`` for the duration of the context.
        The loop variable is ``_`` if ``variable`` is None.
        """
        block: list[Statement] = []
        with self._open_block(block):
            yield
        self.body.append(For(variable, tuple(map(expr, bounds)), block))

    @contextmanager
    def _open_block(self, block: list[Statement]) -> Iterator[None]:
        """Direct added statements to ``block`` for the duration of the context, then again to the
        block that was open before, also after an exception.
        """
        outer, self.body = self.body, block
        try:
            yield
        finally:
            self.body = outer
