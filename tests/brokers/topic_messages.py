"""The messages of Kafka's own topics, as its own classes have them: ``python -m tests.brokers.topic_messages`` makes
``tests/data/topic_messages.jsonl`` anew.

A line for each message has its ``versions`` with their fields, the ``defaults`` of a message in which nothing was set, and
what the class writes of it (``unset``); the ``tagged`` fields with what they hold where they are not written; and for each
version ``examples``: what the class writes of messages that were made up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.brokers.message_shapes import camel
from tests.brokers.messages import Request, answers, messages
from tests.paths import ROOT

FILE = ROOT / "tests" / "data" / "topic_messages.jsonl"
PACKAGES = (
    "org.apache.kafka.coordinator.group.generated",
    "org.apache.kafka.coordinator.share.generated",
    "org.apache.kafka.coordinator.transaction.generated",
    "org.apache.kafka.common.metadata",
    "org.apache.kafka.server.log.remote.metadata.storage.generated",
)
"""Where Kafka's classes for what lies in its own topics are."""
OTHERS = ("ConsumerProtocolAssignment", "ConsumerProtocolSubscription")
"""Messages of consumers, which lie in members of a group; their classes are among those of requests."""
FILES = ("ProducerSnapshot",)
"""Messages beside them that lie in files."""
LONGEST, EXAMPLES, SEEDS = 300, 2, 12
NO_VALUE = (
    *(None, 0, -1, -2, False, [], "AAAAAAAAAAAAAAAAAAAAAA"),
    {"sessionTimeoutMs": 0, "supportedProtocols": []},
)
"""What a tagged field may hold where it is not written: the first that Kafka's class does not write either."""


def topic_messages(every: dict[str, dict[str, Any]]) -> list[str]:
    """The names of the messages that lie in Kafka's own topics."""
    return sorted(
        name
        for name, message in every.items()
        if (message["class"].rpartition(".")[0] in PACKAGES and name not in FILES) or name in OTHERS
    )


def lines() -> list[str]:
    """The file, made by Kafka's classes."""
    every = messages()
    names = topic_messages(every)
    unset = _unset(every, names)
    tagged = _defaults_of_tags(every, names, unset)
    examples = _examples(every, names)
    return [
        json.dumps(
            {
                "message": name,
                "versions": every[name]["versions"],
                "defaults": every[name]["defaults"],
                "unset": unset[name],
                "tagged": tagged[name],
                "examples": examples[name],
            },
            separators=(",", ":"),
            ensure_ascii=False,
        )
        for name in names
    ]


def _unset(every: dict[str, Any], names: list[str]) -> dict[str, dict[str, str]]:
    """What the class writes of a message in which nothing was set, for each version."""
    asked: list[Request] = [
        {"message": name, "version": int(version), "value": value}
        for name in names
        for version, value in every[name]["defaults"].items()
    ]
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for request, answer in zip(asked, answers(asked), strict=True):
        found[request["message"]][str(request["version"])] = answer["hex"]
    return found


def _defaults_of_tags(
    every: dict[str, Any], names: list[str], unset: dict[str, dict[str, str]]
) -> dict[str, dict[str, Any]]:
    """What the tagged fields of a message hold where they are not written."""
    asked: list[tuple[str, str, str, Any]] = [
        (name, version, camel(field["name"]), value)
        for name in names
        for version, fields in every[name]["versions"].items()
        for field in fields
        if "tag" in field
        for value in NO_VALUE
    ]
    requests: list[Request] = [
        {
            "message": name,
            "version": int(version),
            "value": every[name]["defaults"][version] | {field: value},
        }
        for name, version, field, value in asked
    ]
    out: dict[str, dict[str, Any]] = {name: {} for name in names}
    for (name, version, field, value), answer in zip(asked, answers(requests), strict=True):
        if answer.get("hex") == unset[name][version]:
            out[name].setdefault(field, value)
    return out


def _examples(every: dict[str, Any], names: list[str]) -> dict[str, dict[str, list[str]]]:
    asked: list[Request] = [
        {"message": name, "version": int(version), "random": seed}
        for name in names
        for version in every[name]["versions"]
        for seed in range(SEEDS)
    ]
    found: dict[str, dict[str, list[str]]] = {name: {} for name in names}
    for request, answer in zip(asked, answers(asked), strict=True):
        kept = found[request["message"]].setdefault(str(request["version"]), [])
        if (
            "hex" in answer
        ):  # Kafka's Schema writes a tagged structure so that its class cannot read it
            kept.append(answer["hex"])
    return {
        name: {version: list(_kept(made)) for version, made in versions.items()}
        for name, versions in found.items()
    }


def _kept(made: list[str]) -> Iterator[str]:
    """The longest that are not too long."""
    short = sorted({one for one in made if len(one) <= LONGEST}, key=lambda one: (len(one), one))
    yield from short[-EXAMPLES:]


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
