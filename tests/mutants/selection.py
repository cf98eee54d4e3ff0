"""Which tests a mutant of a schema file has to get past: fast ones, none of which compares generated files."""

from __future__ import annotations

from dataclasses import dataclass

from tests.mutants.edits import Mutant


@dataclass(frozen=True, slots=True)
class Selection:
    """Paths of tests in the order in which they run, and pytest's ``-k``."""

    paths: tuple[str, ...]
    keyword: str = ""


NOT = (
    "not large and not bomb and not thread and not readme and not memory and not bounds"
    " and not every_release_is_sound and not every_release_has_its_pages"
)
RELEASES = ("tests/codecs/test_releases.py", "tests/codecs/test_spellings.py", "tests/codecgen/plan/test_as_of.py", "tests/codecgen/targets/docs/test_message_format.py")  # fmt: skip
SIZES = ("tests/codecgen/plan/test_encoded_sizes.py",)
RECORDS = Selection(
    (
        "tests/codecs/test_edges.py",
        "tests/codecs/test_batch_rules.py",
        "tests/codecs/test_builders.py",
        "tests/codecs/test_tolerances.py",
        "tests/codecs/test_kraft_bytes.py",
        "tests/codecs/test_reference_bytes.py",
        *RELEASES,
        "tests/codecs/test_laws.py",
        "tests/codecs/test_errors.py",
        "tests/codecs/test_other_clients.py",
        *SIZES,
        "tests/kafka_log/logs/test_index_files.py",
        "tests/kafka_log/read/test_samples.py",
        "tests/kafka_log/segment/test_vectors.py",
    ),
    NOT,
)
MESSAGES = Selection(
    (
        "tests/codecs/test_kraft_bytes.py",
        *RELEASES,
        *SIZES,
        "tests/kafka_log/segment/test_vectors.py",
    ),
    f"(not test_vectors or control) and {NOT}",
)
DRAFTS = Selection(
    (
        "tests/codecs/test_draft_bytes.py",
        "tests/codecs/test_tolerances.py",
        *RELEASES,
        "tests/codecs/test_laws.py",
        *SIZES,
    ),
    NOT,
)
FILES = Selection(
    (
        "tests/codecs/test_tolerances.py",
        "tests/kafka_log/logs/test_index_files.py",
        "tests/kafka_log/logs/test_other_files.py",
        "tests/kafka_log/logs/test_text_files.py",
        *RELEASES,
        "tests/codecgen/runtime/arrow/test_structured_dtype.py",
    ),
    NOT,
)
WIRE = Selection(
    (
        "tests/codecs/test_confluent_framing.py",
        "tests/codecs/test_registry_frames.py",
        "tests/codecs/test_tolerances.py",
    ),
    NOT,
)
TOPICS = Selection(
    (
        "tests/codecs/test_topic_messages.py",
        "tests/codecs/test_topic_tolerances.py",
        "tests/codecs/test_topic_releases.py",
        "tests/codecs/test_spellings.py",
        "tests/kafka_log/read/test_topic_samples.py",
    ),
    NOT,
)
SLOW = (
    f"{NOT} and not without_a_compiler and not pieces_are_whole and not beyond_the_end"
    " and not how_the_rows_come"
)
VIEWS = Selection(
    (
        "tests/codecs/test_spellings.py",
        "tests/codecs/arrow/test_topic_views.py",
        "tests/codecs/arrow/test_framed_topic_views.py",
        "tests/kafka_log/read/test_columns_of_views.py",
        "tests/kafka_log/read/test_rows_of_every_record.py",
        "tests/codecs/arrow/test_view_values.py",
        "tests/codecs/arrow/test_batches.py",
        "tests/kafka_log/logs/test_index_views.py",
        "tests/codecs/arrow/test_view_writes.py",
        "tests/codecgen/runtime/arrow/test_encoder.py",
        "tests/kafka_log/read/test_topic_views.py",
        "tests/kafka_log/inspect/metadata/test_metadata.py",
    ),
    SLOW,
)
WRITES = Selection(
    ("tests/codecs/arrow/test_view_writes.py", "tests/codecgen/runtime/arrow/test_encoder.py"), SLOW
)
BY_FOLDER = {
    "records": RECORDS,
    "messages": MESSAGES,
    "drafts": DRAFTS,
    "files": FILES,
    "views": VIEWS,
    "wire": WIRE,
    "coordinator": TOPICS,
    "metadata": TOPICS,
    "remote": TOPICS,
}


def selection(mutant: Mutant) -> Selection:
    """The tests for a mutant."""
    if mutant.kind == "write expression":
        return WRITES
    return BY_FOLDER.get(mutant.file.split("/")[0], RECORDS)
