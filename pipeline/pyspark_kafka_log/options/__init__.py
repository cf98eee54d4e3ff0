"""The options of ``kafka-log``, checked. Names and JSON forms are those of Spark's own Kafka source.

| option | values | default |
| --- | --- | --- |
| ``path``, ``paths`` | what ``load`` is given: broker directories, partition directories, segment files, patterns of these | |
| ``pathGlobFilter`` | a pattern (:mod:`kafka_log.segment.globs`) of the names of segment files that are read | all |
| ``recursiveFileLookup`` | ``true`` looks for partitions in all directories below the paths | ``false`` |
| ``modifiedAfter``, ``modifiedBefore`` | segment files that were written after, or before, a time such as ``2026-11-22T10:15:00`` | all |
| ``timeZone`` | the zone of times that are written without one: ``Europe/Paris``, ``+01:00`` | that of the session; the Python source takes that of the driver's machine |
| ``ignoreCorruptFiles`` | ``true`` skips, with a warning, the rest of a file at damage that would fail the query; what was read of it before stays | ``spark.sql.files.ignoreCorruptFiles`` with the connector, else ``false`` |
| ``ignoreMissingFiles`` | ``true`` leaves out, with a warning, files that are gone when a task reads them | ``spark.sql.files.ignoreMissingFiles`` with the connector, else ``false`` |
| ``subscribe`` | topics, with commas between | all topics |
| ``subscribePattern`` | a regular expression (Python's) that is found in the name of a topic; Kafka's own topics are left out | |
| ``assign`` | ``{"topicA":[0,1],"topicB":[2]}`` | |
| ``startingOffsets`` | ``earliest``, or ``{"topicA":{"0":23,"1":-2}}`` (-2: earliest) | ``earliest`` |
| ``endingOffsets`` | ``latest``, or ``{"topicA":{"0":50,"1":-1}}`` (-1: latest); the offset itself is not read | ``latest`` |
| ``startingTimestamp``, ``endingTimestamp`` | milliseconds since 1970, in the place of offsets: the first record of each partition that is as late, or later; the ending one is not read | |
| ``startingOffsetsByTimestamp``, ``endingOffsetsByTimestamp`` | the same for each partition: ``{"topicA":{"0":1700000000000}}`` | |
| ``startingOffsetsByTimestampStrategy`` | ``error``, ``latest``: what to do where no record is as late as the first is to be | ``error`` |
| ``isolationLevel`` | ``read_uncommitted``, ``read_committed``; also as ``kafka.isolation.level`` | ``read_uncommitted`` |
| ``includeHeaders`` | ``true`` adds the column ``headers`` | ``false`` |
| ``includeMetadata`` | ``true`` adds all columns that say where a record comes from | ``false`` |
| ``columns`` | exactly these columns, with commas between | |
| ``view`` | ``batches``, ``stat``, ``findings``, ...: answers about logs (:mod:`pyspark_kafka_log.reports`), or ``offsets``, ``groups``, ...: what the records of one of Kafka's own topics say, in the place of records | |
| ``showSecrets`` | ``true`` shows passwords and other secrets in the views of Kafka's own topics | ``false`` |
| ``deep`` | of the views ``stat`` and ``findings``: ``true`` decodes every record, not headers and checksums only | ``false`` |
| ``includeControlRecords`` | ``true`` reads transaction markers and the like as rows too | ``false`` |
| ``includeDeletedRecords`` | ``true`` reads records before the log start offset too, which DeleteRecords has cut off | ``false`` |
| ``mode`` | ``FAILFAST``, ``PERMISSIVE``, ``DROPMALFORMED`` | ``FAILFAST`` |
| ``policy`` | ``kafka``, ``strict``, ``salvage`` | by ``mode`` |
| ``columnNameOfCorruptRecord`` | the column of a schema of your own, a string, that gets what ``problem`` says | ``_corrupt_record`` |
| ``replicas`` | ``error``, ``newest``, ``keep``: what to do when two directories hold one partition | ``error`` |
| ``include`` | ``remote``, ``deleted``, ...: segments that are not live too; of remote ones what is not in live ones | |
| ``storage.NAME`` | what fsspec opens a store with; also Hadoop's ``fs.s3a.NAME``, ``fs.azure.NAME``, ``fs.gs.NAME`` | |
| ``splitBytes`` | larger segments are read by more than one task | 128 MiB |
| ``batchRows`` | rows in one Arrow batch, at most | 16384 |
| ``maxDecompressedBytes`` | bytes that one compressed batch may hold | 256 MiB |
| ``engine`` | ``auto``, ``arrow``, ``construct``: the codecs that read; the rows are the same | ``auto`` |
| ``minPartitions`` | tasks that there are at least, as far as segments can be cut | |
| ``maxRecordsPerPartition`` | offsets that one task reads, at most, unless a single batch has more; headers of all batches are read for it | |
| ``failOnDataLoss`` | ``true`` fails a query whose ``startingOffsets`` or ``endingOffsets`` name offsets that are not there, or which asks for offsets that tiered storage lacks, or that an incomplete batch at the end of a log had; ``false`` reads what is there | ``true`` |

Options of Spark's Kafka source that mean nothing where no broker is asked are taken, with a warning: all others that begin with ``kafka.``,
``groupIdPrefix``, ``kafkaConsumer.pollTimeoutMs``, ``fetchOffset.numRetries``, ``fetchOffset.retryIntervalMs``; and in a batch query
those of streams alone: ``maxOffsetsPerTrigger``, ``minOffsetsPerTrigger``, ``maxTriggerDelay`` (:mod:`pyspark_kafka_log.stream.options`).

``FAILFAST`` fails the query at the first damage, naming file, byte and field: a record that cannot be read, a wrong checksum,
a timestamp that microseconds cannot hold. An unfinished batch at the end of a file is no damage: a broker that is writing
leaves it so. ``PERMISSIVE`` keeps every row that can be read, goes on after damage, gives null for a timestamp that does
not fit, and says in the column ``problem`` (if asked for) what was wrong. ``DROPMALFORMED`` leaves out damaged batches as a whole,
and records whose timestamp does not fit, and goes on after damage.

``policy`` says what damage is: ``kafka`` takes what Apache Kafka's own reader takes, ``strict`` only what the formats
allow (it needs FAILFAST), ``salvage`` is ``kafka``, gives the whole records of torn batches and looks for the next batch after damage.
FAILFAST goes with ``kafka``, the other modes with ``salvage``; with ``kafka`` they read a segment up to where Apache Kafka's
reader stops.
"""

from pyspark_kafka_log.options.checked import (
    KAFKA_COLUMNS,
    Files,
    Options,
    Paths,
    default_columns,
    parse,
    parse_limits,
    parse_paths,
)
from pyspark_kafka_log.options.session import Session
from pyspark_kafka_log.options.table import IGNORED, KNOWN
from pyspark_kafka_log.options.values import EARLIEST, LATEST, Bound, Offsets, OptionError

__all__ = [
    "EARLIEST",
    "IGNORED",
    "KAFKA_COLUMNS",
    "KNOWN",
    "LATEST",
    "Bound",
    "Files",
    "Offsets",
    "OptionError",
    "Options",
    "Paths",
    "Session",
    "default_columns",
    "parse",
    "parse_limits",
    "parse_paths",
]
