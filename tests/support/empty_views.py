"""Topic views for which the samples have no record."""

from __future__ import annotations

EMPTY = {
    *("group_topics", "task_assignments", "regular_expressions", "topologies"),
    *("quotas", "acls", "scram_credentials", "delegation_tokens"),
}
"""Views of topics that the samples have, but no record for them."""
