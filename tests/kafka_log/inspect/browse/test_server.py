"""The server of ``kafka-log browse``: what it promises in SECURITY.md, asked with raw sockets."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kafka_log.inspect.browse import server as server_module
from kafka_log.inspect.browse.document import make_policy_of_pages, read_style, write_document
from kafka_log.inspect.browse.listing import Lister
from kafka_log.inspect.browse.records import RecordView
from kafka_log.inspect.browse.server import PageServer, is_loopback
from kafka_log.inspect.browse.site import Site, make_error_page
from kafka_log.inspect.report.html import make_policy
from tests.paths import SAMPLES

BROKER = SAMPLES / "kafka-4.x"


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    site = Site(Lister([str(BROKER)]), RecordView())
    found = PageServer(
        "127.0.0.1",
        0,
        site.answer,
        lambda status, message: write_document(make_error_page(status, message)),
        make_policy_of_pages(),
    )
    threading.Thread(target=found.serve_forever, daemon=True).start()
    with found:
        yield found
        found.shutdown()


def send(server: PageServer, data: bytes) -> bytes:
    """The whole answer to some bytes."""
    with socket.create_connection(("127.0.0.1", int(server.server_address[1])), 30) as connection:
        connection.sendall(data)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    return answer


def ask(
    server: PageServer,
    target: str = "/",
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    *,
    cookie: bool = True,
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer."""
    given = {"Host": server.origin, **(headers or {})}
    if cookie:
        given.setdefault("Cookie", f"other=1; {server.cookie}={server.token}")
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    answer = send(server, "\r\n".join([*lines, "", ""]).encode("latin-1"))
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in rest), body


@pytest.mark.slow
def test_the_token_becomes_a_cookie(server: PageServer) -> None:
    assert re.fullmatch(rf"http://{re.escape(server.origin)}/\?token=[A-Za-z0-9_-]{{43}}", server.url)  # fmt: skip
    status, headers, body = ask(server, f"/?token={server.token}", cookie=False)
    assert (status, headers["Location"], body) == (303, "/", b"")
    name, _, rest = headers["Set-Cookie"].partition("=")
    assert name == f"kafka-log-{server.server_address[1]}"
    assert rest == f"{server.token}; Path=/; HttpOnly; SameSite=Strict"
    status, headers, body = ask(server)
    assert status == 200 and b"13 topics" in body
    assert "Set-Cookie" not in headers
    assert server.token.encode() not in body


@pytest.mark.parametrize(
    "target, cookie",
    [
        ("/", None),
        ("/", "{name}="),
        ("/", "{name}=x"),
        ("/", "{name}=\xff"),
        ("/", "{name}={almost}"),
        ("/", "kafka-log={token}"),
        ("/", "=;=;,"),
        ("/?token=", None),
        ("/?token=x", None),
        ("/?token=%ff", None),
        ("/?token={almost}", None),
        ("/nothing", None),
        ("/problems", "{name}={almost}"),
    ],
)
def test_without_the_token_there_is_no_page(
    server: PageServer, target: str, cookie: str | None
) -> None:
    words = {"name": server.cookie, "token": server.token, "almost": server.token[:-1] + "!"}
    headers = {} if cookie is None else {"Cookie": cookie.format(**words)}
    status, answered, body = ask(server, target.format(**words), headers=headers, cookie=False)
    assert status in (400, 403)
    assert "Set-Cookie" not in answered
    for word in (b"codecs", bytes(BROKER), server.token.encode()):
        assert word not in body


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "evil.example:{port}",
        "",
    ],
)
def test_another_host_is_refused(server: PageServer, host: str) -> None:
    port = server.server_address[1]
    for target in ("/", f"/?token={server.token}"):
        status, headers, body = ask(server, target, headers={"Host": host.format(port=port)})
        assert status == 421
        assert "Set-Cookie" not in headers and b"codecs" not in body


def test_requests_without_one_host_are_refused(server: PageServer) -> None:
    cookie = f"Cookie: {server.cookie}={server.token}\r\n"
    own = f"Host: {server.origin}\r\n"
    for words in (
        f"GET / HTTP/1.0\r\n{cookie}\r\n",
        f"GET / HTTP/1.1\r\n{own}Host: evil.example\r\n{cookie}\r\n",
        f"GET http://evil.example/ HTTP/1.1\r\n{own}{cookie}\r\n",
        f"GET http://{server.origin}/ HTTP/1.1\r\n{own}{cookie}\r\n",
        "GET /\r\n\r\n",
    ):
        assert b"codecs" not in send(server, words.encode())


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW", "get"]
)
def test_only_get_and_head_are_answered(server: PageServer, method: str) -> None:
    status, headers, body = ask(server, "/", method)
    assert status == 405
    assert headers["Allow"] == "GET, HEAD"
    assert b"codecs" not in body


