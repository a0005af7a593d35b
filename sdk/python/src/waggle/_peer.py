"""What agents and services have in common: registration, requests, and a bound of what runs at once."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ._backoff import Backoff
from ._errors import WaggleError, error_of
from ._http import Http, Token
from ._link import Frame, Link

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

log = logging.getLogger("waggle")

GOODBYE = 2.0
"""Seconds that the server has to confirm a goodbye."""


def new_id() -> str:
    """Return a random id."""
    return str(uuid.uuid4())


def stamp() -> str:
    """Return the time as frames have it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_limit(metadata: Frame) -> float | None:
    """Return the seconds that a task or a call had when the server sent it. Both moments are by the server's clock."""
    try:
        sent, deadline = (datetime.fromisoformat(metadata[n].replace("Z", "+00:00")) for n in ("timestamp", "deadline"))
    except (KeyError, AttributeError, ValueError):
        return None
    return max((deadline - sent).total_seconds(), 0.0)


def failure(e: BaseException) -> Frame:
    """Return what the server is told of an exception."""
    if isinstance(e, WaggleError):
        return {"error": e.message, "code": e.code, "details": e.detail}
    return {"error": str(e) or type(e).__name__}


def error_in(f: Frame) -> WaggleError:
    """Return the error of a frame."""
    content: Frame = f.get("content") or {}
    text = content.get("error") or "the server refused it"
    return error_of(content.get("code") or "REFUSED", str(text), detail=f)


class Peer:
    """An agent or a service at work. It reconnects by itself."""

    role: str

    def __init__(self, concurrency: int) -> None:
        self.id: str = ""
        self._slots = asyncio.Semaphore(concurrency)
        self._work: dict[str, asyncio.Task[None]] = {}
        self._registration = ""
        self._ready = asyncio.Event()
        self._stopping = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def path(self) -> str:
        """Where it connects."""
        return f"/ws/asp/{self.role}"

    async def start(self, url: str | Sequence[str], token: Token | None, backoff: Backoff | None) -> None:
        """Connect, and return once the server has registered it."""
        urls = [url] if isinstance(url, str) else list(url)
        self._link = Link(Http(urls, token, backoff=backoff or Backoff(), timeout=None), self)
        ready, ended = (asyncio.ensure_future(e.wait()) for e in (self._ready, self._link.ended))
        await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        ended.cancel()
        if self._link.error:
            raise self._link.error

    async def done(self) -> None:
        """Wait until it was stopped. Raises the error with which the server refused it for good."""
        await self._link.ended.wait()
        if self._link.error and not self._stopping:
            raise self._link.error

    async def cut(self) -> None:
        """End the present connection as a bad line does."""
        await self._link.cut()

    async def stop(self) -> None:
        """Say goodbye: what is unfinished goes to others at once."""
        if self._stopping:
            return
        self._stopping = True
        work = [*self._work.values()]
        for task in work:
            task.cancel()
        try:
            await asyncio.wait_for(self.call(f"{self.role}.unregister", {}), GOODBYE)
        except (WaggleError, asyncio.TimeoutError) as error:
            log.info("the server did not confirm the goodbye: %s", error)
        await self._link.aclose()
        await asyncio.gather(*work, return_exceptions=True)

    def description(self) -> Frame:
        """Return what it registers as."""
        raise NotImplementedError

    def work(self, f: Frame) -> None:
        """Take a frame that is no answer."""
        raise NotImplementedError

    def greeted(self, f: Frame) -> None:
        """Take the answer to the registration."""

    def lost(self) -> None:
        """Take that a connection which was ready has ended."""

    def greeting(self) -> Frame:
        """Return the frame that registers it."""
        self._registration = new_id()
        return {
            "id": self._registration,
            "type": f"{self.role}.register",
            "timestamp": stamp(),
            "content": self.description(),
        }

    def take(self, f: Frame) -> bool:
        """Take a frame."""
        if f.get("type") == f"{self.role}.registered":
            self.greeted(f)
            self._ready.set()
            log.info("%s %s is registered", self.role, self.id)
            return True
        if f.get("type") == "error":
            error = error_in(f)
            if f.get("requestId") == self._registration and not error.retryable:
                self._link.fail(error)
            else:
                log.warning("the server refused a frame: %s", error)
        elif not self._stopping:
            self.work(f)
        return False

    async def call(self, type: str, content: Frame, answered: Callable[[str, Frame], bool] | None = None) -> Frame:
        """Send a request until it is answered, and return the content of the answer. answered says which frame ends it."""
        id = new_id()
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()

        def settled(f: Frame) -> bool:
            if answer.done():
                return True
            failed = f.get("type") == "error" and f.get("requestId") == id
            if not failed and not (answered(id, f) if answered else f.get("requestId") == id):
                return False
            if failed:
                answer.set_exception(error_in(f))
            else:
                answer.set_result(f.get("content") or {})
            return True

        self._link.send({"id": id, "type": type, "timestamp": stamp(), "content": content}, settled)
        ended = asyncio.ensure_future(self._link.ended.wait())
        try:
            await asyncio.wait({answer, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            if not answer.done():
                answer.cancel()
        if answer.cancelled() and self._link.error:
            raise self._link.error
        return answer.result()

    async def deliver(self, type: str, content: Frame) -> None:
        """Send a frame that has no answer until the server is known to have it: it answers a ping after it."""
        ping = new_id()
        done = asyncio.Event()

        def settled(f: Frame) -> bool:
            if f.get("requestId") == ping:
                done.set()
            return done.is_set()

        self._link.send({"id": new_id(), "type": type, "timestamp": stamp(), "content": content}, settled)
        self._link.send({"id": ping, "type": "ping", "content": {}}, settled)
        await done.wait()

    def tell(self, type: str, content: Frame) -> None:
        """Send a frame on the present connection only."""
        self._link.tell({"id": new_id(), "type": type, "timestamp": stamp(), "content": content})

    def begin(self, id: str, metadata: Frame, f: Callable[[], Awaitable[None]]) -> None:
        """Do work once there is room for it, no longer than until its deadline."""

        async def work() -> None:
            try:
                await asyncio.wait_for(self._limited(f), time_limit(metadata))
            except asyncio.TimeoutError:
                log.warning("the time of %s is over", id)
            except Exception:
                log.exception("work of %s failed", id)
            finally:
                if self._work.get(id) is asyncio.current_task():
                    del self._work[id]

        self._work[id] = asyncio.get_running_loop().create_task(work(), name=f"waggle {self.role} {id}")

    async def _limited(self, f: Callable[[], Awaitable[None]]) -> None:
        async with self._slots:
            await f()

    def cancel(self, id: str) -> None:
        """Stop work."""
        task = self._work.get(id)
        if task:
            task.cancel()

    def has(self, id: str) -> bool:
        """Report whether the work is going on."""
        return id in self._work
