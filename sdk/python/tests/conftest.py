"""A real server, and lines to it that break."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "standins"))  # of the frameworks of waggle.integrations

LIMIT = 120.0
"""Bounds a test that fails."""

SETTINGS = """
pipeline: {retry_backoff: 20ms}
worker: {model_tries: 1}
gateway: {message_rate: 1000, message_burst: 1000}
assistant: {enabled: false}
"""


def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    """Run asynchronous tests, each in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {n: pyfuncitem.funcargs[n] for n in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), LIMIT))
    return True


class Results:
    """Writes the results of the tests as "go test -json" does: scripts/testsum of the repository counts them with all others."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        package, _, test = report.nodeid.partition("::")
        self._put(package, test, "run")
        if report.failed:
            self._put(package, test, "output", Output=report.longreprtext)
        self._put(
            package, test, {"passed": "pass", "failed": "fail"}.get(report.outcome, "skip"), Elapsed=report.duration
        )

    def _put(self, package: str, test: str, action: str, **more: Any) -> None:
        self._lines.append(json.dumps({"Package": f"sdk/python/{package}", "Test": test, "Action": action, **more}))

    def pytest_sessionfinish(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text("".join(f"{line}\n" for line in self._lines))


def pytest_configure(config: pytest.Config) -> None:
    if file := os.environ.get("WAGGLE_TEST_RESULTS"):
        config.pluginmanager.register(Results(Path(file)))


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Server:
    """`waggle up`, with the demo model."""

    def __init__(self, folder: Path, settings: str = SETTINGS) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "waggle.yaml").write_text(settings)
        bus, telemetry = free_port(), free_port()
        self._args = [
            os.environ.get("WAGGLE_E2E_BINARY") or str(Path(__file__).parents[3] / "bin" / "waggle"),
            *("up", "--config", str(folder / "waggle.yaml"), "--addr", f"127.0.0.1:{self.port}"),
            *("--nats-addr", f"127.0.0.1:{bus}", "--telemetry-addr", f"127.0.0.1:{telemetry}"),
            *("--data", str(folder / "data"), "--workspace", str(self.workspace)),
        ]
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Start it and return once it serves."""
        log = (self.folder / "log").open("a")
        environment = {n: v for n, v in os.environ.items() if not n.startswith("WAGGLE_")}
        self._process = subprocess.Popen(
            self._args, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith("Open in a browser"):
                return
        raise AssertionError(f"the server did not start: {(self.folder / 'log').read_text()[-4000:]}")

    def kill(self) -> None:
        """End it as kill -9 does."""
        assert self._process
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


@pytest.fixture(scope="session")
def server() -> Generator[Server, None, None]:
    """Return a server that all tests share."""
    with tempfile.TemporaryDirectory(prefix="waggle-py-") as folder:
        started = Server(Path(folder))
        yield started
        started.kill()


@pytest.fixture
def own_server(tmp_path: Path) -> Generator[Server, None, None]:
    """Return a server of the test's own, which it may kill."""
    started = Server(tmp_path)
    yield started
    started.kill()


class CuttingProxy:
    """A proxy that cuts each connection after some bytes of the server's, as told by the function: None never."""

    def __init__(self, port: int, after: Callable[[int], int | None]) -> None:
        self._port = port
        self._after = after
        self.connections = 0
        self.cuts = 0
        self.url = ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = self._after(self.connections)
        self.connections += 1
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        up = asyncio.ensure_future(_copy(reader, forth))
        try:
            while piece := await back.read(1 << 16):
                if left is not None and len(piece) >= left:
                    writer.write(piece[:left])
                    with suppress(OSError):
                        await writer.drain()
                    self.cuts += 1
                    break
                if left is not None:
                    left -= len(piece)
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            up.cancel()
            forth.transport.abort()
            writer.close()  # what was written arrives, then the connection ends

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[CuttingProxy, None]:
        """Serve."""
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            listener.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()


Handler = Callable[[str, bytes], Awaitable[bytes]]


@asynccontextmanager
async def scripted(handler: Handler) -> AsyncGenerator[str, None]:
    """Serve HTTP with the responses of the handler, which gets the head and the body of each request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lengths = [line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length:")]
            body = await reader.readexactly(int(lengths[0])) if lengths else b""
            writer.write(await handler(head, body))
            await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()


def response(status: int, body: str = "", **headers: str) -> bytes:
    """Return an HTTP response."""
    lines = [f"{n.replace('_', '-')}: {v}" for n, v in headers.items()]
    head = "\r\n".join([f"HTTP/1.1 {status} X", "Connection: close", f"Content-Length: {len(body.encode())}", *lines])
    return f"{head}\r\n\r\n{body}".encode()


def sequences(events: list[Any]) -> list[int]:
    """Return the positions for which events stand: one that was merged from several stands for all of them."""
    return [n for e in events for n in range(e.get("from", e["sequence"]), e["sequence"] + 1)]
