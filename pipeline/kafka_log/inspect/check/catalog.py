"""Catalog of the findings of ``kafka-log check``: id, severities, title, explanation and remedy of each.

A finding in a report says in its own sentence what was found where. The catalog says what findings of its
id mean in general. ``kafka-log explain`` prints it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""error: records are lost, readers get wrong ones, or no broker starts; warning: a file is wrong that a
broker rebuilds, ignores or skips; note: worth knowing, and normal in some directories."""

E, W, N = SEVERITIES


@dataclass(frozen=True, slots=True)
class FindingKind:
    """Kind of finding.

    Attributes:
        id: Stable name, the value of the column ``code``.
        severities: The usual severity first, then others that findings of this kind may have.
        title: Noun phrase that names the problem.
        explanation: What is wrong, and what it means for brokers, consumers and tools.
        remedy: The next step. A finding without a remedy of its own shows this one.
    """

    id: str
    severities: tuple[Severity, ...]
    title: str
    explanation: str
    remedy: str


_COPY_PARTITION = (
    "Stop this broker. If another replica then leads the partition, move the partition directory away"
    " and keep it, and start the broker: it copies the partition from the leader."
)
_SALVAGE = (
    f"{_COPY_PARTITION} Otherwise write the readable records to a new log with kafka-log salvage, and put"
    " it in place of the partition directory before you start the broker: the broker may truncate the log"
    " at the damage."
)


_COPY_FROM_OTHER = "Copy the partition from another replica"
_TIERED_COPY = (
    "Put the copy back as it was, from a backup or an older version of the store. Brokers serve a copy as it"
    " is: they neither repair nor truncate it, and have no replica of it. As long as live segments have its"
    " offsets, write these to another directory with kafka-log cut, before the broker deletes them. Otherwise"
    " write the readable records with kafka-log salvage --include remote, and let consumers skip the damage."
)
"""Remedy for a damaged copy in tiered storage."""


def skip_batch(offset: str = "the offset after the batch") -> str:
    """Return the step by which consumers pass over a batch, to the offset that ``offset`` names."""
    return (
        f"let consumers skip the batch: set the offset of each stopped group to {offset} with"
        " kafka-consumer-groups.sh --reset-offsets"
    )


def copy_or_skip(offset: str = "the offset after the batch") -> str:
    """Return the remedy for a batch that a writer produced wrong; consumers go on at ``offset``."""
    return (
        f"{_COPY_FROM_OTHER} that does not have the batch, while this broker is"
        f" stopped. Otherwise {skip_batch(offset)}."
    )


def keep_or_skip(offset: str = "the offset after the batch") -> str:
    """Return the remedy for a batch that all replicas most likely have; consumers go on at ``offset``."""
    skip = skip_batch(offset)
    return (
        f"{skip[0].upper()}{skip[1:]}. Other replicas most likely have the same bytes. kafka-log salvage"
        " writes the records that can be decoded to another directory."
    )


COPY = (
    f"{_COPY_PARTITION} Otherwise write the records by their offsets to a new log with kafka-log"
    " salvage, and put it in place of the partition directory before you start the broker."
)
_COPY_OR_BACKUP = (
    f"{_COPY_PARTITION} Otherwise restore the files of the partition from a backup before you start the"
    " broker. Without a backup, the records are lost."
)
FOLLOW_FIRST = (
    "Start this broker only while another replica leads the partition: it then copies the records after"
    " its last offset. If this broker leads first, the other replicas truncate theirs."
)
_COPY_BEFORE_LEADER = (
    f"{FOLLOW_FIRST} If the partition has other errors or warnings, follow these first. Without another"
    " replica, the broker starts without these records."
)
COPY_LOST = f"{_COPY_PARTITION} Without another replica, the missing records are lost."
_AFTER_CRASH = (
    "Active segment after a crash: nothing to do if no committed record is missing; otherwise start this"
    " broker only while another replica leads the partition."
)
TRUNCATE_AT_START = (
    "If other findings of the log directory name damage, follow them first. Then move"
    " .kafka_cleanshutdown away before you start the broker: it then truncates each log at its first"
    f" damaged batch after the recovery point. {FOLLOW_FIRST} Without another replica, what is truncated"
    " is lost."
)
_RESCUE = (
    "write the whole records of an incomplete batch to a new log with kafka-log salvage, and put it in"
    " place of the partition directory before you start the broker"
)
_BACKUP = "restore the files of the partition from a backup before you start the broker"
_WITHOUT_REPLICAS = (
    (f"{_COPY_PARTITION} Otherwise, or if the leader has the same batch, ", "Stop this broker and keep this directory. "),
    (f"{_COPY_PARTITION} Otherwise ", "Stop this broker and keep this directory. "),
    (f"{_COPY_PARTITION} Without another replica, the missing", "Stop this broker and keep this directory. The missing"),
    (_COPY_PARTITION, "Stop this broker and keep this directory."),
    (_COPY_BEFORE_LEADER, "If the partition has other errors or warnings, follow these first. The broker starts without these records."),
    (f"{FOLLOW_FIRST} Without another replica, what", f"Or {_RESCUE}. What"),
    (FOLLOW_FIRST, f"{_RESCUE[0].upper()}{_RESCUE[1:]}."),
    ("otherwise start this broker only while another replica leads the partition", f"otherwise {_RESCUE}"),
    ("Otherwise start it only while another replica leads the partition: if this broker leads first, the other replicas truncate theirs. ", ""),
    (" Without another replica, the broker starts", " The broker starts"),
    ("Copy the partition from another replica that does not have the batch, while this broker is stopped. Otherwise let", "Let"),
    (" Other replicas most likely have the same bytes.", ""),
    ("Compare with another replica: the batch by kafka-log diff, leader-epoch-checkpoint yourself. If the batch differs, copy the partition. If the file differs, copy the file. Without another replica, see", "See"),
    ("Compare with another replica by kafka-log diff. If the epoch of a batch differs, copy the partition. Without another replica, see", "See"),
    ("Copy the file from another replica of the partition. Without another replica, write", "Write"),
    ("stop the broker and copy the partition from another replica, or, if", "stop the broker and, if"),
    ("copy the partition from another replica. Without one, kafka-log", "kafka-log"),
    ("Stop the broker and copy the partition from another replica. Without one, keep", "Stop the broker and keep"),
    ("Compare the batch with another replica (kafka-log diff). If that has the lower base offset, stop this broker, move the partition directory away and keep it, and let the broker copy the partition.", "Stop the broker and keep a copy of the partition directory."),
    (" That is safe only while another replica leads: if this broker leads, all replicas become empty.", " Its records are then lost."),
    ("Compare the partition with its other replicas (kafka-log diff). If one of them has the missing records, stop this broker and copy the whole partition from it: the offsets after the gap may be wrong here.", "Look for the missing records in a backup."),
    ("Compare the partition with its other replicas (kafka-log diff). If the other replicas lack this batch, copy the partition from one of them while this broker is stopped.", "Compare the records of the two batches (kafka-log dump)."),
    ("correct the file with those of other replicas instead", "correct the file instead"),
    ("write the log start offset of another replica into the line instead. Without another replica, write the first offset of the log here", "write the first offset of the log here into the line instead"),
    ("write the log start offset of another replica into the line, or ", "write into the line "),
    ("If the offset is right, copy the partition from another replica. If it is wrong, write the log start offset of another replica into the line of the partition. Without another replica, write the first offset of the log", f"If the offset is right, {_BACKUP}. If it is wrong, write the first offset of the log into the line of the partition"),
    ("is right, copy the partition from another replica.", f"is right, {_BACKUP}."),
    (" to the log start offset of another replica. Without another replica, correct it to ", " to "),
    ("Copy the partition from another replica, or set", "Set"),
    ("Copy the partition from another replica, or write", "Write"),
    ("copy the file from another replica, or from another", "copy the file from another"),
    ("copy the file from another replica or from another", "copy the file from another"),
    ("copy the file from another replica, or write", "write"),
    ("copy the file from another replica or write", "write"),
    ("Compare the partition with another replica (kafka-log diff). If they differ, stop", "If producers use the default partitioner, stop"),
    ("If another replica then leads the partition, start the broker: it copies the partition from the leader. Otherwise copy", "Copy"),
    (", or for local segments on the other replicas", ""),
    ("Otherwise compare with another replica by kafka-log diff.", "Otherwise keep a copy of the partition directory."),
    ("stop the broker and copy the partition from another replica", _BACKUP),
    (" into it. If the topic was deleted", " into partition.metadata. If the topic was deleted"),
)  # fmt: skip
"""Steps of remedies that need another replica, and what takes their place if there is none."""


