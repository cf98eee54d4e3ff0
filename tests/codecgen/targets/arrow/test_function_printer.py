"""Lines of kernels that are too long are broken as a formatter breaks them."""

from __future__ import annotations

from codecgen.targets.arrow.code_tree import Branch, Do, Function, Return, Var, all_of, call
from codecgen.targets.arrow.function_printer import function_text

NAME = "partitions_pending_revocation_topic_ids_of_all"
EXPECTED = """\
    if (
        count > 0
        and count
        > {name}_room
        - {name}_at
    ):
        return
    if (
        count
        > {name}_data
        + {name}_room
        - {name}_at
    ):
        return
    store(
        {name}_data
        + 16 * {name}_at
        + 8,
        count,
    )"""


def printed(name: str) -> str:
    data, room, at = Var(f"{name}_data"), Var(f"{name}_room"), Var(f"{name}_at")
    count = Var("count")
    function = Function("kernel", [(v, "int") for v in (data, room, at, count)], "None", "Stores.")
    function.body = [
        Branch([(all_of([count > 0, count > room - at]), [Return(None)])]),
        Branch([(count > data + room - at, [Return(None)])]),
        Do(call("store", data + 16 * at + 8, count)),
    ]
    return function_text(function, ()).partition('Stores."""\n')[2]


def test_sums_that_are_too_long_have_a_line_for_each_part() -> None:
    assert printed(NAME) == EXPECTED.format(name=NAME)


def test_others_stay_in_one() -> None:
    assert printed("x").splitlines()[::2] == [
        "    if count > 0 and count > x_room - x_at:",
        "    if count > x_data + x_room - x_at:",
        "    store(x_data + 16 * x_at + 8, count)",
    ]