@pytest.mark.slow
def test_head_is_get_without_the_page(server: PageServer) -> None:
    got, head = ask(server, "/problems"), ask(server, "/problems", "HEAD")
    assert head[2] == b""
    same = set(got[1]) - {"Date"}
    assert {name: got[1][name] for name in same} == {name: head[1][name] for name in same}
    assert int(head[1]["Content-Length"]) == len(got[2])


@pytest.mark.parametrize("target, status", [("/", 200), ("/nothing", 404), ("/topics/x", 404)])
def test_every_answer_forbids_what_a_page_does_not_need(
    server: PageServer, target: str, status: int
) -> None:
    answers = [ask(server, target), ask(server, target, cookie=False), ask(server, target, "POST")]
    assert answers[0][0] == status
    for _, headers, body in answers:
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy
        assert policy == f"{make_policy(read_style(), has_forms=True)}; frame-ancestors 'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert "Access-Control-Allow-Origin" not in headers
        assert "Python" not in headers["Server"]
        assert b"<script" not in body


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [
        "/%",
        "/%00",
        "/\x01",
        "/?a=%ff",
        "/?" + "&".join(f"a{i}=1" for i in range(99)),
        "//evil.example/",
        "/\\..\\..",
        "/?offset=1&offset=2",
    ],
)
def test_odd_requests_give_pages(server: PageServer, target: str) -> None:
    status, _, body = ask(server, target)
    assert status in (200, 400, 404, 421)
    assert b"Traceback" not in body


def test_requests_are_bounded_in_size(server: PageServer) -> None:
    for data in (
        b"GET /" + b"x" * 100_000,
        b"GET / HTTP/1.1\r\nHost: " + b"x" * 100_000,
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 50_000,
        b"\0" * 100_000,
        b"\xff\xfe\r\n\r\n",
    ):
        try:
            answer = send(server, data)
        except ConnectionError:  # it did not read all of it
            continue
        assert b"13 topics" not in answer
    assert ask(server)[0] == 200


@pytest.mark.slow
def test_slow_clients_are_dropped(server: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "REQUEST_SECONDS", 0.5)
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", int(server.server_address[1])), 30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            while time.monotonic() < begun + 20:  # a byte now and then does not help
                connection.sendall(b"A")
                time.sleep(0.05)
    assert time.monotonic() < begun + 15
    assert ask(server)[0] == 200


@pytest.mark.slow
def test_clients_that_do_not_read_are_dropped(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "REQUEST_SECONDS", 0.5)
    monkeypatch.setattr(server, "answer", lambda path, query: (200, b"x" * (64 << 20)))
    lines = [f"GET / HTTP/1.1\r\nHost: {server.origin}", f"Cookie: {server.cookie}={server.token}"]
    with socket.create_connection(("127.0.0.1", int(server.server_address[1])), 30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        time.sleep(2)
        size = 0
        while part := connection.recv(1 << 20):
            size += len(part)
    assert size < 64 << 20


@pytest.mark.slow
def test_connections_are_bounded_in_number(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "REQUEST_SECONDS", 3.0)
    held = [
        socket.create_connection(("127.0.0.1", int(server.server_address[1])), 30)
        for _ in range(60)
    ]
    end = time.monotonic() + 30
    while threading.active_count() > server_module.MAX_CONNECTIONS + 20:
        assert time.monotonic() < end
    for connection in held:
        connection.close()
    while True:  # until the threads have seen that
        try:
            assert ask(server)[0] == 200
            return
        except (ConnectionError, IndexError):
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.mark.soak
def test_pages_come_in_any_order_from_many_clients(server: PageServer) -> None:
    found: list[int] = []

    def load() -> None:
        for target in ("/", "/problems", "/nothing"):
            found.append(ask(server, target)[0])

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [200] * 16 + [404] * 8


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", "127.0.0.1.evil.example", ""])  # fmt: skip
def test_other_addresses_are_refused(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(ValueError, match="loopback"):
        PageServer(host, 0, lambda path, query: (200, b""), lambda status, said: b"", "")


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_loopback_addresses_are_taken(host: str) -> None:
    try:
        found = PageServer(host, 0, lambda path, query: (200, b"x"), lambda status, said: b"", "")
    except OSError:
        pytest.skip(f"{host} cannot be bound here")
    with found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        connection = http.client.HTTPConnection(host, found.server_address[1], timeout=30)
        connection.request("GET", "/", headers={"Cookie": f"{found.cookie}={found.token}"})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"x")
        connection.close()
        found.shutdown()


def test_the_token_is_compared_in_constant_time() -> None:
    source = Path(server_module.__file__).read_text(encoding="utf-8")
    assert "compare_digest" in source
    assert not re.search(r"token\s*==|==\s*self\.(server\.)?token", source)