def for_tiered_copy(remedy: str) -> str:
    """Return the remedy for a damaged copy in tiered storage if ``remedy`` is one for the partition
    directory of a broker. Return other remedies as they are.
    """
    is_local = any(step in remedy for step in (_COPY_PARTITION, FOLLOW_FIRST, _COPY_FROM_OTHER))
    if is_local:
        return _TIERED_COPY
    step = f"{_COPY_FROM_OTHER[0].lower()}{_COPY_FROM_OTHER[1:]}"
    return remedy.replace(step, "put the copy back from a backup or an older version of the store")


def without_replicas(remedy: str) -> str:
    """Return a remedy for a partition that has one replica: it says so, and its steps need no other
    one. Return a remedy that does not speak of replicas as it is.
    """
    if "replica" not in remedy:
        return remedy
    rest = remedy
    for step, instead in _WITHOUT_REPLICAS:
        rest = rest.replace(step, instead)
        rest = rest.replace(f"{step[0].lower()}{step[1:]}", f"{instead[:1].lower()}{instead[1:]}")
    sentences = re.sub(r"(directory\. )([a-z])(?!afka-log)", lambda m: m[1] + m[2].upper(), rest)
    return f"By __cluster_metadata, the partition has no other replica. {sentences}"


REBUILD = (
    "If other findings name damage of the segment, follow them first: a broker that rebuilds an index"
    " truncates the segment at the damage. Then stop the broker, move the .index away, and start the"
    " broker. A missing .index makes it rebuild .index, .timeindex and .txnindex. Or write the three"
    " with kafka-log reindex, and copy them to the partition directory while the broker is stopped."
)
_OPEN_INDEX = (
    " A note in the active segment if zeros are at the end of its index and the broker was not shut down"
    " cleanly: nothing to do, because the broker rebuilds the index when it starts."
)
WRITE_EPOCHS = (
    "write leader-epoch-checkpoint anew: 0 in the first line, the number of epochs in the second one,"
    " then a line EPOCH OFFSET for each epoch, with the first offset of its batches"
)


def compare_epochs(
    epoch: str = "its epoch",
    repair: str = "set the epoch in its header to theirs: no checksum covers the epoch",
) -> str:
    """Return the remedy for a batch whose leader epoch and leader-epoch-checkpoint contradict each
    other. ``epoch`` are the words for the epoch, ``repair`` is the step that sets it in the header.
    """
    return (
        "Stop the broker. Compare with another replica: the batch by kafka-log diff, leader-epoch-checkpoint"
        " yourself. If the batch differs, copy the partition. If the file differs, copy the file. Without"
        " another replica, see the epochs of the batches before and after the batch (kafka-log dump"
        f" --batches). If neither has {epoch}, {repair}. Otherwise {WRITE_EPOCHS}. A follower with wrong"
        " epochs may truncate its log at the wrong offset."
    )


