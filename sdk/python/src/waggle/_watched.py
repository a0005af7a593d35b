"""A log that is read once for all that watch it here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import quote

from ._errors import ClosedError, WaggleError
from ._http import DEFAULT, Http, Timeout
from ._questions import Question, Questions, Reply
from ._stream import Watching, follow

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from .events import CanonicalEvent

log = logging.getLogger("waggle")
S = TypeVar("S")


@dataclass(frozen=True)
class ConnectionState:
    """Whether a log is being read, and why not."""

    connected: bool = False
    error: WaggleError | None = None
    """The last failure."""
    ended: bool = False
    """Whether it stays so."""


class Watched:
    """The log of a session, a team or a task."""

    kind: ClassVar[str]
    last_event: ClassVar[str]
    """The event that ends what the log is of."""

    def __init__(self, http: Http, id: str, after: int, new_id: Callable[[], str]) -> None:
        self.id = id
        self.seq = after
        """The sequence of the last event that was handed on: keep it to resume in another process."""
        self._http = http
        self._new_id = new_id
        self._listeners: list[Callable[[CanonicalEvent], None]] = []
        self._watchers: list[Callable[[ConnectionState], None]] = []
        self._askers: list[Callable[[list[Question]], None]] = []
        self._book = Questions(self._reply)
        self._answered: dict[str, bool] = {}  # by question; False once the server refused the answer
        self._reader: asyncio.Task[None] | None = None
        self._state = ConnectionState()
        self._closed = False
        self._leave: Callable[[Any], None] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, seq={self.seq})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def _path(self) -> str:
        return f"/api/v1/{self.kind}s/{quote(self.id, safe='')}"

    @property
    def connection(self) -> ConnectionState:
        """Whether the log is being read."""
        return self._state

    @property
    def questions(self) -> list[Question]:
        """The open questions, the oldest first, as far as the log has been read."""
        return [q for q in self._book.open if not self._answered.get(q.id) and not self._is_own(q)]

    def _is_own(self, asked: Question) -> bool:
        """Report whether the program answers a question itself."""
        return False

    def on(self, listener: Callable[[CanonicalEvent], None]) -> Callable[[], None]:
        """Hand each further event to the listener, in order, until the returned function is called."""
        return self._add(self._listeners, listener)

    def on_connection(self, listener: Callable[[ConnectionState], None]) -> Callable[[], None]:
        """Tell the listener whether the log is being read, now and when that changes."""
        listener(self._state)
        return self._add(self._watchers, listener)

    def on_questions(self, listener: Callable[[list[Question]], None]) -> Callable[[], None]:
        """Hand the list of the open questions to the listener, now and when it changes."""
        listener(self.questions)
        return self._add(self._askers, listener)

    async def events(
        self,
        *,
        after: int = 0,
        watching: Watching | None = None,
        on_expired: Callable[[int], None] | None = None,
    ) -> AsyncGenerator[CanonicalEvent, None]:
        """Read the log apart from the other readers, from a position on, up to the event that ends the session, the team or the task.

        Not reading holds the server back. An event comes once and in order, however often the connection breaks.
        on_expired is told the first sequence that the server still has, where it has less than was asked for.
        """
        path = f"{self._path}/stream"
        async with aclosing(follow(self._http, path, after=after, watching=watching, on_expired=on_expired)) as events:
            async for e in events:
                yield e
                if e["type"] == self.last_event:
                    return

    async def aclose(self) -> None:
        """Stop reading. What happens in the log continues."""
        self._closed = True
        if self._leave:
            self._leave(self)
        self._change(connected=False, ended=True)
        self._end(ClosedError("the program closed it"))
        if self._reader is not None and self._reader is not asyncio.current_task():
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    async def _reply(self, question: Question, reply: Reply, timeout: Timeout = DEFAULT) -> None:
        """Answer a question: it leaves the list at once, and returns, once, if the server refuses the answer."""
        body = {**reply.body(), "id": self._new_id()}
        if question.digest:
            body["digest"] = question.digest
        path = f"/api/v1/questions/{quote(question.inbox, safe='')}/answer"
        again = question.id in self._answered
        if not again:
            self._answered[question.id] = True
            self._ask()
        try:
            await self._http.call("POST", path, body, timeout=timeout)
        except WaggleError as error:
            if not again and error.status not in (404, 409, 410):
                self._answered[question.id] = False
                self._ask()
            raise

    def _question(self, question: Question | str) -> Question:
        if isinstance(question, Question):
            return question
        known = self._book.get(question)
        return known or Question(question, f"{self.kind}.{self.id}.{question}", "", None, "", (), {}, self._reply)

    def _ask(self) -> None:
        _tell(self._askers, self.questions)

    def _read(self) -> None:
        """Begin to read, unless it does already."""
        if self._reader is None and not self._closed:
            self._reader = asyncio.get_running_loop().create_task(self._loop(), name=f"waggle {self.kind} {self.id}")

    async def _loop(self) -> None:
        def watching(up: bool, error: WaggleError | None) -> None:
            self._change(connected=up, error=error)

        try:
            async with aclosing(self.events(after=self.seq, watching=watching)) as events:
                async for e in events:
                    self.seq = e["sequence"]
                    if self._book.take(e):
                        self._ask()
                    self._take(e)
                    _tell(self._listeners, e)
            self._change(connected=False, ended=True)
            self._end(ClosedError(f"the {self.kind} ended"))
        except WaggleError as error:
            self._reader = None
            if self._is_not_yet(error):
                return
            self._change(connected=False, error=error, ended=True)
            self._end(error)

    def _is_not_yet(self, error: WaggleError) -> bool:
        """Report whether the log is only not there yet: then a message begins it."""
        return error.code == "SESSION_NOT_FOUND" and self.seq == 0

    def _take(self, e: CanonicalEvent) -> None:
        """Take an event."""

    def _end(self, error: WaggleError) -> None:
        """Take that the log is no longer read."""

    def _change(self, **changes: Any) -> None:
        self._state = replace(self._state, **changes)
        _tell(self._watchers, self._state)

    def _add(self, listeners: list[S], one: S) -> Callable[[], None]:
        listeners.append(one)
        self._read()

        def remove() -> None:
            if one in listeners:
                listeners.remove(one)

        return remove


def _tell(listeners: list[Callable[[S], None]], news: S) -> None:
    """Hand news to all listeners. One that fails harms no other."""
    for listener in [*listeners]:
        try:
            listener(news)
        except Exception:
            log.exception("a listener of the program failed")
