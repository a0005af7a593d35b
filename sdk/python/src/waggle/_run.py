"""All work that answers one message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ._errors import WaggleError, error_of
from ._outcome import Outcome
from ._questions import Question, Questions, Reply

if TYPE_CHECKING:
    from .events import CanonicalEvent, Usage


@dataclass(frozen=True)
class Answer:
    """The outcome of a message."""

    text: str
    outcome: str
    """Of a planned run: success, partial_success, rejected, cancelled, timeout; else success."""
    usage: Usage | None
    duration_ms: int
    stop_reason: str | None = None
    """Why the answer is not complete: length, filtered, refused, other."""


class Delta(str):
    """The next piece of an answer. After a piece that begins the answer anew, restarted is true."""

    __slots__ = ("restarted",)
    restarted: bool

    def __new__(cls, text: str, restarted: bool = False) -> Delta:
        """Return a piece."""
        self = super().__new__(cls, text)
        self.restarted = restarted
        return self


class Run:
    """All work that answers one message.

    Iterating gives its events from the first one on, any number of times; it ends with the event that ends the run.
    A run keeps its events for as long as the program keeps the run.
    """

    def __init__(
        self,
        id: str,
        stop: Callable[[str | None], Awaitable[None]],
        answer: Callable[[Question, Reply], Awaitable[None]],
    ) -> None:
        self.id = id
        """The id of the message: sent again with it, the message counts once."""
        self._own: frozenset[str] = frozenset()  # tools of the program itself
        self.run_id: str | None = None
        """The id of the run, once the message is accepted."""
        self._stop = stop
        self._reply = answer
        self._accepted: Outcome[None] = Outcome()
        self._answer: Outcome[Answer] = Outcome()
        self._events: list[CanonicalEvent] = []
        self._error: WaggleError | None = None
        self._ended = False
        self._news = asyncio.Event()

    def __repr__(self) -> str:
        state = "ended" if self._ended else "accepted" if self._accepted.done else "waiting"
        return f"Run({self.id!r}, {state})"

    def __aiter__(self) -> AsyncIterator[CanonicalEvent]:
        """Iterate over the events, from the first one."""
        return self.events()

    async def events(self) -> AsyncGenerator[CanonicalEvent, None]:
        """Yield the events, from the first one. After the last event of a run that was refused, the error is raised."""
        at = 0
        while True:
            while at >= len(self._events):
                if self._ended:
                    if self._error is not None:
                        raise self._error
                    return
                await self._news.wait()
            yield self._events[at]
            at += 1

    async def accepted(self, timeout: float | None = None) -> None:
        """Wait until the server has the message. Raises the error with which it was refused."""
        await self._accepted.wait(timeout)

    async def result(self, timeout: float | None = None) -> Answer:
        """Wait for the answer. Raises the error with which the run failed, or RunCancelledError."""
        return await self._answer.wait(timeout)

    async def text(self) -> AsyncGenerator[str, None]:
        """Yield the text of the answer so far, again with each piece. It may become shorter: another worker begins it anew."""
        id, text = "", ""
        async with aclosing(self.events()) as events:
            async for e in events:
                data = cast("dict[str, Any]", e["data"])
                if data.get("stage", "aggregation") not in ("", "aggregation"):
                    continue
                found = _text_after(e["type"], data, text, id)
                if found is None:
                    continue
                text, id = found, data.get("message_id", id)
                yield text

    async def deltas(self) -> AsyncGenerator[Delta, None]:
        """Yield the pieces of the answer as they come."""
        before = ""
        async with aclosing(self.text()) as texts:
            async for text in texts:
                restarted = not text.startswith(before)
                piece = text if restarted else text[len(before) :]
                before = text
                if piece or restarted:
                    yield Delta(piece, restarted)

    async def questions(self) -> AsyncGenerator[Question, None]:
        """Yield each question of the run that nobody has answered yet, until the run ends."""
        book = Questions(self._reply)
        at = 0
        seen: set[str] = set()
        while True:
            while at < len(self._events):
                book.take(self._events[at])
                at += 1
            for q in book.open:
                if q.id not in seen:
                    seen.add(q.id)
                    if q.scope != "client_tool" or q.data.get("tool") not in self._own:
                        yield q
                    break  # the log may have more by now
            else:
                if self._ended:
                    return
                if at >= len(self._events):
                    await self._news.wait()

    async def cancel(self, reason: str | None = None) -> None:
        """Stop the run. Its events show the outcome."""
        await self._stop(reason)

    def _taken(self) -> None:
        """Take that the server has the message."""
        self._accepted.settle(None)

    def _take(self, e: CanonicalEvent) -> bool:
        """Take an event of the run, and report whether it is the last one."""
        self._taken()
        self._events.append(e)
        if e["type"] == "run.completed":
            d = e["data"]
            self._settle(
                Answer(
                    d["content"], d.get("outcome") or "success", d.get("usage"), d["duration_ms"], d.get("stop_reason")
                )
            )
        elif e["type"] == "run.failed":
            failed = e["data"]
            self._settle(error_of(failed["code"], failed["message"], retryable=failed["retryable"], detail=failed))
        elif e["type"] == "run.cancelled":
            self._settle(error_of("RUN_CANCELLED", "the run was stopped", retryable=False, detail=e["data"]))
        self._tell()
        return self._ended

    def _broken(self, error: WaggleError) -> None:
        """Take that the message was refused, or that the run can no longer be followed."""
        if self._ended:
            return
        self._accepted.fail(error)
        self._error = error
        self._settle(error)
        self._tell()

    def _settle(self, outcome: Answer | WaggleError) -> None:
        self._ended = True
        if isinstance(outcome, Answer):
            self._answer.settle(outcome)
        else:
            self._answer.fail(outcome)

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


def _text_after(kind: str, d: dict[str, Any], text: str, id: str) -> str | None:
    """Return the text of the answer after an event, None if the event does not change it."""
    if kind == "message.delta":
        return (text if id == d["message_id"] else "") + d["text"]
    if kind == "message.completed" and d["content"]:
        return str(d["content"])
    if kind == "message.discarded" and id == d["message_id"]:
        return ""
    if kind == "run.completed" and d["content"] != text:
        return str(d["content"])
    return None
