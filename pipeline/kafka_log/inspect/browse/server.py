"""HTTP server for one person on this machine. It answers GET and HEAD with pages, and knows nothing about logs."""

from __future__ import annotations

import io
import ipaddress
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

MAX_REQUEST_BYTES = 16 << 10
"""Maximum bytes of a request with its headers."""
REQUEST_SECONDS = 10.0
"""Time in which a client has to send its request, and again to take the answer."""
MAX_CONNECTIONS = 32
"""Maximum number of connections at a time. Further ones are closed."""
MAX_PARAMETERS = 16

Answer = Callable[[str, Mapping[str, str]], tuple[int, bytes]]
"""Returns status and page for the path of a URL and the parameters of its query."""
ErrorPage = Callable[[int, str], bytes]
"""Returns the page for a status and a message."""


class _RequestStream(io.RawIOBase):
    """Bytes of a request. They end after MAX_REQUEST_BYTES, and TimeoutError is raised after REQUEST_SECONDS."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left = MAX_REQUEST_BYTES
        self._deadline = time.monotonic() + REQUEST_SECONDS

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer and return the number of bytes: 0 at the end, and after
        MAX_REQUEST_BYTES. Raise TimeoutError if the time is over.
        """
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self._connection.settimeout(seconds)
        if not self._left:
            return 0  # recv_into would take it for no limit
        count = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= count
        return count


class PageServer(ThreadingHTTPServer):
    """Server of pages on a loopback address, for whoever knows its token.

    Args:
        host: Address of a loopback interface, or ``localhost``.
        port: Port; 0 takes a free one.
        answer: Makes the pages. It is called by one thread at a time.
        error_page: Makes the pages of errors.
        policy: Content security policy of all pages.

    Raises:
        ValueError: If ``host`` is no loopback address.
        OSError: If the port is taken.
    """

    daemon_threads = True
    request_queue_size = 2 * MAX_CONNECTIONS
    block_on_close = False

    def __init__(
        self, host: str, port: int, answer: Answer, error_page: ErrorPage, policy: str
    ) -> None:
        if not is_loopback(host):
            raise ValueError(
                f"{host} is no loopback address: pages are for this machine only; use 127.0.0.1, ::1 or localhost"
            )
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)
        self.answer = answer
        self.error_page = error_page
        self.policy = policy
        self.token = secrets.token_urlsafe(32)
        self.lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        name = f"[{host}]" if ":" in host else host
        self.origin = f"{name}:{self.server_address[1]}"

    @property
    def cookie(self) -> str:
        """Name of the cookie. Cookies do not know ports, so that each server has its own."""
        return f"kafka-log-{self.server_address[1]}"

    @property
    def url(self) -> str:
        """URL that opens the first page."""
        return f"http://{self.origin}/?token={self.token}"

    def is_token(self, text: str) -> bool:
        """Return whether a text is the token, in a time that does not depend on the text."""
        return secrets.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread, or close it if MAX_CONNECTIONS are being answered."""
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection, and make room for another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that broke."""


def is_loopback(host: str) -> bool:
    """Return whether a host is an address of a loopback interface, or ``localhost``. Other names
    are not looked up: return False.
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Handler(BaseHTTPRequestHandler):
    """Answers one request of a connection."""

    server: PageServer
    server_version = "kafka-log"
    sys_version = ""

    def setup(self) -> None:
        """Bound the request in bytes and time."""
        super().setup()
        self.rfile = io.BufferedReader(_RequestStream(self.connection))

    def do_GET(self) -> None:
        """Send the page of a URL. With a valid token in the URL, send a redirect that stores it in
        a cookie. Send an error page if the host is another one (421), the URL cannot be read or has
        more than MAX_PARAMETERS parameters (400), or there is no valid token or cookie (403). Pages
        are made one at a time.
        """
        if not self._is_own_host():
            self._send_error(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"The request is for another host than http://{self.server.origin}.",
            )
            return
        try:
            url = urlsplit(self.path)
            query = dict(
                parse_qsl(
                    url.query,
                    keep_blank_values=True,
                    errors="strict",
                    max_num_fields=MAX_PARAMETERS,
                )
            )
        except ValueError:
            self._send_error(HTTPStatus.BAD_REQUEST, "The URL cannot be read.")
            return
        token = query.pop("token", None)
        if token is not None and self.server.is_token(token):
            self._send_redirect()
        elif not self._has_cookie():
            self._send_error(
                HTTPStatus.FORBIDDEN,
                "The request has no valid token: open the URL that kafka-log browse printed.",
            )
        else:
            with self.server.lock:
                status, page = self.server.answer(url.path, query)
            self._send(status, page)

    do_HEAD = do_GET

    def _is_own_host(self) -> bool:
        """Return whether the request has exactly one Host header, with the address and port of this
        server, and a path from ``/`` on. Another name may be that of a page elsewhere that was made
        to lead here.
        """
        hosts = self.headers.get_all("Host", [])
        return hosts == [self.server.origin] and self.path.startswith("/")

    def _has_cookie(self) -> bool:
        """Return whether the request has the cookie with the token; False if its cookies cannot be
        read.
        """
        try:
            cookies = SimpleCookie("; ".join(self.headers.get_all("Cookie", [])))
        except CookieError:
            return False
        found = cookies.get(self.server.cookie)
        return found is not None and self.server.is_token(found.value)

    def _send_redirect(self) -> None:
        """Store the token in a cookie, and lead to the first page, whose URL does not have it."""
        cookie = f"{self.server.cookie}={self.server.token}; Path=/; HttpOnly; SameSite=Strict"
        self._send(HTTPStatus.SEE_OTHER, b"", {"Set-Cookie": cookie, "Location": "/"})

    def _send(self, status: int, page: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send an answer with the headers of all pages, which ``headers`` override; without its
        page to HEAD. Raise OSError if the client does not take it in REQUEST_SECONDS.
        """
        self.connection.settimeout(REQUEST_SECONDS)
        self.send_response(status)
        for name, value in {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": str(len(page)),
            "Content-Security-Policy": f"{self.server.policy}; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
            "Connection": "close",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page)

    def _send_error(
        self, status: int, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a page with a message."""
        self._send(status, self.server.error_page(status, message), headers)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send a page with the status ``code`` for a request that cannot be read, without its
        words, or with 405 for another method than GET and HEAD. ``message`` and ``explain`` are not
        used.
        """
        self.close_connection = True
        if code == HTTPStatus.NOT_IMPLEMENTED:
            allowed = "Only GET and HEAD are answered: nothing can be changed here."
            self._send_error(HTTPStatus.METHOD_NOT_ALLOWED, allowed, {"Allow": "GET, HEAD"})
            return
        self._send_error(code, "The request cannot be read, or is too large.")

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: URLs have tokens and search texts."""
