"""A real browser for tests: Chromium without a window, driven over two pipes by its own protocol.

Debian's package is ``chromium``. The variable CHROMIUM names another program.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60.0
LAUNCH = """
import fcntl, os, sys
there, back = (fcntl.fcntl(int(end), fcntl.F_DUPFD_CLOEXEC, 10) for end in sys.argv[1:3])
os.dup2(there, 3)
os.dup2(back, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Starts a program that reads commands from 3 and writes to 4, whatever numbers the ends of the pipes have."""


def program() -> str:
    """The browser's program; the test is skipped when there is none."""
    named = os.environ.get("CHROMIUM")
    if named and shutil.which(named) is None:
        pytest.fail(f"CHROMIUM names {named}, which is no program")
    found = named or next((name for name in NAMES if shutil.which(name)), None)
    if found is None:
        pytest.skip("needs Chromium (apt-get install chromium), or the variable CHROMIUM")
    return found


class PageLeft(Exception):
    """The page that was asked something is not there any more: another one is being loaded."""


class Browser:
    """One page of a browser. ``console`` gathers errors and what the page says on its console, ``requested`` the
    addresses that it asks for."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        command = [
            *(sys.executable, "-c", LAUNCH, str(to_child), str(from_child), program()),
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--remote-debugging-pipe", "--no-first-run", "--hide-scrollbars"),
            *(
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                f"--user-data-dir={self._folder.name}",
            ),
        ]
        self._process = subprocess.Popen(
            command,
            pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._rest = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self.console: list[str] = []
        self.requested: list[str] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._folder.cleanup()

    # ------------------------------------------------------------ what a reader does

    def open(self, page: Path, mark: str = "") -> None:
        """Open a page from disk, and wait until it is there."""
        # A page that differs in its mark alone is not loaded anew.
        self.load("about:blank")
        self.load(page.absolute().as_uri() + (f"#{mark}" if mark else ""))

    def load(self, url: str) -> None:
        """Go to an address, on this machine: no other can be reached. Events of pages that were there before may still come: each load has an id of its own."""
        loader = self.call("Page.navigate", url=url)["loaderId"]
        while not any(
            event["method"] == "Page.lifecycleEvent"
            and (event["params"]["loaderId"], event["params"]["name"]) == (loader, "load")
            for event in self._events
        ):
            self._receive()
        self._events.clear()

    def size(self, width: int, height: int) -> None:
        phone = width < 600
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def scheme(self, name: str) -> None:
        """Let the system say that it is ``light`` or ``dark``."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def scripts(self, on: bool) -> None:
        self.call("Emulation.setScriptExecutionDisabled", value=not on)

    def key(self, name: str, code: int = 0, text: str = "") -> None:
        """Press a key."""
        pressed = {"key": name, "windowsVirtualKeyCode": code}
        if text:
            pressed["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **pressed)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        for char in text:
            self.key(char, text=char)

    def follow(self, link: str) -> None:
        """Click the link that an expression gives. The page may be gone before it could answer."""
        self.get(f"void setTimeout(element => element.click(), 0, {link})")

    def point(self, selector: str, click: bool = False) -> None:
        """Move the pointer over the first element that a selector finds, and click it."""
        # What lies under the pointer is known once the page has been drawn where it was scrolled to.
        drawn = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        script = f"""(async () => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{block: "center", behavior: "instant"}});
            await {drawn};
            const box = element.getClientRects()[0];
            return [box.left + Math.min(8, box.width / 2), box.top + box.height / 2];
        }})()"""
        x, y = self.get(script)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.call(
                    "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
                )
        self.get(drawn)

    # ------------------------------------------------------------ what a reader sees

    def get(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str) -> Any:
        """The value of an expression, once it is true, on this page or on one that is being loaded.

        A page that is not yet whole is not asked: it has none of the elements below the last one that came.
        """
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if found := self.get(f"document.readyState === 'complete' && ({script})"):
                    return found
            except PageLeft:
                pass
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)

    def screenshot(self, path: Path) -> bytes:
        """What is in the window, as a PNG."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        path.write_bytes(data)
        return data

    # ------------------------------------------------------------ the protocol

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        return self._send(method, self._session, **parameters)

    def _send(
        self, method: str, session: str | None = None, **parameters: object
    ) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == self._number:
                if any(word in str(found.get("error")) for word in ("navigated", "context")):
                    raise PageLeft
                assert "error" not in found, f"{method}: {found['error']}"
                return dict(found["result"])

    def _receive(self) -> dict[str, Any]:
        """The next message; events are kept."""
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            assert ready, "the browser says nothing"
            data = os.read(self._read, 1 << 16)
            assert data, "the browser ended"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self._note(message)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        parameters = event.get("params", {})
        match event["method"]:
            case "Runtime.exceptionThrown":
                self.console.append(str(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.console.append(str(parameters["args"]))
            case "Log.entryAdded":
                self.console.append(str(parameters["entry"]["text"]))
            case "Network.requestWillBeSent":
                self.requested.append(str(parameters["request"]["url"]))
