"""Announcements, several logs on one connection, and lists that follow what the server has."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlencode

from ._errors import WaggleError, error_of
from ._http import Http, is_final, parsed
from ._sse import SseMessage
from ._stream import Position, Reading, Watching, decode, read_stream, stream_error

if TYPE_CHECKING:
    from .events import CanonicalEvent, EventType

T = TypeVar("T")

LAG = 1.0
"""Lists are as of at most so many seconds ago."""


@dataclass(frozen=True)
class TopicMessage:
    """What a stream of several topics tells."""

    log: str | None = None
    """The log, as KIND/ID; None: an announcement."""
    event: CanonicalEvent | None = None
    first: int | None = None
    """The server has less of the log than was asked for: its first event."""
    error: WaggleError | None = None
    """The log is not shown, or no longer; the other topics are."""


def has_odd_id(log: str) -> bool:
    """Report whether a log, as KIND/ID, has an id with other characters than letters, digits, _ and -."""
    return re.fullmatch(r"[a-z]+/(?!h_)[A-Za-z0-9_-]{1,128}", log) is None


class _Topics:
    def __init__(
        self,
        logs: Mapping[str, int],
        announcements: bool,
        types: Sequence[EventType],
        on_gap: Callable[[int], None] | None,
    ) -> None:
        self.at = {log: Position(after) for log, after in logs.items()}
        self.announcements = announcements
        self._types = types
        self._on_gap = on_gap
        self._asked: dict[str, str] = {}
        odd = [log for log in logs if has_odd_id(log)]
        if len(odd) > 1:
            raise error_of("INVALID_FIELD", "two of the logs have ids with other characters", field="logs")
        self._odd = odd[0] if odd else ""

    def path(self) -> str:
        self._asked = {f"log:{log}@{p.at}": log for log, p in self.at.items()}
        names = [*self._asked, "events"] if self.announcements else [*self._asked]
        query = [("t", n) for n in names] + ([("types", ",".join(self._types))] if self._types else [])
        return f"/api/v1/live?{urlencode(query)}"

    def take(self, m: SseMessage) -> TopicMessage | None:
        if m.data is None:
            return None
        if m.event == "problem":
            return self._refuse(parsed(m.data, "a problem of the stream"))
        if m.event == "gap":
            if self._on_gap:
                self._on_gap(parsed(m.data, "a gap of the stream").get("dropped", 0))
            return None
        event = decode(m.data)
        if m.event != "log":
            return TopicMessage(event=event)
        _, kind, id = event["subject"].split(".")
        log = f"{kind}/{id}" if f"{kind}/{id}" in self.at else self._odd
        position = self.at.get(log)
        if position and position.reach(event.get("from", event["sequence"]), event["sequence"]):
            return TopicMessage(log, event)
        return None

    def _refuse(self, d: dict[str, Any]) -> TopicMessage:
        log = self._asked.get(d.get("topic", ""))
        problem = d.get("problem") or d
        if log is not None and problem.get("title") == "HISTORY_EXPIRED" and "first" in problem:
            self.at[log].skip(problem["first"] - 1)
            return TopicMessage(log, first=problem["first"])
        error = stream_error(problem)
        if log is None or not is_final(error):
            raise error
        del self.at[log]
        return TopicMessage(log, error=error)


async def topics(
    http: Http,
    logs: Mapping[str, int],
    *,
    announcements: bool = False,
    types: Sequence[EventType] = (),
    on_gap: Callable[[int], None] | None = None,
    watching: Watching | None = None,
) -> AsyncGenerator[TopicMessage, None]:
    """Read several logs and the announcements on one connection."""
    all = _Topics(logs, announcements, types, on_gap)
    async with aclosing(read_stream(http, Reading(all.path, all.take), watching)) as messages:
        while all.at or announcements:
            try:
                yield cast("TopicMessage", await messages.__anext__())
            except StopAsyncIteration:
                return


async def watch(
    http: Http,
    list: Callable[..., AsyncGenerator[T, None]],
    concerns: Callable[[CanonicalEvent], bool],
    count: int,
    **filters: Any,
) -> AsyncGenerator[list[T], None]:
    """Yield the head of a list, now and whenever an announcement concerns it: the list is asked for again after its lag."""
    changed = asyncio.Event()
    listener = asyncio.ensure_future(_listen(http, concerns, changed))
    shown: Any = None
    try:
        while True:
            found = await _head(list(limit=min(count, 200), **filters), count)
            if found != shown:
                shown = found
                yield [*found]
            news = asyncio.ensure_future(changed.wait())
            await asyncio.wait({news, listener}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
            if listener.done():
                listener.result()
            changed.clear()
            await asyncio.sleep(LAG)
    finally:
        listener.cancel()


async def _listen(http: Http, concerns: Callable[[CanonicalEvent], bool], changed: asyncio.Event) -> None:
    def watching(up: bool, _: WaggleError | None) -> None:
        if up:
            changed.set()  # nothing of the time before was announced

    news = topics(http, {}, announcements=True, on_gap=lambda _: changed.set(), watching=watching)
    async with aclosing(news):
        async for m in news:
            if m.event and concerns(m.event):
                changed.set()


async def _head(entries: AsyncGenerator[T, None], count: int) -> list[T]:
    found: list[T] = []
    async with aclosing(entries):
        async for entry in entries:
            found.append(entry)
            if len(found) == count:
                break
    return found


def of_kind(kind: str) -> Callable[[CanonicalEvent], bool]:
    """Return whether an event is of a log of the kind."""
    return lambda e: e["subject"].split(".")[1] == kind


def of_questions(e: CanonicalEvent) -> bool:
    """Report whether an event may change the open questions."""
    return e["type"].startswith(("input.", "task.", "run.", "session.", "team."))
