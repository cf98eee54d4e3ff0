"""What every target needs, worked out once: versions told apart, sizes, offsets, ranges, the state as of a release."""

from codecgen.plan.as_of import as_of
from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan, RulePlan, make_plan

__all__ = ["FieldPlan", "LayoutPlan", "Plan", "RulePlan", "as_of", "make_plan"]
