"""Streams of logs, which break and resume: each event once and in order."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from ._backoff import Pauses
from ._errors import GapError, UnreachableError, WaggleError, error_of
from ._http import Http, is_final, parsed
from ._sse import SseMessage, SseParser

if TYPE_CHECKING:
    from .events import CanonicalEvent

log = logging.getLogger("waggle")

SILENCE = 45.0
"""A connection that sends nothing for so many seconds is dead: gateways send heartbeats more often."""


class Watching(Protocol):
    """Is told of the connections of a stream."""

    def __call__(self, up: bool, error: WaggleError | None, /) -> None:
        """Take that the connection is there, or that it is lost and why."""
        ...


class Position:
    """Where a reader is in a log: it takes each event once and in order."""

    def __init__(self, at: int) -> None:
        self.at = at

    def reach(self, first: int, last: int) -> bool:
        """Note an event and report whether it is new. An event that does not follow raises a GapError."""
        if last <= self.at:
            return False
        if first != self.at + 1 or last < first:
            raise GapError.between(self.at, first, last)
        self.at = last
        return True

    def skip(self, to: int) -> None:
        """Move forward to where the log begins."""
        self.at = max(self.at, to)


@dataclass
class Reading:
    """What a stream is read with: where it is asked for, anew for each connection, and how its messages are handled."""

    path: Callable[[], str]
    take: Callable[[SseMessage], Any]
    """Returns what is to be handed on, or None."""


async def read_stream(http: Http, r: Reading, watching: Watching | None = None) -> AsyncGenerator[Any, None]:
    """Read a stream and reconnect when it breaks. It ends with the error after which reconnecting is pointless."""
    pauses = Pauses(http.backoff)
    while True:
        began = time.monotonic()
        connection = _Connection(http, r.path())
        error: WaggleError | None = None
        try:
            async with aclosing(connection.messages()) as messages:
                async for m in messages:
                    if m is None:
                        if watching:
                            watching(True, None)
                        continue
                    found = r.take(m)
                    if found is not None:
                        pauses.reset()
                        yield found
        except WaggleError as e:
            error = e
        if watching:
            watching(False, error)
        if error is not None and _is_pointless(http, error):
            raise error
        if connection.up and time.monotonic() - began > http.backoff.longest:
            pauses.reset()
        http.turn()
        pause = pauses.pause(retry_after=error.retry_after if error else 0.0, goodbye=connection.goodbye)
        log.info("stream of %s broke and will resume in %.2f s: %s", r.path(), pause, error or "end of the response")
        await asyncio.sleep(pause)


def _is_pointless(http: Http, e: WaggleError) -> bool:
    if e.code == "CREDENTIALS_EXPIRED":
        http.renew()
        return not http.renewable
    return is_final(e)


class _Connection:
    """One connection of a stream."""

    def __init__(self, http: Http, path: str) -> None:
        self._http = http
        self._path = path
        self.up = False
        self.goodbye = False

    async def messages(self) -> AsyncGenerator[SseMessage | None, None]:
        """Yield None once the connection is there, then its messages."""
        parser = SseParser()
        async with self._http.open(
            "GET", self._path, headers={"Accept": "text/event-stream"}, silence=SILENCE
        ) as response:
            media = response.headers.get("Content-Type", "")
            if not media.lower().startswith("text/event-stream"):
                raise UnreachableError(f"the answer of {self._http.base} is not a stream of events, but {media}")
            self.up = True
            yield None
            async for piece in response.aiter_bytes():
                for m in parser.push(piece):
                    if m.comment is None:
                        yield m
                    else:
                        self.goodbye = m.comment == "waggle DRAINING"


async def follow(
    http: Http,
    path: str,
    *,
    after: int = 0,
    watching: Watching | None = None,
    on_expired: Callable[[int], None] | None = None,
) -> AsyncGenerator[CanonicalEvent, None]:
    """Read a log from a position on: history first, then new events, each once and in order, however often the connection breaks."""
    position = Position(after)

    def take(m: SseMessage) -> CanonicalEvent | None:
        if m.event == "problem":
            expired(parsed(m.data or "", "a problem of the stream"))
            return None
        if m.id is None or m.data is None:
            return None
        event = decode(m.data)
        return event if position.reach(event.get("from", event["sequence"]), event["sequence"]) else None

    def expired(problem: dict[str, Any]) -> None:
        first = problem.get("first")
        if problem.get("title") != "HISTORY_EXPIRED" or not isinstance(first, int):
            raise stream_error(problem)
        log.warning("events before %d of %s have expired", first, path)
        position.skip(first - 1)
        if on_expired:
            on_expired(first)

    reading = Reading(lambda: f"{path}?after={position.at}" if position.at > 0 else path, take)
    async with aclosing(read_stream(http, reading, watching)) as found:
        async for event in found:
            yield event


def stream_error(problem: dict[str, Any]) -> WaggleError:
    """Return the error of a problem document within a stream."""
    status = problem.get("status", 0)
    return error_of(str(problem.get("title", "UNKNOWN")), str(problem.get("detail", "")), status=status, detail=problem)


def decode(text: str) -> CanonicalEvent:
    """Read an event."""
    return cast("CanonicalEvent", parsed(text, "an event of the stream"))
