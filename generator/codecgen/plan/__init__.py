"""Plans: layouts by version with sizes and offsets, resolved expressions, read programs and write programs."""

from codecgen.plan.as_of import as_of
from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan, RulePlan, make_plan

__all__ = ["FieldPlan", "LayoutPlan", "Plan", "RulePlan", "as_of", "make_plan"]
