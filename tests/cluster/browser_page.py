"""A page in a real browser without a window, driven by the DevTools protocol of Chromium.

It uses the standard library only, with as much of WebSocket as the protocol needs.
"""
import base64
import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time
import urllib.request

PATIENCE_S = 60


def find_browser():
    """The browser that the tests in C++ use, too (browser.h), or None."""
    chosen = os.environ.get("ATOLL_BROWSER")
    paths = [chosen] if chosen else ["/usr/bin/chromium", "/usr/bin/chromium-headless-shell"]
    return next((path for path in paths if os.access(path, os.X_OK)), None)


class WebSocket:
    def __init__(self, port, path):
        self.raw = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        key = base64.b64encode(os.urandom(16)).decode()
        self.raw.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                          "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                          f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.file = self.raw.makefile("rb")
        status = self.file.readline()
        if b" 101 " not in status:
            raise OSError(f"no WebSocket: {status}")
        while self.file.readline() != b"\r\n":
            pass

    def send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        if len(data) < 126:
            head = struct.pack("!BB", 0x81, 0x80 | len(data))
        elif len(data) < 1 << 16:
            head = struct.pack("!BBH", 0x81, 0x80 | 126, len(data))
        else:
            head = struct.pack("!BBQ", 0x81, 0x80 | 127, len(data))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.raw.sendall(head + mask + masked)

    def receive(self):
        """The next text. Its parts may arrive in several frames."""
        text = b""
        while True:
            first, size = self.file.read(2)
            if size == 126:
                size = struct.unpack("!H", self.file.read(2))[0]
            elif size == 127:
                size = struct.unpack("!Q", self.file.read(8))[0]
            payload = self.file.read(size)
            if first & 0x0F in (0, 1):  # a first or a further part; pings are skipped
                text += payload
                if first & 0x80:
                    return text.decode()

    def close(self):
        self.file.close()
        self.raw.close()


class Page:
    """Use it in a `with` block. `folder`: a new folder of the browser."""

    def __init__(self, folder, url):
        self.browser = subprocess.Popen(
            [find_browser(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-breakpad", "--remote-debugging-port=0",
             f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.last = 0
        self.requested = []  # addresses that the page has loaded
        self.complaints = []  # errors of scripts, and refused contents
        try:
            self.socket = self.connect(pathlib.Path(folder) / "DevToolsActivePort")
        except BaseException:
            self.end_browser()
            raise
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.socket.close()
        self.end_browser()

    def end_browser(self):
        """The browser's program may be a script that starts it, so the whole group ends."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.browser.pid, signal.SIGKILL)
        self.browser.wait()

    def connect(self, port_file):
        end = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
                port = int(port_file.read_text(encoding="utf-8").splitlines()[0])
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                    targets = json.load(answer)
                page = next(target for target in targets if target["type"] == "page")
                return WebSocket(port, "/" + page["webSocketDebuggerUrl"].split("/", 3)[3])
            if time.monotonic() > end:
                raise TimeoutError("the browser opens no port")
            time.sleep(0.05)

    def call(self, method, **parameters):
        """Sends a command, and returns its result."""
        self.last += 1
        self.socket.send(json.dumps({"id": self.last, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.last:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self.take_event(message)

    def take_event(self, message):
        parameters = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(parameters)

    def evaluate(self, expression):
        """The value of an expression of JavaScript in the page. Promises are awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")
