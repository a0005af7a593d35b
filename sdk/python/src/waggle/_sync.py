"""Sessions, runs, tasks, teams and logs for programs without asyncio."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _logs, _questions, _run, _session, _tasks, _teams, _watched
from ._http import DEFAULT, Timeout
from ._portal import Portal
from ._run import Answer, Delta

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

    from .api import LogHead, LogPage, SessionDetail, StateExportedData, TaskDetail, TeamView
    from .events import Artifact, CanonicalEvent, File, Step

W = TypeVar("W", bound=_watched.Watched)


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


class _Watched(Generic[W]):
    """The log of a session, a team or a task."""

    def __init__(self, portal: Portal, real: W) -> None:
        self._portal = portal
        self._real = real

    def __repr__(self) -> str:
        return repr(self._real)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def id(self) -> str:
        """Its id: keep it to open it in another process."""
        return self._real.id

    @property
    def seq(self) -> int:
        """The sequence of the last event that was handed on: keep it to resume in another process."""
        return self._real.seq

    @property
    def questions(self) -> list[Question]:
        """The open questions, the oldest first, as far as the log has been read."""
        return [Question(self._portal, q) for q in self._real.questions]

    def events(self, *, after: int = 0) -> Iterator[CanonicalEvent]:
        """Read the log from a position on, up to the end of the session, the team or the task."""
        return self._portal.iterate(self._real.events(after=after))

    def on(self, listener: Callable[[CanonicalEvent], None]) -> Callable[[], None]:
        """Hand each further event to the listener, in the thread of the client, until the returned function is called."""
        return self._portal.do(lambda: self._real.on(listener))

    def close(self) -> None:
        """Stop reading and sending. What happens on the server continues."""
        if not self._portal.closed:
            self._portal.run(self._real.aclose())


class Task(_Watched[_tasks.Task]):
    """A task of the swarm."""

    def result(self, timeout: float | None = None) -> _tasks.TaskResult:
        """Wait for the result. Raises the error with which the task failed or was cancelled."""
        return self._portal.run(self._real.result(timeout))

    def show(self, *, timeout: Timeout = DEFAULT) -> TaskDetail:
        """Return the task with its newest events."""
        return self._portal.run(self._real.show(timeout=timeout))

    def cancel(self, reason: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Stop it."""
        self._portal.run(self._real.cancel(reason, timeout=timeout))

    def retry(self, id: str | None = None, *, timeout: Timeout = DEFAULT) -> str:
        """Submit it again as a new task, after it failed or was cancelled, and return the id of that one."""
        return self._portal.run(self._real.retry(id, timeout=timeout))

    def message(self, message: Any, *, timeout: Timeout = DEFAULT) -> None:
        """Tell its agent something, any JSON but null; answer its question, if it has one."""
        self._portal.run(self._real.message(message, timeout=timeout))


class Team(_Watched[_teams.Team]):
    """A team of agents."""

    def show(self, *, timeout: Timeout = DEFAULT) -> TeamView:
        """Return the team as it is now."""
        return self._portal.run(self._real.show(timeout=timeout))

    def message(self, content: str, **options: Any) -> str:
        """Send a message and return its id. Options: target, image_urls, context_files, timeout."""
        return self._portal.run(self._real.message(content, **options))

    def stop(self, *, target: str | None = None, reason: str | None = None, timeout: Timeout = DEFAULT) -> None:
        """Stop the runs of the members, or of one of them."""
        self._portal.run(self._real.stop(target=target, reason=reason, timeout=timeout))

    def pause(self, *, timeout: Timeout = DEFAULT) -> None:
        """Hold messages to the members back."""
        self._portal.run(self._real.pause(timeout=timeout))

    def resume(self, *, timeout: Timeout = DEFAULT) -> None:
        """Release the messages that were held back."""
        self._portal.run(self._real.resume(timeout=timeout))

    def delete(self, *, timeout: Timeout = DEFAULT) -> None:
        """Stop the team and close it for good."""
        self._portal.run(self._real.delete(timeout=timeout))


class Log:
    """A log in pages."""

    def __init__(self, portal: Portal, log: _logs.Log) -> None:
        self._portal = portal
        self._log = log

    def __repr__(self) -> str:
        return repr(self._log)

    def head(self, *, timeout: Timeout = DEFAULT) -> LogHead:
        """Return where the log begins and ends."""
        return self._portal.run(self._log.head(timeout=timeout))

    def page(self, **options: Any) -> LogPage:
        """Return one page, the oldest event first. Options: after, before, limit, types, run, timeout."""
        return self._portal.run(self._log.page(**options))

    def events(self, **options: Any) -> Iterator[CanonicalEvent]:
        """Yield the events over all pages. Options: after, before, limit, types, run."""
        return self._portal.iterate(self._log.events(**options))

    def artifacts(self) -> Iterator[Artifact]:
        """Yield the files that members of a team made, each in its newest version, the newest first."""
        return self._portal.iterate(self._log.artifacts())

    def artifact(self, artifact: Artifact | str, *, timeout: Timeout = DEFAULT) -> bytes:
        """Return a file in the version of an event or of artifacts(); by its id alone the newest."""
        return self._portal.run(self._log.artifact(artifact, timeout=timeout))

    def export(self, *, timeout: Timeout = DEFAULT) -> bytes:
        """Return the whole log as a file: one event a line."""
        return self._portal.run(self._log.export(timeout=timeout))


class Session(_Watched[_session.Session]):
    """A conversation that outlives its connections."""

    def send(self, text: str, **options: Unpack[_session.SendOptions]) -> Run:
        """Send a message. It counts once, and waits in line while the server is away. The options are those of SendOptions."""
        return Run(self._portal, self._portal.do(lambda: self._real.send(text, **options)))

    def solve(self, steps: Sequence[Step], **options: Any) -> Run:
        """Have steps executed without planning, in a session that has had a message."""
        return Run(self._portal, self._portal.do(lambda: self._real.solve(steps, **options)))

    def cancel(self, *, timeout: Timeout = DEFAULT) -> None:
        """Stop the active run; the session stays usable."""
        self._portal.run(self._real.cancel(timeout=timeout))

    def cancel_step(self, step: str, reason: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Stop one step of the active run."""
        self._portal.run(self._real.cancel_step(step, reason, timeout=timeout))

    def restart_step(self, step: str, reason: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Execute a step again that failed or was cancelled, also after the end of the run."""
        self._portal.run(self._real.restart_step(step, reason, timeout=timeout))

    def cancel_plan(self, reason: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Give up a plan whose steps have not begun."""
        self._portal.run(self._real.cancel_plan(reason, timeout=timeout))

    def replan(self, question: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Have the plan made again, for another question or the same."""
        self._portal.run(self._real.replan(question, timeout=timeout))

    def show(self, *, timeout: Timeout = DEFAULT) -> SessionDetail:
        """Return the session and its runs."""
        return self._portal.run(self._real.show(timeout=timeout))

    def export(self, *, timeout: Timeout = DEFAULT) -> StateExportedData:
        """Return the signed state of the session, for client.sessions.import_."""
        return self._portal.run(self._real.export(timeout=timeout))

    def file(self, file: File, *, timeout: Timeout = DEFAULT) -> bytes:
        """Return a file of a message, as the data of its event names it in files."""
        return self._portal.run(self._real.file(file, timeout=timeout))

    def delete(self, *, timeout: Timeout = DEFAULT) -> bool:
        """Remove the session with all its events for good. Reports whether that is done already."""
        return self._portal.run(self._real.delete(timeout=timeout))
