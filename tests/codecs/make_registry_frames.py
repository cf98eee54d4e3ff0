"""Makes tests/data/registry_frames.jsonl: what the serializers of AWS Glue and Apicurio write.

python -m tests.codecs.make_registry_frames      (needs Java 17, Maven and Maven Central)
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.paths import ROOT

FILE = ROOT / "tests" / "data" / "registry_frames.jsonl"
PROGRAMS = {
    "GlueFrames": ("software.amazon.glue", "schema-registry-serde", "1.1.24"),
    "ApicurioFrames": ("io.apicurio", "apicurio-registry-serdes-avro-serde", "2.6.13.Final"),
}
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>frames</groupId><artifactId>frames</artifactId><version>1</version>
<dependencies><dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency></dependencies>
</project>
"""


def main() -> None:
    written = ""
    for program, dependency in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "pom.xml").write_text(POM.format(*dependency), encoding="utf-8")
            copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
            subprocess.run(copy, cwd=directory, check=True)
            source = ROOT / "tests" / "support" / f"{program}.java"
            command = ["java", "-cp", f"{directory}/jars/*", str(source)]
            written += subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    FILE.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
