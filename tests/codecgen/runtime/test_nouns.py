"""Counts in messages."""

from __future__ import annotations

from codecgen.runtime.nouns import count_noun


def test_counts_have_the_form_of_their_noun() -> None:
    assert [count_noun(n, "byte") for n in (0, 1, 2)] == ["0 bytes", "1 byte", "2 bytes"]
    assert count_noun(1, "batch", "batches") == "1 batch"
    assert count_noun(2000, "batch is", "batches are", spec=",") == "2,000 batches are"
