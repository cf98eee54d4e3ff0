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
    """Gathers statements in ``body``, and in the blocks that are open."""

    def __init__(self) -> None:
        self.body: list[Statement] = []

    def assign(self, target: Var, value: Expr | int, remark: str = "") -> None:
        self.body.append(Assign((target,), expr(value), remark))

    def choose(self, target: Var, value: Expr, remark: str = "") -> None:
        """``target = value``, conditions as branches."""
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
        self.body.append(Assign(targets, value))

    def add(self, target: Var, value: Expr | int, remark: str = "") -> None:
        self.body.append(Add(target, expr(value), "+=", remark))

    def subtract(self, target: Var, value: Expr | int) -> None:
        self.body.append(Add(target, expr(value), "-="))

    def do(self, name: str, *arguments: Expr | int, remark: str = "") -> None:
        """Call a function for its effect."""
        self.body.append(Do(effect(name, *arguments), remark))

    def do_call(self, call: Call, remark: str = "") -> None:
        self.body.append(Do(call, remark))

    def give(self, value: Expr | int | None, remark: str = "") -> None:
        """``return value``."""
        self.body.append(Return(None if value is None else expr(value), remark))

    def leave(self, word: str = "break") -> None:
        self.body.append(Leave(word))

    @contextmanager
    def when(self, condition: Expr) -> Iterator[None]:
        """``if condition:``. Further arms follow by :meth:`otherwise`."""
        block: list[Statement] = []
        with self._inside(block):
            yield
        self.body.append(Branch([(condition, block)]))

    @contextmanager
    def otherwise(self, condition: Expr | None = None) -> Iterator[None]:
        """``elif condition:`` or ``else:`` of the branch before."""
        branch = self.body[-1]
        assert isinstance(branch, Branch)
        block: list[Statement] = []
        with self._inside(block):
            yield
        branch.arms.append((condition, block))

    @contextmanager
    def loop(self, condition: Expr) -> Iterator[None]:
        """``while condition:``."""
        block: list[Statement] = []
        with self._inside(block):
            yield
        self.body.append(While(condition, block))

    @contextmanager
    def count(self, variable: Var | None, *bounds: Expr | int) -> Iterator[None]:
        """``for variable in range(bounds):``."""
        block: list[Statement] = []
        with self._inside(block):
            yield
        self.body.append(For(variable, tuple(map(expr, bounds)), block))

    @contextmanager
    def _inside(self, block: list[Statement]) -> Iterator[None]:
        outer, self.body = self.body, block
        try:
            yield
        finally:
            self.body = outer
