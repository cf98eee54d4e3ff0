"""Translate Spark's options into those of fsspec: ``storage.key``, and Hadoop's ``fs.s3a.access.key`` for S3, Azure and Google."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from kafka_log.segment.urls import FileUrlError, path_of_file_url
from pyspark_kafka_log.options import OptionError

_DEFAULT_ENDPOINT = "s3.amazonaws.com"
_AZURE = ".core.windows.net"
"""Hosts of Azure's public cloud, which adlfs finds by itself."""

_KEY_FILES = (
    "fs.gs.auth.service.account.json.keyfile",
    "google.cloud.auth.service.account.json.keyfile",
)
_NO_CREDENTIALS = ("fs.gs.auth.null.enable", "google.cloud.auth.null.enable")


_OWN = "storage."


def storage_options(url: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of fsspec's class for a URL, from options of Hadoop's connectors and
    options ``storage.NAME``, which override them. Of the latter, ``true`` and ``false`` become
    bools, and JSON objects and lists are parsed. Names in ``given`` are in lower case. Raise
    OptionError if the URL is invalid, a value begins like JSON and is invalid, or Google's key file
    cannot be read or is not JSON.

    The message shows no secret.
    """
    found = hadoop_options(
        url, {name: text for name, text in given.items() if not name.startswith(_OWN)}
    )
    for name, text in given.items():
        if name.startswith(_OWN):
            found[name.removeprefix(_OWN)] = _parse_value(name, text)
    return found


def _parse_value(name: str, text: str) -> Any:
    """Return a bool for ``true`` or ``false`` in any case, the parsed value of a JSON object or
    list, any other text itself. Raise OptionError, which names the option ``name``, if the text
    begins, perhaps after blanks, with ``{`` or ``[`` and is invalid JSON.
    """
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise OptionError(
            name, "it begins with { or [ like JSON, but is not valid JSON: correct it"
        ) from None


def hadoop_options(url: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Return fsspec's options for an s3, s3a, abfs, abfss, gs or gcs URL from those of Hadoop's
    connector (``given``, names in lower case); ``{}`` for another scheme, or abfs without a
    container. Raise OptionError if the URL is invalid, or a key file of Google cannot be read or is not JSON.

    The message shows no secret.
    """
    parts = _split_url("path", url)
    scheme, authority = parts.scheme.lower(), parts.netloc.lower()
    if scheme in ("s3", "s3a"):
        return _s3_options(given, authority)
    if scheme in ("abfs", "abfss") and "@" in authority:
        return _azure_options(given, scheme, *authority.split("@", 1))
    if scheme in ("gs", "gcs"):
        return _google_options(given)
    return {}


def _split_url(name: str, url: str) -> SplitResult:
    """Return the parts of the URL in the option ``name``. Raise OptionError, without the URL in its
    message, if it is invalid.
    """
    try:
        return urlsplit(url)
    except ValueError:
        raise OptionError(name, "it is not a valid URL: correct its host") from None


def _s3_options(given: Mapping[str, str], bucket: str) -> dict[str, Any]:
    """Return s3fs's options for a bucket from Hadoop's ``fs.s3a`` settings: keys, endpoint, region,
    path style, anonymous access. A setting of the bucket overrides the general one. An endpoint
    without a scheme gets ``https``, or ``http`` if ``connection.ssl.enabled`` is false. Leave out
    what is not set, and the default endpoint of AWS.
    """
    setting = _setting_reader(
        given, lambda name: (f"fs.s3a.bucket.{bucket}.{name}", f"fs.s3a.{name}")
    )
    found: dict[str, Any] = _read_settings(
        setting, key="access.key", secret="secret.key", token="session.token"
    )
    endpoint = setting("endpoint")
    if endpoint and endpoint != _DEFAULT_ENDPOINT:
        scheme = "http" if setting("connection.ssl.enabled").lower() == "false" else "https"
        found["endpoint_url"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    if region := setting("endpoint.region"):
        found["client_kwargs"] = {"region_name": region}
    if setting("path.style.access").lower() == "true":
        found["config_kwargs"] = {"s3": {"addressing_style": "path"}}
    if "anonymousawscredentialsprovider" in setting("aws.credentials.provider").lower():
        found["anon"] = True
    return found


def _azure_options(
    given: Mapping[str, str], scheme: str, container: str, host: str
) -> dict[str, Any]:
    """Return adlfs's options for a container of a storage account from Hadoop's ``fs.azure``
    settings: account key, SAS token or OAuth client, as the authentication type says, or any of
    them if none is set. Another type gives no credentials. Add the account's name and host outside
    of Azure's own domain. An endpoint with a port is taken as an emulator. Raise OptionError if the
    URL of the OAuth endpoint is invalid.
    """
    blobs = host.replace(".dfs.", ".blob.", 1)
    ends = [f".{container}.{host}", f".{host}", f".{container}.{blobs}", f".{blobs}", ""]
    setting = _setting_reader(given, lambda name: [f"fs.azure.{name}{end}" for end in ends])
    account = host.partition(".")[0]
    found: dict[str, Any] = {}
    if not host.endswith(_AZURE):
        found |= {"account_name": account, "account_host": blobs}
    kind = setting("account.auth.type").lower()
    if kind in ("", "sharedkey"):
        found |= _read_settings(setting, account_key="account.key")
    if kind in ("", "sas") and (sas := setting("sas.fixed.token") or setting("sas")):
        found["sas_token"] = sas.removeprefix("?")
    if kind in ("", "oauth") and (client := setting("account.oauth2.client.id")):
        found |= {"client_id": client}
        found |= _read_settings(setting, client_secret="account.oauth2.client.secret")
        if endpoint := setting("account.oauth2.client.endpoint"):
            address = _split_url("fs.azure.account.oauth2.client.endpoint", endpoint)
            found["tenant_id"] = address.path.strip("/").partition("/")[0]
    endpoint = setting("abfs.endpoint")
    if ":" in endpoint:  # that of an emulator, as Hadoop has it: an address with a port
        tls = scheme == "abfss" or setting("always.use.https").lower() != "false"
        return _azure_emulator_options(f"http{'s' * tls}://{endpoint}/{account}", account, found)
    return found


def _azure_emulator_options(url: str, account: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return adlfs's options for an emulator: only ``connection_string``, with the account as
    ``AccountName``, ``url`` as ``BlobEndpoint`` (the caller has appended the account), and from
    ``found`` the ``account_key`` or else the ``sas_token``, if there is one.
    """
    parts = [f"AccountName={account}", f"BlobEndpoint={url}"]
    if key := found.get("account_key"):
        parts.append(f"AccountKey={key}")
    elif sas := found.get("sas_token"):
        parts.append(f"SharedAccessSignature={sas}")
    return {"connection_string": ";".join(parts)}


def _google_options(given: Mapping[str, str]) -> dict[str, Any]:
    """Return gcsfs's options from Hadoop's ``fs.gs`` settings: project, endpoint, and as token
    ``anon``, a default kind of credentials, or the content of a service account's key file. Leave
    out what is not set, and the token for another type of authentication. Raise OptionError if the
    key file cannot be read or is not JSON.
    """
    setting = _setting_reader(given, lambda name: (name,))
    found = _read_settings(setting, project="fs.gs.project.id")
    if root := setting("fs.gs.storage.root.url").rstrip("/"):
        found["endpoint_url"] = root
    kind = setting("fs.gs.auth.type").lower()
    if kind == "unauthenticated" or any(
        setting(name).lower() == "true" for name in _NO_CREDENTIALS
    ):
        found["token"] = "anon"
    elif kind in ("application_default", "compute_engine"):
        found["token"] = "google_default" if kind == "application_default" else "cloud"
    elif kind in ("", "service_account_json_keyfile"):
        name = next((name for name in _KEY_FILES if setting(name)), None)
        if name is not None:
            found["token"] = _read_key_file(name, setting(name))
    return found


def _read_key_file(name: str, path: str) -> Any:
    """Return the parsed JSON of a service account's key file, given as path or ``file:`` URL. Raise
    OptionError, which names the option ``name``, if the URL is invalid, or the file cannot be read
    or is not JSON.
    """
    try:
        file = Path(path_of_file_url(path) or path)
    except FileUrlError as error:
        raise OptionError(name, str(error)) from None
    try:
        return json.loads(file.read_bytes())
    except OSError as error:
        raise OptionError(name, f"the key file {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise OptionError(
            name, f"{path} is not JSON; the key file of a service account is JSON"
        ) from None


def _setting_reader(given: Mapping[str, str], names: Any) -> Callable[[str], str]:
    """Return a function from a setting's name to the first value in ``given``, among the keys
    ``names(name)``, that is not blank, without surrounding spaces; ``""`` if there is none.
    """

    def setting(name: str) -> str:
        return next((text for one in names(name) if (text := given.get(one, "").strip())), "")

    return setting


def _read_settings(setting: Callable[[str], str], **names: str) -> dict[str, Any]:
    """Return the non-empty settings among ``names``, under fsspec's names."""
    return {ours: text for ours, name in names.items() if (text := setting(name))}