_COMPARE_EPOCHS = compare_epochs()
_COMPARE_BATCH_EPOCHS = (
    "Stop the broker. Compare with another replica by kafka-log diff. If the epoch of a batch differs, copy the"
    " partition. Without another replica, see the epochs of the batches around it (kafka-log dump --batches), and"
    " set the one that is out of order to that of its neighbors: no checksum covers the epoch."
)
_LOG_START_LINE = (
    "See first whether log-start-offset-checkpoint has a line for the partition. Without it, deleted"
    " records appear again: stop the broker, add the line TOPIC PARTITION OFFSET with the first offset of"
    " leader-epoch-checkpoint, and add 1 to the number in the second line."
)
_BROKER_DELETES = (
    "Nothing to do: the broker deletes the files when it starts. If records of the partition are"
    " missing, copy the files before you start the broker."
)
_IF_EXPECTED = (
    "Nothing to do if you expect the directory. Otherwise find out why it is there before you delete it:"
    " it may have the only copy of its records."
)
_FIX_EPOCH_FILE = (
    "Stop the broker. Copy the file from another replica of the partition. Without another replica,"
    f" {WRITE_EPOCHS} (kafka-log dump --batches). A follower with wrong epochs may truncate its log at"
    " the wrong offset."
)
_NEWEST_SNAPSHOT = (
    "Stop the node. Copy the file of the same name from another node. Or move it away, if an older"
    " .checkpoint has an end offset (the first number in its name) not below the first offset of the"
    " log. Keep the file."
)

