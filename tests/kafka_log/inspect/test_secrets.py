"""Passwords and other secrets of the metadata log are in no output that decodes it, unless somebody asks for them."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from codecgen.runtime.arrow.view import Column
from codecgen.runtime.sensitive import REDACTED, Sensitive
from kafka_codecs import METADATA_BODY, REMOTE_LOG_METADATA_BODY
from kafka_log import LogDirectory, read_table
from kafka_log.cli import main
from kafka_log.logs.discovery import discover
from kafka_log.read.internal_topics import VIEWS, internal_topic
from kafka_log.read.plan import Split
from kafka_log.segment.kernels import Engine
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.task_reader import read_split
from tests.paths import SAMPLES
from tests.support.made_topics import entry, log, metadata
from tests.support.secrets import PASSWORDS

SECRETS = {
    "salt": b"0salt-of-ana-is-here",
    "stored_key": b"1stored-key-of-ana-x",
    "server_key": b"2server-key-of-ana-x",
    "ssl.keystore.password": b"3keystore-password-x",
    "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": b"4jaas-config-secret",
    "My.Plugin.Password": b"5plugin-password-xx",
    "damaged": b"6bytes-nobody-knows-x",
}
KNOWN = "retention.ms-is-no-secret"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cluster")
    scram: dict[str, Any] = {name: SECRETS[name] for name in ("salt", "stored_key", "server_key")}
    batches = [
        metadata(
            0,
            "user_scram_credential_record",
            name="ana",
            mechanism="scram_sha_256",
            iterations=4096,
            **scram,
        )
    ]
    settings = [name for name in SECRETS if name.lower().endswith(("password", "config"))]
    for offset, name in enumerate([*settings, "retention.ms"], 1):
        value = KNOWN if name == "retention.ms" else SECRETS[name].decode()
        batches.append(
            metadata(
                offset,
                "config_record",
                resource_type="broker",
                resource_name="",
                name=name,
                value=value,
            )
        )
    log(root, "__cluster_metadata-0", *batches)
    return root


@pytest.fixture(scope="module")
def damaged(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, and a record that cannot be decoded."""
    root = tmp_path_factory.mktemp("damaged")
    shutil.copytree(cluster, root, dirs_exist_ok=True)
    path = root / "__cluster_metadata-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + entry(5, None, b"\xff\xff\xff" + SECRETS["damaged"]))
    return root


def forms(secret: bytes) -> list[bytes]:
    """A secret as it would stand in an output."""
    inner = base64.b64encode(secret)[:-4]
    return [secret, inner, secret.hex().encode(), str(list(secret)).encode()]


def told(data: bytes) -> set[str]:
    """The names of secrets that are in an output."""
    return {name for name, secret in SECRETS.items() if any(form in data for form in forms(secret))}


def plain(path: Path) -> bytes:
    """What is in a file, or below a directory, also where it is compressed."""
    if path.is_dir():
        return b"".join(plain(child) for child in path.iterdir())
    if path.suffix == ".parquet":
        return repr(pq.read_table(path).to_pylist()).encode()
    if path.suffix == ".arrow":
        return repr(pa.ipc.open_file(path).read_all().to_pylist()).encode()
    return path.read_bytes()


ALL_SCRAM = "user,salt,stored_key,server_key"
DUMPS = [
    ["dump", "PATH", *more]
    for more in (
        [],
        ["--format", "jsonl"],
        ["--format", "csv"],
        ["--format", "jsonl", "--columns", "value,offset"],
        ["--decode", "__cluster_metadata"],
        ["--policy", "salvage"],
    )
]
VIEWED = [
    ["metadata", "PATH", "--what", "scram"],
    ["metadata", "PATH", "--what", "configs"],
    ["metadata", "PATH", "--what", "configs", "--changes", "0:4", "--format", "jsonl"],
    *(
        ["export", "PATH", "--out", "OUT", "--view", view, "--columns", columns, "--format", kind]
        for kind in ("csv", "jsonl", "parquet", "arrow")
        for view, columns in (("configs", "name,value"), ("configs", "value"), ("scram_credentials", ALL_SCRAM))
    ),
]  # fmt: skip


