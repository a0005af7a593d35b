"""A WebSocket that is made again when it breaks."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from ._backoff import Pauses
from ._errors import ClosedError, UnreachableError, WaggleError, error_of
from ._http import Http

log = logging.getLogger("waggle")

Frame = dict[str, Any]
MAX_PENDING = 1024
"""So many frames wait at most for the server."""
MAX_FRAME = 1 << 24
"""The largest frame that is read, in bytes."""
CALM = 5.0
"""A connection that lasted so many seconds was a good one."""


class Role(Protocol):
    """What a link connects."""

    @property
    def path(self) -> str:
        """Where it connects."""
        ...

    def greeting(self) -> Frame:
        """Return the frame that introduces the program on a new connection."""
        ...

    def take(self, f: Frame) -> bool:
        """Take a frame. Returns whether the server has greeted with it."""
        ...

    def lost(self) -> None:
        """Take that a connection which was ready has ended."""
        ...


@dataclass(eq=False)
class _Outgoing:
    frame: Frame
    settled: Callable[[Frame], bool]
    """Whether a frame of the server shows that it has this one, or has refused it."""
    sent: bool = False


class Link:
    """A WebSocket that is made again when it breaks: a frame is sent on each connection until a frame of the server settles it."""

    def __init__(self, http: Http, role: Role) -> None:
        self._http = http
        self._role = role
        self._pending: list[_Outgoing] = []
        self._once: deque[Frame] = deque()
        self._news = asyncio.Event()
        self._socket: Any = None
        self._ready = False
        self.error: WaggleError | None = None
        """Why the link has ended."""
        self.ended = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"waggle link {role.path}")
        self._task.add_done_callback(self._done)

    def send(self, frame: Frame, settled: Callable[[Frame], bool]) -> None:
        """Send a frame on each connection until it is settled."""
        if self.error:
            raise self.error
        if len(self._pending) >= MAX_PENDING:
            raise error_of("QUEUE_FULL", f"{MAX_PENDING} frames wait for the server", retryable=True)
        self._pending.append(_Outgoing(frame, settled))
        self._news.set()

    def tell(self, frame: Frame) -> None:
        """Send a frame once, if the connection is there."""
        if self._ready:
            self._once.append(frame)
            self._news.set()

    async def cut(self) -> None:
        """End the present connection as a bad line does."""
        if self._socket is not None:
            await self._socket.close(4000, "cut")

    def fail(self, error: WaggleError) -> None:
        """End the link, because reconnecting would change nothing."""
        if self.error is None:
            self.error = error
            self.ended.set()

    def _done(self, task: asyncio.Task[None]) -> None:
        """Have the program learn of a failure that no new connection can repair."""
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        failure = error_of("INTERNAL", f"the connection failed: {error!r}", retryable=False)
        failure.__cause__ = error
        self.fail(failure)

    async def aclose(self) -> None:
        """End the link."""
        self.fail(ClosedError("the program closed the connection"))
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        pauses = Pauses(self._http.backoff)
        refused = 0
        while self.error is None:
            began = time.monotonic()
            try:
                code, reason = await self._connect()
                refused = 0
            except _RefusedError as error:
                if error.status == 401 and self._http.renewable and refused == 0:
                    self._http.renew()
                elif error.is_final:
                    return self.fail(error.problem)
                code, reason = 1006, str(error.problem)
                refused += 1
            except (OSError, asyncio.TimeoutError, WaggleError) as error:
                code, reason = 1006, str(error)
            if self._ready:
                self._ready = False
                self._role.lost()
            self._once.clear()
            if code == 4401 and self._http.renewable:
                self._http.renew()
            elif is_final(code):
                known = reason if reason.isupper() and reason.replace("_", "").isalnum() else "CLOSED"
                return self.fail(error_of(known, f"the server closed the connection: {reason} ({code})"))
            if time.monotonic() - began > CALM:
                pauses.reset()
            self._http.turn()
            pause = pauses.pause(goodbye=code in (1001, 1012))
            log.info(
                "connection to %s ended (%d %s) and will be made again in %.2f s", self._role.path, code, reason, pause
            )
            await asyncio.sleep(pause)
        return None

    async def _connect(self) -> tuple[int, str]:
        """Live through one connection and return its close code."""
        from websockets.exceptions import ConnectionClosed

        headers = await self._http.headers()
        url = "ws" + self._http.base.removeprefix("http") + self._role.path
        self._socket = socket = await open_socket(url, headers)
        for o in self._pending:
            o.sent = False
        writer: asyncio.Task[None] | None = None
        try:
            await socket.send(json.dumps(self._role.greeting()))
            while True:
                frame = cast("Frame", json.loads(await socket.recv()))
                self._pending = [o for o in self._pending if not o.settled(frame)]
                if self._role.take(frame) and writer is None:
                    self._ready = True
                    writer = asyncio.ensure_future(self._write(socket))
        except ConnectionClosed as closed:
            received = closed.rcvd
            return (received.code, received.reason) if received else (1006, "the line broke")
        finally:
            self._socket = None
            if writer is not None:
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)
            await socket.close()

    async def _write(self, socket: Any) -> None:
        while True:
            self._news.clear()
            for o in [o for o in self._pending if not o.sent]:
                o.sent = True
                await socket.send(json.dumps(o.frame))
            while self._once:
                await socket.send(json.dumps(self._once.popleft()))
            await self._news.wait()


class _RefusedError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status
        codes = {401: "UNAUTHENTICATED", 403: "FORBIDDEN"}
        self.problem = error_of(
            codes.get(status, f"HTTP_{status}"),
            f"the server refused the connection with status {status}",
            status=status,
        )

    @property
    def is_final(self) -> bool:
        return 300 <= self.status < 500 and self.status not in (408, 425, 429)


def _refuse(_: Any) -> Any:
    raise _RefusedError(302)


def _kept(failure: Exception) -> Exception:
    return failure


async def open_socket(url: str, headers: dict[str, str]) -> Any:
    """Open a WebSocket with either interface of websockets: that of asyncio since 13, or the one before. It follows no redirect."""
    exceptions = importlib.import_module("websockets.exceptions")
    try:
        connect, name = importlib.import_module("websockets.asyncio.client").connect, "additional_headers"
    except ImportError:
        connect, name = importlib.import_module("websockets.client").connect, "extra_headers"
    connecting = connect(url, compression=None, max_size=MAX_FRAME, **{name: headers})
    connecting.MAX_REDIRECTS_ALLOWED = 1  # until 12
    connecting.handle_redirect = _refuse  # until 13
    connecting.process_redirect = _kept  # since 14, for any failure of a handshake
    try:
        return await connecting
    except exceptions.InvalidHandshake as refusal:
        response = getattr(refusal, "response", None)
        status = getattr(response, "status_code", None) or getattr(refusal, "status_code", 0)
        if not status:
            raise UnreachableError(f"{url} cannot be reached: {refusal}") from refusal
        raise _RefusedError(status) from refusal
    except exceptions.WebSocketException as broken:
        raise UnreachableError(f"{url} cannot be reached: {broken}") from broken


def is_final(code: int) -> bool:
    """Report whether a server that closes with the code does not want the client back."""
    return 4400 <= code <= 4499 or code in (1002, 1003, 1007, 1008, 1009)