_KINDS = (
    # ---------------------------------------------------------------- batches
    FindingKind(
        "batch_checksum",
        (E,),
        "Batch with a wrong checksum",
        "The checksum in the batch header does not match the bytes of the batch: bytes were changed on the"
        " disk or on their way to it. Consumers stop at the batch.",
        _SALVAGE,
    ),
    FindingKind(
        "unreadable_bytes",
        (E,),
        "Bytes that are not a batch",
        "A range of the segment does not have the structure of batches. Consumers cannot read past it. If offsets"
        " are missing there, their records are lost.",
        _SALVAGE,
    ),
    FindingKind(
        "zeroed_bytes",
        (E,),
        "Zeros where batches should be",
        "A range inside the segment holds only zeros. File systems leave zeros when blocks were allocated but"
        " not written before a crash. Consumers cannot read past it. If offsets are missing there, their"
        " records are lost.",
        _SALVAGE,
    ),
    FindingKind(
        "batch_count",
        (E,),
        "Batch with a negative record count",
        "The header of a batch has a negative record count although the checksum is valid, so a writer"
        " produced it that way. Consumers stop at the batch and do not reach the offsets after it.",
        copy_or_skip(),
    ),
    FindingKind(
        "batch_records",
        (E,),
        "Batch whose records cannot be decoded",
        "The checksum of the batch is valid, but some records do not have the format of records or cannot be"
        " decompressed. A writer produced them that way. Consumers stop at the batch. Found with --deep only.",
        keep_or_skip(),
    ),
    FindingKind(
        "record_checksum",
        (E,),
        "Message with a wrong checksum inside a batch",
        "A compressed batch of the legacy message formats contains a message whose own checksum is wrong."
        " Consumers that verify checksums (check.crcs, the default) stop there. Found with --deep only.",
        copy_or_skip(),
    ),
    FindingKind(
        "batch_rules",
        (W,),
        "Batch that breaks a rule for producers",
        "Brokers reject such a batch from a producer, but load it from a disk. Consumers read its records."
        " Lookups by offset or time, compaction and other tools may fail. Each rule has one finding per"
        " segment, at the first batch that breaks it. Found with --deep only.",
        "Fix the program that wrote the batch. The batch itself may stay: readers get all records if they read the whole"
        " partition, instead of looking up an offset or a timestamp.",
    ),
    FindingKind(
        "batch_magic",
        (E,),
        "Batch with an unknown format version",
        "The magic byte of a batch names a format version that the schemas of this release do not have. A newer"
        " Kafka may have written the batch, or bits of the byte were flipped. The finding names a repair if one"
        " byte makes it a batch of a known version that decodes whole, with a valid checksum.",
        "If a newer Kafka wrote the log, leave it as it is: read it with a newer release of kafka-codecs, or add the"
        " version to the schemas. Otherwise stop the broker and copy the partition from another replica, or, if the"
        " finding names a repair, write the log with kafka-log salvage --repair.",
    ),
    # ---------------------------------------------------------------- ends of segments
    FindingKind(
        "torn_tail",
        (E, N),
        "Incomplete batch at the end of a segment",
        "The last batch was not written completely. In the active segment this is normal after a crash, and"
        " in the metadata log always (a note): the broker truncates it when it starts. After a clean shutdown"
        " it is an error: the broker does not truncate, but fails or appends after the bytes. In a rolled"
        " segment it is an error: if offsets are missing before the next segment, their records are lost.",
        f"{_AFTER_CRASH} Rolled segment: {COPY_LOST[0].lower()}{COPY_LOST[1:]} If no offset is missing"
        " there, kafka-log salvage can write the log without these bytes. Active segment after a clean shutdown:"
        f" {TRUNCATE_AT_START[0].lower()}{TRUNCATE_AT_START[1:]}",
    ),
    FindingKind(
        "zero_tail",
        (E, N),
        "Zeros at the end of a segment",
        "Zeros follow the last batch. In the active segment this is normal after a crash, and in the metadata"
        " log always (a note): the broker truncates them when it starts. After a clean shutdown it is an"
        " error: the broker does not truncate, but fails or appends after the zeros. In a rolled segment it is"
        " an error: if offsets are missing before the next segment, their records are lost.",
        f"{_AFTER_CRASH} Rolled segment: {_SALVAGE[0].lower()}{_SALVAGE[1:]} Active segment after a"
        f" clean shutdown: write the log again with kafka-log salvage. Or: {TRUNCATE_AT_START[0].lower()}{TRUNCATE_AT_START[1:]}",
    ),
    FindingKind(
        "segment_shrunk",
        (E,),
        "Segment that became shorter during the check, or since it was copied",
        "Brokers do not write to a rolled segment, but the file lost bytes while it was checked, and the"
        " broker's cleaner was not at work. Offsets before the next segment are missing now. Or a copy in tiered"
        " storage is shorter than __remote_log_metadata says.",
        f"Find out what truncates the file. {_COPY_PARTITION}",
    ),
    FindingKind(
        "not_stopped",
        (N,),
        "Log directory without a clean shutdown",
        "The file that a broker writes when it stops cleanly is missing, and no broker on this machine locks"
        " the directory: the broker was killed, or runs on another machine. When the broker starts, it rereads"
        " the segments from their recovery points and rebuilds their indexes. It truncates the log at the"
        " first incomplete or damaged batch: this batch and all after it are lost. A segment without an .index is"
        " truncated alone. A note on a partition says which offsets that are.",
        "Nothing to do if no other finding is an error: the broker may be started. Other findings name the logs"
        " that it truncates. If a partition must not lose anything, copy its directory before you start the broker.",
    ),
    # ---------------------------------------------------------------- order of offsets
    FindingKind(
        "offsets_not_rising",
        (E,),
        "Batch out of offset order",
        "The offsets of a batch are not above those of the batch before it. Brokers find batches by binary"
        " search and may miss this one.",
        COPY,
    ),
    FindingKind(
        "offsets_reversed",
        (E,),
        "Batch whose last offset is before its first",
        "The last offset delta in the header of a batch is negative. Brokers and consumers compute wrong"
        " offsets from it. The checksum covers the field, so other replicas may have the same batch.",
        f"{_COPY_PARTITION} Otherwise, or if the leader has the same batch, write the records by their offsets to"
        " a new log with kafka-log salvage, and put it in place of the partition directory.",
    ),
    FindingKind(
        "batch_twice",
        (E,),
        "Batch that is in the segment twice",
        "Two batches have the same offsets and the same size; their other bytes are not compared. Consumers"
        " may read the records twice.",
        COPY,
    ),
    # ---------------------------------------------------------------- names of segments
    FindingKind(
        "batch_in_wrong_segment",
        (E,),
        "Batch with offsets of another segment",
        "A batch inside a segment has offsets that belong to another segment by the names of the files. Brokers do"
        " not find the batch by its offsets. The batch was misplaced, or the base offset in its header is wrong: no"
        " checksum covers it.",
        f"{COPY} If the base offset is wrong, salvage may lose the batch. If exactly the offsets of the batch are"
        " missing at its place, the finding says which bytes to set first.",
    ),
    FindingKind(
        "first_offset_below_name",
        (E,),
        "Segment that starts below its base offset",
        "The name of a segment is its base offset, but its first batches have lower offsets. If the offsets"
        " of all batches follow each other, the name is probably wrong. Otherwise these batches are misplaced,"
        " or the base offset in their headers is wrong: no checksum covers it. If exactly the offsets of a"
        " single such batch are missing, the finding says which bytes to set.",
        "Stop the broker. If the offsets of its batches follow each other and no other segment has them,"
        " rename the .log, .index, .timeindex and .txnindex to the first offset, and run kafka-log check"
        " again. Otherwise copy the partition from another replica. Without one, kafka-log salvage writes all"
        " records by their offsets.",
    ),
    FindingKind(
        "segments_overlap",
        (E,),
        "Segment that overlaps the next one",
        "The last batches of a segment have offsets at or above the base offset of the next segment. One of"
        " the two has a wrong name, is a copy, or has batches that belong elsewhere. If the finding can tell"
        " which, it says so, and what to rename or to move away. Brokers miss some of the batches.",
        "Stop the broker and copy the partition from another replica. Without one, keep both segments: kafka-log"
        " salvage writes all records by their offsets. Moving a whole segment away loses its other offsets.",
    ),
    FindingKind(
        "base_offset_implausible",
        (W,),
        "Implausible base offset of the last batch",
        "A checkpoint of the broker has the offset at which the log would end if one bit of the last batch's base"
        " offset were not set. No checksum covers the base offset, and no batch follows that could contradict it."
        " If the bit was flipped, consumers get the records at wrong offsets, and new records are written after them.",
        "Compare the batch with another replica (kafka-log diff). If that has the lower base offset, stop this broker,"
        " move the partition directory away and keep it, and let the broker copy the partition. Nothing to do if the"
        " directory was replaced by a longer log after the broker was stopped.",
    ),
    FindingKind(
        "offset_too_far",
        (E,),
        "Offset too far above the base offset",
        "Index entries store offsets relative to the base offset of the segment in four bytes. The offsets of"
        " the last batches of this segment do not fit.",
        "Nothing to do if the offsets are right: the broker splits such a segment when it starts. If they are"
        f" wrong: {COPY[0].lower()}{COPY[1:]} No checksum covers the base offset of a batch.",
    ),
    FindingKind(
        "segment_name",
        (E,),
        "Segment name that is not an offset",
        "The name of a segment is its first offset in 20 digits, then .log. If the part before the first dot"
        " is a number with fewer or more digits, a broker opens the file of 20 digits instead. It creates that"
        " file empty if it does not exist. If the part is anything else, or larger than an offset can be, no"
        " broker starts. Commands report the file as an error and do not read it.",
        "Stop the broker, move the file away and keep it. If it has records (kafka-log dump) that are missing in"
        " the log, move it back under a name of 20 digits that is its first offset, and run kafka-log check again"
        " before you start the broker.",
    ),
    FindingKind(
        "no_segment",
        (E,),
        "Segment name of something that is not a file",
        "A link to nothing, a FIFO, a device or a directory has the name of a segment. A broker starts as if the segment did"
        " not exist. Commands report it as a segment that cannot be read.",
        "Find out who created it. If it is a link to a disk that is not mounted, mount the disk before you start"
        " the broker: it starts without these records otherwise. If nothing is missing, move it away.",
    ),
    # ---------------------------------------------------------------- missing offsets
    FindingKind(
        "segment_missing",
        (E, N),
        "Missing segment",
        "The offsets between two segments, before the first one, or of the whole partition do not exist. It"
        " is an error if neither retention nor compaction can be the reason. For example, an index of the"
        " segment still exists, records without keys are beside the gap, or a checkpoint or the cluster"
        " metadata excludes them. It is a note if one of them may be the reason. Nothing to do about a note if"
        " the topic is compacted, or the segments were deleted or are in tiered storage.",
        _COPY_OR_BACKUP,
    ),
    FindingKind(
        "offsets_missing",
        (E, N),
        "Missing offsets between batches",
        "Batches are missing inside the log, or before its first batch. It is an error if compaction cannot"
        " be the reason. For example, records without keys are beside the gap, the topic was never compacted,"
        " or the .index still points to batches that were cut out. It is a note if compaction may be the"
        " reason; one note can sum up several gaps. Nothing to do about a note if the topic is compacted.",
        _COPY_OR_BACKUP,
    ),
    FindingKind(
        "partition_missing",
        (W,),
        "Missing partition directory",
        "The checkpoints have offsets for a partition that has no directory, although it should be here: it"
        " existed when the broker stopped cleanly, or the cluster metadata assigns it to this directory.",
        "Look for the directory before you start the broker, also in other log directories and on disks that are"
        " not mounted. Without it, the broker starts an empty partition. That is safe only while another"
        " replica leads: if this broker leads, all replicas become empty.",
    ),
    # ---------------------------------------------------------------- sequence numbers
    FindingKind(
        "sequences_missing",
        (W, N),
        "Missing sequence numbers of a producer",
        "The sequence numbers of an idempotent producer skip some values, although no offset is missing."
        " Records of this producer are not in the log. It is a note if the producer wrote nothing for a day"
        " before: brokers then forget it. Nothing to do about a note if you know the reason.",
        "Compare the partition with its other replicas (kafka-log diff). If one of them has the missing records,"
        " stop this broker and copy the whole partition from it: the offsets after the gap may be wrong here."
        " kafka-log producers lists the sequence numbers of the producer.",
    ),
    FindingKind(
        "sequences_twice",
        (W, N),
        "Repeated sequence numbers of a producer",
        "The sequence numbers of an idempotent producer repeat. If both batches have the same records,"
        " consumers read them twice. It is a note if the producer wrote nothing for a day before: brokers then"
        " forget it. Nothing to do about a note if you know the reason.",
        "Compare the partition with its other replicas (kafka-log diff). If the other replicas lack this batch,"
        " copy the partition from one of them while this broker is stopped. kafka-log producers lists the sequence"
        " numbers of the producer.",
    ),
    # ---------------------------------------------------------------- .index
    FindingKind(
        "index_position",
        (E, N),
        "Offset index entry that points to no batch",
        "An entry of the .index has a byte position at which no batch begins. A broker starts to read there"
        " and fails." + _OPEN_INDEX,
        REBUILD,
    ),
    FindingKind(
        "index_offset",
        (E, N),
        "Offset index entry with a wrong offset",
        "An entry of the .index points to a batch, but its offset is below the offsets of that batch. Or it"
        " is neither the first offset of that batch (older brokers wrote it), nor the last one of that batch"
        " or of a later one. A broker finds the wrong batch for some offsets, and may skip records."
        + _OPEN_INDEX,
        REBUILD,
    ),
    FindingKind(
        "index_order",
        (E, N),
        "Offset index entries out of order",
        "Brokers search the .index by binary search, which needs ascending entries. They find wrong entries."
        + _OPEN_INDEX,
        REBUILD,
    ),
    FindingKind(
        "index_length",
        (W, N),
        "Offset index with an incomplete entry",
        "The length of the .index is not a multiple of the entry size. A broker may rebuild the index when it"
        " starts." + _OPEN_INDEX,
        REBUILD,
    ),
    FindingKind(
        "index_zero_tail",
        (W,),
        "Zeros at the end of an offset index",
        "Brokers preallocate the .index of the active segment and trim it when they roll the segment. This"
        " segment is rolled, but its index was not trimmed. A broker takes the zeros for entries: it finds the right"
        " batch, but may search the segment from its start.",
        REBUILD,
    ),
    FindingKind(
        "index_too_long",
        (E, N),
        "Offset index with more entries than batches",
        "The .index has more entries than its segment has batches, so some of them are wrong. The last ones"
        " were not checked." + _OPEN_INDEX,
        REBUILD,
    ),
    FindingKind(
        "index_missing",
        (N, E),
        "Segment without an offset index",
        "A segment with batches has no .index. The broker builds it, the .timeindex and the .txnindex when it starts, and truncates the segment at"
        " its first damaged batch, also after a clean shutdown. It is an error if the segment has damage other than an"
        " incomplete end.",
        "Nothing to do if the segment has no other finding: the broker builds the index when it starts. If other"
        " findings name damage of the segment, follow them first: the broker truncates it at the first damaged batch.",
    ),
    # ---------------------------------------------------------------- .timeindex
    FindingKind(
        "timeindex_timestamp",
        (E, N),
        "Time index entry with a wrong timestamp",
        "An entry of the .timeindex does not have the largest timestamp up to its offset. Lookups by time"
        " return the wrong offset." + _OPEN_INDEX,
        REBUILD,
    ),
    FindingKind(
        "timeindex_offset",
        (E, N),
        "Time index entry with a wrong offset",
        "An entry of the .timeindex has an offset after the last one of its segment. Lookups by time may"
        " return a wrong offset." + _OPEN_INDEX,
        REBUILD,
    ),
    FindingKind(
        "timeindex_order",
        (E, N),
        "Time index entries out of order",
        "Brokers search the .timeindex by binary search, which needs ascending entries. They find wrong"
        " entries." + _OPEN_INDEX,
        REBUILD,
    ),
    FindingKind(
        "timeindex_length",
        (W, N),
        "Time index with an incomplete entry",
        "The length of the .timeindex is not a multiple of the entry size. A broker may rebuild the index when it"
        " starts." + _OPEN_INDEX,
        REBUILD,
    ),
    FindingKind(
        "timeindex_zero_tail",
        (W,),
        "Zeros at the end of a time index",
        "Brokers preallocate the .timeindex of the active segment and trim it when they roll the segment. This"
        " segment is rolled, but its index was not trimmed. A broker takes the zeros for entries, and 0 for the largest"
        " timestamp of the segment: lookups by time may pass over it, and retention by time may delete it too early.",
        REBUILD,
    ),
    FindingKind(
        "timeindex_too_long",
        (E, N),
        "Time index with more entries than batches",
        "The .timeindex has more entries than its segment has batches, so some of them are wrong. The last"
        " ones were not checked." + _OPEN_INDEX,
        REBUILD,
    ),
    FindingKind(
        "timeindex_missing",
        (N,),
        "Segment without a time index",
        "A segment with batches has no .timeindex. If the .index exists, a broker that was shut down cleanly"
        " begins an empty one: lookups by time begin earlier than they must.",
        "Nothing to do if the .index is missing too and the segment has no other finding: the broker builds"
        " both. Nothing to do either if lookups by time may begin earlier. To have the .timeindex built:"
        f" {REBUILD[0].lower()}{REBUILD[1:]}",
    ),
    # ---------------------------------------------------------------- .txnindex
    FindingKind(
        "txnindex_entry",
        (E,),
        "Transaction index entry that does not match a transaction",
        "An entry of the .txnindex cannot be read, or does not match an abort marker and the first offset of"
        " its transaction. Read_committed consumers hide records that are committed, or read aborted ones.",
        REBUILD,
    ),
    FindingKind(
        "txnindex_missing_entry",
        (E,),
        "Aborted transaction that is not in the transaction index",
        "The segment has an abort marker, but the .txnindex has no entry for it. Read_committed consumers"
        " read the records of the aborted transaction. Not reported for compacted partitions, where the log"
        " cleaner removes entries, and for segments without .index, whose .txnindex the broker builds too.",
        REBUILD,
    ),
    FindingKind(
        "txnindex_order",
        (E,),
        "Transaction index entries out of order",
        "The entries of the .txnindex do not ascend by the offsets of their abort markers. Read_committed"
        " consumers may read records of an aborted transaction.",
        REBUILD,
    ),
    FindingKind(
        "txnindex_length",
        (W,),
        "Transaction index with an incomplete entry",
        "The length of the .txnindex is not a multiple of the entry size. Brokers ignore the rest.",
        REBUILD,
    ),
    # ---------------------------------------------------------------- producer snapshots
    FindingKind(
        "snapshot_damaged",
        (W,),
        "Unreadable producer snapshot",
        "A .snapshot cannot be parsed, is too large, or its checksum is wrong. A broker deletes it and"
        " rebuilds the state of the producers from an older snapshot or from the log.",
        "Nothing to do if another .snapshot of the partition is readable, or if the log begins at offset 0:"
        " the broker deletes this one. Otherwise the broker forgets the producers whose records retention has"
        " deleted, also if it copies the partition from the leader, which rebuilds them from the records. To it, a"
        " producer that goes on is a new one.",
    ),
    FindingKind(
        "snapshot_offset",
        (W,),
        "Producer snapshot with an offset after its own",
        "The name of a .snapshot is an offset, but the snapshot contains a producer with this offset or a"
        " later one.",
        "Stop the broker, move the snapshot away and keep it: the broker then uses another snapshot of the"
        " partition, or reads the log.",
    ),
    FindingKind(
        "snapshot_beyond_end",
        (W,),
        "Producer snapshot beyond the end of the log",
        "The newest .snapshot was written when the log had reached an offset that the log no longer reaches."
        " Records at its end are missing, and no finding about damage explains it.",
        _COPY_BEFORE_LEADER,
    ),
    # ---------------------------------------------------------------- snapshots of the metadata log
    FindingKind(
        "metadata_snapshot_damaged",
        (E, W),
        "Damaged metadata snapshot",
        "A .checkpoint of the metadata log has a batch with a wrong checksum, or bytes that are not a batch."
        " A broker starts from the newest snapshot, where it is an error. In an older one it is a warning: nothing to"
        " do, a broker deletes the file later.",
        _NEWEST_SNAPSHOT,
    ),
    FindingKind(
        "metadata_snapshot_incomplete",
        (E, W),
        "Incomplete metadata snapshot",
        "A .checkpoint of the metadata log has no header record, no footer record, or gaps between its"
        " records. A node that starts from it does not have the missing records, and may fail for that. It starts"
        " from the newest snapshot, where this is an error. In an older one it is a warning: nothing to do, a broker"
        " deletes the file later.",
        _NEWEST_SNAPSHOT,
    ),
    # ---------------------------------------------------------------- checkpoints
    FindingKind(
        "checkpoint_damaged",
        (W,),
        "Unreadable checkpoint file",
        "A checkpoint file of the log directory cannot be parsed or read. A broker may take the directory"
        " offline.",
        "Move the file away before you start the broker. For log start offsets, correct the file with those"
        " of other replicas instead: without it, deleted records may reappear. For recovery points, follow"
        " findings about damaged segments first: without the file, the broker recovers all segments, and"
        " truncates each log at its first damaged batch. Without the file of high watermarks or of the log"
        " cleaner, these begin at the log start offsets.",
    ),
    FindingKind(
        "checkpoint_value",
        (W,),
        "Negative offset in a checkpoint file",
        "A checkpoint file has a negative offset for a partition, which no broker writes. The segments of the"
        " partition are not affected.",
        "Stop the broker. Remove the line of the partition, and subtract 1 from the number in the second line of the"
        " file. In log-start-offset-checkpoint, write the log start offset of another replica into the line instead."
        " Without another replica, write the first offset of the log here: deleted records may then reappear.",
    ),
    FindingKind(
        "checkpoint_unknown_partition",
        (N,),
        "Checkpoint of a partition without a directory",
        "A checkpoint file has an offset for a partition that has no directory in this log directory.",
        "Nothing to do if the partition was moved or deleted. Otherwise, before you start the broker, look for its"
        " directory. If the line belongs to another partition, correct topic and partition in it.",
    ),
    FindingKind(
        "log_start_beyond_end",
        (E,),
        "Log start offset beyond the end of the log",
        "The checkpoint of log start offsets names an offset after the end of the log. When the broker starts, it"
        " deletes all segments and begins an empty log at that offset.",
        "Stop the broker and keep a copy of the partition directory. If the offset is right, copy the partition"
        " from another replica. If it is wrong, write the log start offset of another replica into the line of the"
        " partition. Without another replica, write the first offset of the log: deleted records then appear"
        " again.",
    ),
    FindingKind(
        "recovery_point_beyond_end",
        (W,),
        "Recovery point beyond the end of the log",
        "The checkpoint of recovery points names an offset that the log no longer reaches. Records up to the"
        " recovery point were on the disk.",
        _COPY_BEFORE_LEADER,
    ),
    FindingKind(
        "high_watermark_beyond_end",
        (W,),
        "High watermark beyond the end of the log",
        "The checkpoint of high watermarks names an offset that the log no longer reaches. Records below the"
        " high watermark were committed. Without a clean shutdown, nothing to do if the broker was killed"
        " right after it truncated the log for a new leader: it writes high watermarks every five seconds.",
        _COPY_BEFORE_LEADER,
    ),
    FindingKind(
        "cleaner_offset_beyond_end",
        (N,),
        "Cleaner offset beyond the end of the log",
        "The checkpoint of the log cleaner names an offset after the end of the log.",
        "Nothing to do: the log cleaner begins at the log start offset if its offset does not fit the log.",
    ),
    # ---------------------------------------------------------------- control records
    FindingKind(
        "control_record",
        (E, N),
        "Control record that no broker writes",
        "The key of a control record says what it is. Here it is missing, too short or invalid, its type is"
        " unknown, the value does not fit the type, or a record of a producer is no commit or abort marker. A"
        " broker fails, or truncates the log there, when it reads the producers of the partition; a controller"
        " fails when it reads the metadata log. Read_committed consumers may stop. A note if the type is unknown and the batch has no producer: readers skip the record. Nothing"
        " to do about a note if a newer Kafka wrote it.",
        f"{_COPY_PARTITION} Otherwise write the batches before and after it with kafka-log cut.",
    ),
    # ---------------------------------------------------------------- leader epochs
    FindingKind(
        "leader_epoch_checkpoint",
        (E, W),
        "Unreadable or unordered leader-epoch-checkpoint",
        "If the file leader-epoch-checkpoint cannot be read or parsed, it is an error: a broker takes the"
        " whole log directory offline. If its epochs do not ascend, or its offsets descend, it is a warning.",
        _FIX_EPOCH_FILE,
    ),
    FindingKind(
        "leader_epoch_unknown",
        (W,),
        "Leader epoch that the checkpoint does not have",
        "A batch has a leader epoch that is not in leader-epoch-checkpoint. The file or the batch header is"
        " wrong: no checksum covers the epoch.",
        _COMPARE_EPOCHS,
    ),
    FindingKind(
        "leader_epoch_start",
        (W,),
        "Batch outside the offsets of its leader epoch",
        "leader-epoch-checkpoint gives each epoch a range of offsets. A batch of the epoch has offsets outside"
        " of it. The file or the batch header is wrong (no checksum covers the epoch), or the log start offset is"
        " missing.",
        f"If the batch is before the first epoch of the file: {_LOG_START_LINE[0].lower()}{_LOG_START_LINE[1:]}"
        f" Otherwise: {_COMPARE_EPOCHS[0].lower()}{_COMPARE_EPOCHS[1:]}",
    ),
    FindingKind(
        "leader_epoch_negative",
        (W,),
        "Negative leader epoch in a batch",
        "A batch has a leader epoch below -1. The checksum does not cover this field.",
        "Stop the broker. Copy the partition from another replica, or set the epoch in the header as the finding"
        " says: no checksum covers it.",
    ),
    FindingKind(
        "leader_epoch_descends",
        (W,),
        "Leader epoch below that of the batch before",
        "A batch has a lower leader epoch than the batch before it. leader-epoch-checkpoint is missing or"
        " cannot be used, so that it does not tell which of the two is wrong. No checksum covers the epoch. A"
        " broker that writes the file anew from the batches drops the epochs that do not ascend, and followers"
        " may truncate their logs at the wrong offset.",
        _COMPARE_BATCH_EPOCHS,
    ),
    FindingKind(
        "leader_epoch_beyond_end",
        (W,),
        "Leader epoch beyond the end of the log",
        "The last epoch in leader-epoch-checkpoint began at an offset that the log no longer reaches. Records"
        " before this offset are missing, and no finding about damage explains it.",
        _COPY_BEFORE_LEADER,
    ),
    # ---------------------------------------------------------------- other files
    FindingKind(
        "meta_properties",
        (E, W),
        "Unreadable or incomplete meta.properties",
        "meta.properties identifies the node, the cluster and the log directory. No broker starts if it"
        " cannot be read, or has neither a node id nor a cluster id (an error). A voter that the quorum knows"
        " by its directory id is no voter without this id (an error). Without it, another node to whose"
        " directories the metadata assigns partitions starts, but may not lead the partitions of the"
        " directory until it is restarted (a warning).",
        "Correct the file, or restore it from a backup, before you start the broker. The other log"
        " directories of the node have the same node id and cluster id, but each has a directory id of its"
        " own. A missing directory id is in quorum-state as votedDirectoryId, if the voter voted for itself,"
        " or in the cluster metadata (kafka-log metadata).",
    ),
    FindingKind(
        "partition_metadata",
        (E,),
        "Unreadable partition.metadata",
        "The file that holds the topic id of the partition cannot be parsed, or the id is zero. A broker"
        " takes the whole log directory offline, or does not start.",
        "Stop the broker and copy the file from another replica, or from another partition of the topic: all have"
        " the same topic id. Do not start the broker without the file: it may rename the directory to -stray.",
    ),
    FindingKind(
        "topic_id",
        (E,),
        "Contradicting topic ids",
        "partition.metadata has another topic id than the other partitions of the topic or the cluster"
        " metadata, or the id of another topic. A broker does not serve such a partition, nor those that it"
        " loads after it. If the cluster metadata has another id for the topic, and this id for no topic, it"
        " renames the directory to -stray and begins an empty partition.",
        "Do not start the broker. If the records belong to the topic, copy the file from another replica, or write"
        " the id of the topic into it. If the topic was deleted and recreated, move the directory away and keep it.",
    ),
    FindingKind(
        "metadata_unknown",
        (W,),
        "Cluster metadata that cannot be compared",
        "The log directory has a metadata log, but it is damaged or cannot be read, and it is not among the"
        " checked partitions. What only the metadata says about the checked partitions is unknown: another topic"
        " id, a topic that was never compacted, a partition that is missing.",
        "Check the whole log directory, without --topic and --partition, and do what the findings of the metadata log"
        " say. Then check again.",
    ),
    FindingKind(
        "quorum_state",
        (E,),
        "Unreadable quorum-state",
        "The file in which a voter of the metadata quorum keeps its vote cannot be read. The node does not start.",
        "Stop the node, and move the file away and keep it. If the node is the only voter, start it. If there are"
        " other voters, start it while they have a leader: the node forgets for whom it has voted.",
    ),
    FindingKind(
        "deleted_files",
        (N,),
        "Files that a broker was about to delete",
        "Files ending in .deleted belong to segments that retention or compaction removed.",
        _BROKER_DELETES,
    ),
    FindingKind(
        "cleaned_files",
        (N,),
        "Unfinished files of the log cleaner",
        "Files ending in .cleaned are new segments that the log cleaner had not finished.",
        _BROKER_DELETES,
    ),
    FindingKind(
        "swap_files",
        (N,),
        "Files that were about to replace segments",
        "Files ending in .swap are finished segments of the log cleaner that had not replaced the old ones yet.",
        "Nothing to do: the broker puts the files in place, or deletes them, when it starts. If records of the"
        " partition are missing, copy the partition directory before you start the broker.",
    ),
    FindingKind(
        "temporary_files",
        (N,),
        "Temporary files",
        "Files ending in .tmp or .part were not renamed to their final names, and may be incomplete. Brokers do"
        " not read them.",
        "Nothing to do: brokers do not read the file. You can delete it while the broker is stopped.",
    ),
    FindingKind(
        "delete_directory",
        (N,),
        "Partition that a broker was about to delete",
        "The name of the directory ends in -delete: the topic was deleted, or this replica was moved away. A"
        " broker that starts deletes the directory after a while.",
        "Nothing to do if you do not need its records. Otherwise move the directory out of the log directory"
        " before you start the broker: the broker deletes it.",
    ),
    FindingKind(
        "stray_directory",
        (N,),
        "Partition that no longer belongs to the broker",
        "The name of the directory ends in -stray: the cluster metadata does not assign the partition to this"
        " broker.",
        _IF_EXPECTED,
    ),
    FindingKind(
        "future_directory",
        (N,),
        "Copy of a partition that moves to another disk",
        "The name of the directory ends in -future: the broker was copying the partition from another of its"
        " log directories.",
        _IF_EXPECTED,
    ),
    FindingKind(
        "index_without_segment",
        (E, W, N),
        "Index file without its segment",
        "An index exists, but the segment of the same base offset does not, so no broker reads it. A broker"
        " that is killed while it deletes a segment leaves such files (a note). After a clean shutdown it is"
        " an error: the segment may have been removed. It is a warning if the index is empty and the log had"
        " not gone past its base offset.",
        "If other findings of the partition say that offsets are missing, look for the segment in other"
        " directories and in backups before you start the broker. Otherwise nothing to do: the broker deletes the"
        " index when it starts.",
    ),
    FindingKind(
        "unknown_file",
        (N,),
        "File that no broker reads",
        "The name of the file or directory is none that Kafka uses in this directory.",
        "Find out who created it. A broker does not touch it.",
    ),
    FindingKind(
        "unknown_directory",
        (E,),
        "Directory that keeps a broker from starting",
        "A log directory may contain partition directories only. No broker starts if another directory is"
        " there, such as unfinished output of kafka-log or Spark, or a copy of tiered storage.",
        "Find out who created the directory, and move it out of the log directory before you start the"
        " broker. Delete it if it is empty. If it is unfinished output, repeat the command, which continues.",
    ),
    FindingKind(
        "partition_twice",
        (E,),
        "Two directories of one partition",
        "Two directory names mean the same topic and partition, such as orders-01 and orders-1. No broker"
        " starts with both.",
        "Before you start the broker, compare the two with kafka-log diff. Move the one that lacks records out of the"
        " log directory and keep it. The one that stays needs the name without leading zeros, such as orders-1.",
    ),
    FindingKind(
        "partitions_exchanged",
        (W,),
        "Partitions whose directories were exchanged",
        "All keys at the start of a partition belong to one other partition by the default partitioner, and the"
        " keys there belong elsewhere too. The directories were exchanged, or producers use a partitioner of"
        " their own.",
        "Compare the partition with another replica (kafka-log diff). If they differ, stop the broker and exchange the"
        " names of the directories that the findings name.",
    ),
    FindingKind(
        "io_error",
        (E,),
        "File that cannot be read",
        "The operating system returned an error when the file or directory was read. Checks that need it were"
        " skipped.",
        "Check the permissions: the broker needs them too. Check the disk. If it fails, stop the broker and give it"
        " another disk. If another replica then leads the partition, start the broker: it copies the partition from the"
        " leader. Otherwise copy the files to the other disk, as far as they can be read, and run kafka-log salvage"
        " there.",
    ),
    FindingKind(
        "file_gone",
        (N,),
        "File that disappeared during the check",
        "The file existed when the check began. A running broker deletes files at any time.",
        "Nothing to do if a broker runs on the directory. Otherwise run the check again.",
    ),
)

CATALOG: Mapping[str, FindingKind] = {kind.id: kind for kind in _KINDS}
"""Kinds of findings by id, grouped by what is checked."""