def output(words: Sequence[str], path: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> bytes:
    shutil.rmtree(out, ignore_errors=True)
    places = {"PATH": str(path), "OUT": str(out)}
    assert main([places.get(word, word) for word in words]) in (0, 1)
    printed = capfd.readouterr()
    return (printed.out + printed.err).encode() + (plain(out) if out.exists() else b"")


@pytest.mark.slow
@pytest.mark.parametrize("words", [*DUMPS, *VIEWED], ids=" ".join)
def test_no_command_tells_secrets(
    words: Sequence[str],
    cluster: Path,
    damaged: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = damaged if words in DUMPS else cluster
    hidden = output(words, path, tmp_path / "out", capfd)
    assert told(hidden) == set()
    is_scram = "scram" in words
    assert is_scram or REDACTED.encode() in hidden
    shown = output([*words, "--show-secrets"], path, tmp_path / "out", capfd)
    if words in DUMPS:
        assert told(shown) == set(SECRETS)
        assert KNOWN.encode() in hidden
    elif ALL_SCRAM in words:
        assert told(shown) == {"salt", "stored_key", "server_key"}
    elif not is_scram:
        assert len(told(shown)) == 3
        assert KNOWN.encode() in hidden


@pytest.mark.slow
@pytest.mark.parametrize(
    "decode",
    ["utf8", "hex", "base64", "json", "value=auto", "key=auto", "value=hex", "__transaction_state"],
)
@pytest.mark.parametrize("more", [[], ["--format", "jsonl"]], ids=["text", "jsonl"])
def test_no_decoder_of_bytes_shows_secrets(
    decode: str,
    more: Sequence[str],
    cluster: Path,
    damaged: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Layouts know which fields are secret: the topic is decoded by them, whatever is asked for."""
    for path in (cluster, damaged):
        main(["dump", str(path), "--decode", decode, *more])
        printed = capfd.readouterr()
        shown = (printed.out + printed.err).encode()
        assert told(shown) == set()
        assert KNOWN.encode() in shown and REDACTED.encode() in shown


def test_the_report_hides_secrets(cluster: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(cluster), "--out", str(page)]) == 0
    assert told(page.read_bytes()) == set()
    assert REDACTED.encode() in page.read_bytes() and KNOWN.encode() in page.read_bytes()


def test_vectors_hide_secrets_in_what_they_decode(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the bytes of records, which they have as they are."""
    assert main(["dump", str(cluster), "--format", "vectors"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    decoded = json.dumps([record["decoded"] for record in found if "decoded" in record]).encode()
    assert told(decoded) == set() and REDACTED.encode() in decoded
    assert main(["dump", str(cluster), "--format", "vectors", "--show-secrets"]) == 2
    assert "--show-secrets does not go with --format vectors" in capsys.readouterr().err


def test_a_secret_that_changes_is_a_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setting: dict[str, Any] = {
        "resource_type": "broker",
        "resource_name": "",
        "name": "ssl.key.password",
    }
    batches = [metadata(i, "config_record", **setting, value=f"secret-{i}") for i in range(2)]
    log(tmp_path, "__cluster_metadata-0", *batches)
    assert main(["metadata", str(tmp_path), "--what", "configs", "--changes", "0:1"]) == 0
    said = capsys.readouterr().out
    assert "changed" in said and said.count(REDACTED) == 2 and "secret-" not in said


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("view", sorted({view for view, topic in VIEWS.items() if "metadata" in topic and "remote" not in topic}))  # fmt: skip
def test_views_in_python_and_spark(view: str, compiled: bool, cluster: Path) -> None:
    engine: Engine = (
        "arrow" if compiled and view in ("configs", "scram_credentials") else "construct"
    )
    columns = [c.name for c in _columns(view)]
    (segment,) = discover(cluster)[0].segments
    for show, names in ((False, set()), (True, _SHOWN.get(view, set()))):
        table = read_table(cluster, columns, view=view, show_secrets=show, engine=engine)
        scan = Scan(tuple(columns), view=view, show_secrets=show, engine=engine)
        rows = [row for batch in read_split(Split(segment), scan) for row in batch.to_pylist()]
        assert told(repr(table.to_pylist()).encode()) == told(repr(rows).encode()) == names
    assert REDACTED in repr(read_table(cluster, columns, view=view).to_pylist()) or not names


_SHOWN = {
    "scram_credentials": {"salt", "stored_key", "server_key"},
    "configs": {name for name in SECRETS if name.lower().endswith(("password", "config"))},
}


def _columns(view: str) -> Sequence[Column]:
    module = __import__(f"kafka_codecs.columns.{view}", fromlist=[view.upper()])
    return getattr(module, view.upper()).columns


def test_python_api(cluster: Path) -> None:
    directory = LogDirectory(cluster)
    for show in (False, True):
        said = repr(directory.metadata("configs", show_secrets=show).to_pylist()).encode()
        changes = directory.metadata_changes(0, 4, "configs", show_secrets=show)
        for text in (said, repr(changes.to_pylist()).encode()):
            assert told(text) == (_SHOWN["configs"] if show else set())


def test_bytes_are_as_they_are(cluster: Path) -> None:
    values = b"".join(read_table(cluster, ["value"])["value"].to_pylist())
    assert told(values) == set(SECRETS) - {"damaged"}


# ---------------------------------------------------------------- which fields are secrets


def _secrets() -> dict[tuple[str, str], Sensitive]:
    """The fields that are secrets, by record and name."""
    found = {}
    for bodies in (METADATA_BODY, REMOTE_LOG_METADATA_BODY):
        for kind, case in bodies.items():
            for layout in case.values() if isinstance(case, Mapping) else [case]:
                for field in layout.fields:
                    if field.sensitive is not None:
                        found[kind.name, field.name] = field.sensitive
    return found


def test_which_fields_are_secrets() -> None:
    """What Kafka's RecordRedactor hides."""
    always = Sensitive()
    assert {key: found for key, found in _secrets().items() if found == always} == {
        ("USER_SCRAM_CREDENTIAL_RECORD", "salt"): always,
        ("USER_SCRAM_CREDENTIAL_RECORD", "stored_key"): always,
        ("USER_SCRAM_CREDENTIAL_RECORD", "server_key"): always,
    }
    assert _secrets().keys() - {("CONFIG_RECORD", "value")} == {
        key for key, found in _secrets().items() if found == always
    }


OTHERS = (
    "retention.ms", "cleanup.policy", "sasl.oauthbearer.token.endpoint.url", "delegation.token.max.lifetime.ms", "ssl.keystore.location",
    "ssl.keystore.type", "password.encoder.iterations", "sasl.oauthbearer.client.credentials.client.id", "token.impersonation.validation", "min.insync.replicas",
    "aws.access.key.id", "max.tokens", "key.converter", "sasl.oauthbearer.sub.claim.name",
)  # fmt: skip


def _setting() -> Sensitive:
    return _secrets()["CONFIG_RECORD", "value"]


@pytest.mark.parametrize("name", PASSWORDS)
def test_settings_that_are_secrets(name: str) -> None:
    for spelled in (name, f"listener.name.internal.{name}", name.upper()):
        assert _setting().covers(spelled)


OF_PLUGINS = (
    "api.key", "my.plugin.api.key", "plugin.api-key", "PLUGIN_API_KEY", "plugin.apiKey", "fs.azure.account.key", "sas.token", "s3.sessionToken",
    "token", "auth_token", "client-secret", "vault.secret.id", "aws.secret.access.key", "gcs.credentials.json", "google.credentials", "db.credential", "db.passwd", "db.pwd",
    "basic.auth.user.info", "storage.connection.string", "signing.key", "encryption-key",
)  # fmt: skip


@pytest.mark.parametrize("name", OF_PLUGINS)
def test_settings_of_plugins_that_are_secrets(name: str) -> None:
    """Kafka knows no type of them, and brokers treat them all as sensitive."""
    assert _setting().covers(name)


@pytest.mark.parametrize("name", OTHERS)
def test_settings_that_are_none(name: str) -> None:
    assert not _setting().covers(name)


def test_records_of_real_brokers_say_the_same_as_before() -> None:
    """Nothing else of them is hidden."""
    topic = internal_topic("__cluster_metadata")
    assert topic is not None and topic.has_secrets
    values = read_table(SAMPLES / "kafka-4.x" / "__cluster_metadata-0", ["value"])["value"]
    for value in values.to_pylist():
        assert topic.decode(None, value) == topic.decode(None, value, show_secrets=True)
