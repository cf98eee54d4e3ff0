"""Brokers as context managers. Each listens on 127.0.0.1 alone and keeps everything in one directory."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from .maven import KAFKA_2_8, KAFKA_4, BrokerError, Build, java_command
from .process import BROKER_MAIN, LineClient, Server, free_port, properties

START_LIMIT_S = 90.0
PORT_TRIES = 3
CLUSTER_ID = "a2Fma2EtY29kZWNzLTRYWA"

QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
SAY_STARTED = "-Dorg.slf4j.simpleLogger.log.kafka.server=info"
# Kafka 4.4 has moved the class that says so; both loggers are kept on.
SAY_STARTED_4 = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.server=info"

# Small and prompt: few threads, single-partition internal topics, a cleaner that looks every half second.
COMMON: Mapping[str, object] = {
    "num.network.threads": 1,
    "num.io.threads": 2,
    "background.threads": 2,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    # Nothing expires while samples are made: neither records, nor producers, nor an open transaction.
    "log.retention.ms": -1,
    "log.cleaner.backoff.ms": 500,
    "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
    "log.cleaner.threads": 1,
    "transactional.id.expiration.ms": 7 * 86_400_000,
    "transaction.max.timeout.ms": 900_000,
}


class Broker(ABC):
    """A broker in a directory: broker.log, server.properties, and the log directory `logs`."""

    build: Build

    def __init__(self, directory: Path, config: Mapping[str, object] | None = None) -> None:
        self.directory = directory
        self.log_file = directory / "broker.log"
        self.log_dir = directory / "logs"
        self.bootstrap_servers = ""
        self._config = dict(config or {})
        self._servers: list[Server] = []
        self._last: Server | None = None

    @abstractmethod
    def _launch(self) -> None:
        """Starts the servers in self._servers, on free ports; sets bootstrap_servers."""

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, PORT_TRIES + 1):
            try:
                self._launch()
                return
            except BrokerError:
                # Someone else may have taken the port since it was found free.
                taken = any("BindException" in server.log_text() for server in self._servers)
                self.kill()
                if not taken or attempt == PORT_TRIES:
                    raise
            except BaseException:
                self.kill()
                raise

    def stop(self) -> None:
        """Stops cleanly, in the reverse order of the start."""
        try:
            while self._servers:
                self._servers[-1].stop()
                self._servers.pop()
        finally:
            self.kill()
        if not (self.log_dir / ".kafka_cleanshutdown").is_file():
            raise BrokerError(f"the broker left no mark of a clean stop; see {self.log_file}")

    def last_log(self) -> str:
        """The same of a start that failed, too."""
        return self._last.log_text() if self._last else ""

    def kill(self) -> None:
        while self._servers:
            self._last = self._servers[-1]
            self._servers.pop().kill()

    def log_text(self) -> str:
        """What the broker has logged since its last start."""
        return self._servers[-1].log_text() if self._servers else ""

    def restart(self) -> None:
        self.stop()
        self.start()

    def client(self) -> LineClient:
        """A Driver of the broker's own version."""
        return LineClient(self.build, [self.bootstrap_servers], self.directory / "driver.log")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()

    def _write(self, name: str, values: Mapping[str, object]) -> str:
        path = self.directory / name
        path.write_text(properties(values), encoding="utf-8")
        return str(path)


class KraftBroker(Broker):
    """The newest Kafka 4: one node that is broker and controller, or (``controller``) a broker of the cluster that this address
    is the controller of. The loggers in ``say`` log at the level info."""

    def __init__(
        self,
        directory: Path,
        config: Mapping[str, object] | None = None,
        *,
        node: int = 1,
        controller: str = "",
        build: Build = KAFKA_4,
        heap_mb: int = 512,
        say: tuple[str, ...] = (),
    ) -> None:
        super().__init__(directory, config)
        self.build = build
        self.node = node
        self.controller = controller
        self._joins = bool(controller)
        self._flags = (
            f"-Xmx{heap_mb}m",
            *(f"-Dorg.slf4j.simpleLogger.log.{name}=info" for name in say),
        )

    def _launch(self) -> None:
        port = free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{port}"
        if not self._joins:
            self.controller = f"127.0.0.1:{free_port()}"
            listeners += f",CONTROLLER://{self.controller}"
        config = {
            **COMMON,
            "process.roles": "broker" if self._joins else "broker,controller",
            "node.id": self.node,
            "controller.quorum.bootstrap.servers": self.controller,
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.log_dir,
            # A few snapshots of the metadata, as small as it is.
            "metadata.log.max.record.bytes.between.snapshots": 4000,
            # No empty metadata record every half second.
            "metadata.max.idle.interval.ms": 0,
            "producer.id.expiration.ms": 7 * 86_400_000,
            **self._config,
        }
        path = self._write("server.properties", config)
        if not (self.log_dir / "meta.properties").is_file():
            self._format(path)
        flags = (QUIET, SAY_STARTED, SAY_STARTED_4, *self._flags)
        server = Server(
            f"Kafka {self.build.version}", self.build, BROKER_MAIN, [path], self.log_file, flags
        )
        self._servers.append(server)
        server.wait_for_log("Kafka Server started", START_LIMIT_S)
        self.bootstrap_servers = f"127.0.0.1:{port}"

    def _format(self, config: str) -> None:
        args = ["format", "-t", CLUSTER_ID, "-c", config]
        if not self._joins:
            args.append("--standalone")
        with self.log_file.open("ab") as out:
            done = subprocess.run(
                java_command(self.build, "kafka.tools.StorageTool", *args, flags=(QUIET,)),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=START_LIMIT_S,
                check=False,
            )
        if done.returncode != 0:
            raise BrokerError(f"the log directory cannot be formatted; see {self.log_file}")


class ZookeeperBroker(Broker):
    """Kafka 2.8 with a ZooKeeper of its own: the last series that keeps v0 and v1 message sets as they are."""

    build = KAFKA_2_8

    def _launch(self) -> None:
        zookeeper = f"127.0.0.1:{self._launch_zookeeper()}"
        port = free_port()
        config = {
            **COMMON,
            "broker.id": 1,
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": self.log_dir,
            "zookeeper.connect": zookeeper,
            **self._config,
        }
        path = self._write("server.properties", config)
        flags = (QUIET, SAY_STARTED)
        server = Server(
            f"Kafka {self.build.version}", self.build, BROKER_MAIN, [path], self.log_file, flags
        )
        self._servers.append(server)
        server.wait_for_log("[KafkaServer id=1] started", START_LIMIT_S)
        self.bootstrap_servers = f"127.0.0.1:{port}"

    def _launch_zookeeper(self) -> int:
        port = free_port()
        config = {
            "dataDir": self.directory / "zookeeper",
            "clientPort": port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "tickTime": 2000,
        }
        path = self._write("zookeeper.properties", config)
        # There is no log4j for it to register with JMX.
        flags = (
            QUIET,
            "-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server=info",
            "-Dzookeeper.jmx.log4j.disable=true",
        )
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        log = self.directory / "zookeeper.log"
        server = Server("ZooKeeper", self.build, main, [path], log, flags)
        self._servers.append(server)
        server.wait_for_log("binding to port", START_LIMIT_S)
        return port
