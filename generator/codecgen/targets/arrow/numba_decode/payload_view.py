"""What all kernels of a view into payloads share: the module, and the slots of its tables."""

from __future__ import annotations

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.payloads import PayloadPlan
from codecgen.targets.arrow.module import KernelModule
from codecgen.targets.arrow.numba_decode.view import STATE as STATE_OF_COLUMNS
from codecgen.targets.arrow.numba_decode.view import column_slots

STATE = ("ROWS", "REJECTED", "UNKNOWN")
"""What has been written so far, before the sizes and the nulls of the columns: rows, payloads that are left to the reference
codecs, those that nothing knows. After them a check notes its number, and where it failed (``NOTED``)."""

PART = ("DATA", "OFFSETS", "VALIDITY", "FIRST_BIT")
"""What kernels are told of the array of a part."""


class PayloadKernels:
    """One view into payloads, with the module that its kernels go to."""

    def __init__(self, plan: Plan, view: PayloadPlan) -> None:
        self.plan = plan
        self.view = view
        self.module = KernelModule()
        self.module.group("The state: what has been written so far")
        self.state = {name: self.module.constant(name, 8 * i) for i, name in enumerate(STATE)}
        noted = len(STATE_OF_COLUMNS) + 2 * len(view.leaves)
        self.state["NOTED"] = self.module.constant("NOTED", 8 * noted)
        self.module.group("The parts: where their bytes are, and how many bytes there are for each")
        self.part = {name: self.module.constant(name, 8 * i) for i, name in enumerate(PART)}
        self.part_size = self.module.constant("PART_SIZE", 8 * len(PART))
        self.module.group(
            "Columns: addresses of their buffers, how much of each is written, how many nulls"
        )
        self.columns = column_slots(self.module, view.leaves)
        self.numbers = self.module.constant("NUMBERS", 24 * len(view.leaves))

    @property
    def any_layout(self) -> LayoutPlan:
        """Some layout: what is blamed where no field is asked for."""
        found = (p for c in self.view.combinations for p in c.layouts.values() if p is not None)
        return next(found)
