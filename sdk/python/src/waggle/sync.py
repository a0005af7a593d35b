"""The same client for programs without asyncio: scripts, notebooks, threads.

Each client has an event loop in a thread of its own, so that it works where another loop is running, as in notebooks.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar

from . import _client, _questions, _run, _session
from ._backoff import Backoff
from ._errors import ClosedError
from ._http import DEFAULT, Timeout, Token
from ._questions import Reply
from ._run import Answer, Delta

if TYPE_CHECKING:
    from types import TracebackType

    import httpx
    from typing_extensions import Self, Unpack

    from .api import (
        Me,
        QuestionOutcome,
        Quota,
        SessionDetail,
        SessionSummary,
        StateExportedData,
        Status,
    )
    from .api import (
        Question as Asked,
    )
    from .events import CanonicalEvent, Step

T = TypeVar("T")

__all__ = ["Inbox", "Question", "Run", "Session", "Sessions", "Waggle"]


class Portal:
    """An event loop in a thread of its own, and the way into it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="waggle", daemon=True)
        self._thread.start()

    def run(self, work: Awaitable[T]) -> T:
        """Wait for the outcome of a coroutine. An interrupt of the program cancels it."""
        if threading.current_thread() is self._thread:
            _drop(work)
            raise RuntimeError("a listener runs in the thread of the client: it cannot wait for a call")
        if self._loop.is_closed():
            _drop(work)
            raise ClosedError("the program closed the client")
        future = asyncio.run_coroutine_threadsafe(_awaited(work), self._loop)
        try:
            return future.result()
        except CancelledError:
            raise ClosedError("the program closed the client") from None
        except BaseException:
            future.cancel()
            raise

    def do(self, f: Callable[[], T]) -> T:
        """Call a function in the loop."""

        async def call() -> T:
            return f()

        return self.run(call())

    def iterate(self, items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """Yield the items of an asynchronous generator, each as it is asked for."""
        try:
            while True:
                try:
                    item = self.run(items.__anext__())
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if not self._loop.is_closed():
                self.run(items.aclose())

    def close(self) -> None:
        """End the loop and its thread."""
        if self._loop.is_closed():
            return
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def _drop(work: Awaitable[Any]) -> None:
    if isinstance(work, Coroutine):
        work.close()


class Waggle:
    """A Waggle installation. It has the arguments of the asynchronous one."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: Token | None = None,
        timeout: float | None = 60.0,
        backoff: Backoff | None = None,
        http_client: httpx.AsyncClient | None = None,
        new_id: Callable[[], str] = _client.new_id,
    ) -> None:
        self._client = _client.Waggle(
            url, token=token, timeout=timeout, backoff=backoff, http_client=http_client, new_id=new_id
        )
        self._portal = Portal()
        self.sessions = Sessions(self)
        """The sessions that the principal may see."""
        self.questions = Inbox(self)
        """The questions of all sessions, teams and tasks."""

    def __repr__(self) -> str:
        return repr(self._client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all connections. What happens on the server continues."""
        if not self._portal._loop.is_closed():
            self._portal.run(self._client.aclose())
            self._portal.close()

    def session(self, id: str | None = None, *, after: int = 0, fresh: bool | None = None) -> Session:
        """Return a session: a new one without an id, which its first message makes."""
        return Session(self._portal, self._client.session(id, after=after, fresh=fresh))

    def status(self, *, timeout: Timeout = DEFAULT) -> Status:
        """Return the roles, models and tool servers of the installation."""
        return self._portal.run(self._client.status(timeout=timeout))

    def me(self, *, timeout: Timeout = DEFAULT) -> Me:
        """Return who the server takes the program for, and what it may do."""
        return self._portal.run(self._client.me(timeout=timeout))

    def quotas(self, *, timeout: Timeout = DEFAULT) -> list[Quota]:
        """Return what limits the principal and its tenant, and how much of it is used."""
        return self._portal.run(self._client.quotas(timeout=timeout))

    def call(self, method: str, path: str, body: Any = None, *, timeout: Timeout = DEFAULT) -> Any:
        """Make a request to the HTTP API, for what has no method here."""
        return self._portal.run(self._client.call(method, path, body, timeout=timeout))


class Sessions:
    """The sessions that the principal may see."""

    def __init__(self, client: Waggle) -> None:
        self._client = client

    def list(self, **filters: Any) -> Iterator[SessionSummary]:
        """Yield sessions, the newest change first. Filters: status, state, principal, dialect, since, until, q, limit, before."""
        return self._client._portal.iterate(self._client._client.sessions.list(**filters))

    def import_(self, state: StateExportedData, *, timeout: Timeout = DEFAULT) -> Session:
        """Restore an exported session, here or on another installation with the same key."""
        portal = self._client._portal
        return Session(portal, portal.run(self._client._client.sessions.import_(state, timeout=timeout)))


class Inbox:
    """The questions of all logs that the principal may see."""

    def __init__(self, client: Waggle) -> None:
        self._client = client

    def list(self, **filters: Any) -> Iterator[Asked]:
        """Yield questions, the newest first. Filters: scope, state (default: open), kind, log, limit, before."""
        return self._client._portal.iterate(self._client._client.questions.list(**filters))

    def answer(self, question: Asked | str, reply: Reply | bool, *, timeout: Timeout = DEFAULT) -> QuestionOutcome:
        """Answer a question, by its id in the list. Raises InputAnsweredError if another answer counts."""
        return self._client._portal.run(self._client._client.questions.answer(question, reply, timeout=timeout))


class Question:
    """A decision that people are asked for."""

    def __init__(self, portal: Portal, question: _questions.Question) -> None:
        self._portal = portal
        self._question = question

    def __repr__(self) -> str:
        return repr(self._question)

    @property
    def id(self) -> str:
        """Its id in the log."""
        return self._question.id

    @property
    def scope(self) -> str:
        """One of plan, tool, budget, client_tool, agent, task."""
        return self._question.scope

    @property
    def text(self) -> str:
        """For people: the question."""
        return self._question.text

    @property
    def data(self) -> dict[str, Any]:
        """The whole question as it is in the log."""
        return self._question.data

    def approve(self, feedback: str | None = None) -> None:
        """Approve it. Raises InputAnsweredError if another answer counts."""
        self._portal.run(self._question.approve(feedback))

    def reject(self, feedback: str | None = None) -> None:
        """Reject it, with a reason for the model."""
        self._portal.run(self._question.reject(feedback))

    def modify(
        self,
        *,
        steps: Sequence[Step] | None = None,
        modified: dict[str, dict[str, Any]] | None = None,
        arguments: dict[str, Any] | None = None,
    ) -> None:
        """Approve a plan with other steps, or a tool call with other arguments."""
        self._portal.run(self._question.modify(steps=steps, modified=modified, arguments=arguments))

    def reply(self, message: Any) -> None:
        """Answer an agent that asks, with any JSON."""
        self._portal.run(self._question.reply(message))


class Run:
    """All work that answers one message. Iterating gives its events from the first one on, any number of times."""

    def __init__(self, portal: Portal, run: _run.Run) -> None:
        self._portal = portal
        self._run = run

    def __repr__(self) -> str:
        return repr(self._run)

    def __iter__(self) -> Iterator[CanonicalEvent]:
        """Iterate over the events, from the first one."""
        return self._portal.iterate(self._run.events())

    @property
    def id(self) -> str:
        """The id of the message: sent again with it, the message counts once."""
        return self._run.id

    @property
    def run_id(self) -> str | None:
        """The id of the run, once the message is accepted."""
        return self._run.run_id

    def accepted(self, timeout: float | None = None) -> None:
        """Wait until the server has the message. Raises the error with which it was refused."""
        self._portal.run(self._run.accepted(timeout))

    def result(self, timeout: float | None = None) -> Answer:
        """Wait for the answer. Raises the error with which the run failed, or RunCancelledError."""
        return self._portal.run(self._run.result(timeout))

    def text(self) -> Iterator[str]:
        """Yield the text of the answer so far, again with each piece."""
        return self._portal.iterate(self._run.text())

    def deltas(self) -> Iterator[Delta]:
        """Yield the pieces of the answer as they come."""
        return self._portal.iterate(self._run.deltas())

    def questions(self) -> Iterator[Question]:
        """Yield each question of the run that nobody has answered yet, until the run ends."""
        for q in self._portal.iterate(self._run.questions()):
            yield Question(self._portal, q)

    def cancel(self, reason: str | None = None) -> None:
        """Stop the run. Its events show the outcome."""
        self._portal.run(self._run.cancel(reason))


class Session:
    """A conversation that outlives its connections."""

    def __init__(self, portal: Portal, session: _session.Session) -> None:
        self._portal = portal
        self._session = session

    def __repr__(self) -> str:
        return repr(self._session)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def id(self) -> str:
        """Its id: keep it to open the session in another process."""
        return self._session.id

    @property
    def seq(self) -> int:
        """The sequence of the last event that was handed on: keep it to resume in another process."""
        return self._session.seq

    @property
    def questions(self) -> list[Question]:
        """The open questions, the oldest first, as far as the log has been read."""
        return [Question(self._portal, q) for q in self._session.questions]

    def send(self, text: str, **options: Unpack[_session.SendOptions]) -> Run:
        """Send a message. It counts once, and waits in line while the server is away. The options are those of SendOptions."""
        return Run(self._portal, self._portal.do(lambda: self._session.send(text, **options)))

    def solve(self, steps: Sequence[Step], **options: Any) -> Run:
        """Have steps executed without planning, in a session that has had a message."""
        return Run(self._portal, self._portal.do(lambda: self._session.solve(steps, **options)))

    def events(self, *, after: int = 0) -> Iterator[CanonicalEvent]:
        """Read the log from a position on, up to the end of the session."""
        return self._portal.iterate(self._session.events(after=after))

    def on(self, listener: Callable[[CanonicalEvent], None]) -> Callable[[], None]:
        """Hand each further event to the listener, in the thread of the client, until the returned function is called."""
        return self._portal.do(lambda: self._session.on(listener))

    def cancel(self, *, timeout: Timeout = DEFAULT) -> None:
        """Stop the active run; the session stays usable."""
        self._portal.run(self._session.cancel(timeout=timeout))

    def cancel_step(self, step: str, reason: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Stop one step of the active run."""
        self._portal.run(self._session.cancel_step(step, reason, timeout=timeout))

    def restart_step(self, step: str, reason: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Execute a step again that failed or was cancelled, also after the end of the run."""
        self._portal.run(self._session.restart_step(step, reason, timeout=timeout))

    def cancel_plan(self, reason: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Give up a plan whose steps have not begun."""
        self._portal.run(self._session.cancel_plan(reason, timeout=timeout))

    def replan(self, question: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Have the plan made again, for another question or the same."""
        self._portal.run(self._session.replan(question, timeout=timeout))

    def show(self, *, timeout: Timeout = DEFAULT) -> SessionDetail:
        """Return the session and its runs."""
        return self._portal.run(self._session.show(timeout=timeout))

    def export(self, *, timeout: Timeout = DEFAULT) -> StateExportedData:
        """Return the signed state of the session, for client.sessions.import_."""
        return self._portal.run(self._session.export(timeout=timeout))

    def delete(self, *, timeout: Timeout = DEFAULT) -> bool:
        """Remove the session with all its events for good. Reports whether that is done already."""
        return self._portal.run(self._session.delete(timeout=timeout))

    def close(self) -> None:
        """Stop reading and sending. What happens in the session continues."""
        self._portal.run(self._session.aclose())
