"""What stores are opened with: options as fsspec calls them (``storage.key``), or as Hadoop does for S3 (``fs.s3a.access.key``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark_kafka_log.options import OptionError

_OWN = "storage."
_HADOOP = "fs.s3a."
_S3 = ("s3", "s3a")
_DEFAULT_ENDPOINT = "s3.amazonaws.com"


def storage_options(url: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The options of fsspec's class for a URL, by those of Spark; ``storage.`` goes before ``fs.s3a.``. Names are in small letters, as
    all options of stores are. Raises :class:`OptionError`, which shows no value."""
    scheme, _, rest = url.partition("://")
    found: dict[str, Any] = {}
    if scheme.lower() in _S3:
        found |= _of_hadoop(given, rest.partition("/")[0].lower())
    for name, text in given.items():
        if name.startswith(_OWN):
            found[name.removeprefix(_OWN)] = _value(name, text)
    return found


def _value(name: str, text: str) -> Any:
    """A text, true or false, or a JSON object or list."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise OptionError(name, "it begins as JSON does, and is none") from None


def _of_hadoop(given: Mapping[str, str], bucket: str) -> dict[str, Any]:
    """What Hadoop's s3a connector would open a bucket with, as s3fs has it."""

    def said(name: str) -> str:
        text = given.get(f"{_HADOOP}bucket.{bucket}.{name}") or given.get(_HADOOP + name)
        return (text or "").strip()

    found: dict[str, Any] = {}
    for name, other in (
        ("access.key", "key"),
        ("secret.key", "secret"),
        ("session.token", "token"),
    ):
        if text := said(name):
            found[other] = text
    endpoint = said("endpoint")
    if endpoint and endpoint != _DEFAULT_ENDPOINT:
        scheme = "http" if said("connection.ssl.enabled").lower() == "false" else "https"
        found["endpoint_url"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    if region := said("endpoint.region"):
        found["client_kwargs"] = {"region_name": region}
    if said("path.style.access").lower() == "true":
        found["config_kwargs"] = {"s3": {"addressing_style": "path"}}
    if "AnonymousAWSCredentialsProvider" in said("aws.credentials.provider"):
        found["anon"] = True
    return found
