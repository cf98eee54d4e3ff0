"""Where a query began, in its checkpoint: what the connector writes there, without a session."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from shutil import which

import pyspark
import pytest

from pyspark_kafka_log.connector.jars import java_sources

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(which("javac") is None, reason="it compiles Java"),
]

MAIN = """
package pyspark_kafka_log;

public class Main {
    public static void main(String[] args) {
        for (String checkpoint : args) {
            InitialOffsets first = offsets(checkpoint), second = offsets(checkpoint);
            System.out.println(first.read() + " " + second.read());
            first.write("first");
            second.write("second");
            System.out.println(first.read() + " " + second.read());
        }
    }

    private static InitialOffsets offsets(String checkpoint) {
        return new InitialOffsets(checkpoint, new org.apache.hadoop.conf.Configuration());
    }
}
"""


def test_the_first_of_two_queries_decides(tmp_path: Path) -> None:
    """Both began when neither had written where: the second one leaves the file of the first."""
    source = "InitialOffsets.java"
    (tmp_path / source).write_text(java_sources()[source])
    (tmp_path / "Main.java").write_text(MAIN)
    jars = str(Path(pyspark.__file__).parent / "jars" / "*")
    files = [str(tmp_path / name) for name in (source, "Main.java")]
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", tmp_path, *files], check=True)
    names = str(tmp_path / "local"), (tmp_path / "url").as_uri()
    command = ["java", "-cp", f"{tmp_path}{os.pathsep}{jars}", "pyspark_kafka_log.Main", *names]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["null null", "first first"] * 2
    for name in ("local", "url"):
        written = tmp_path / name
        assert (written / "0").read_bytes() == b"\0v1\nfirst"
        assert {path.name for path in written.iterdir()} == {"0", ".0.crc"}
