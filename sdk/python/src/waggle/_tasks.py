"""Tasks for agents of the swarm."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ._errors import WaggleError, error_of
from ._http import DEFAULT, Http, Timeout, given
from ._live import of_kind, watch
from ._outcome import Outcome
from ._questions import Question, Reply
from ._watched import Watched

if TYPE_CHECKING:
    from ._client import Waggle
    from .api import TaskDetail, TaskSummary
    from .events import CanonicalEvent


@dataclass(frozen=True)
class TaskResult:
    """The outcome of a task."""

    status: str
    result: Any


class Task(Watched):
    """A task of the swarm: its log, and what can be said to its agent."""

    kind: ClassVar[str] = "task"
    last_event: ClassVar[str] = "task.finished"

    def __init__(self, http: Http, id: str, after: int, new_id: Callable[[], str]) -> None:
        super().__init__(http, id, after, new_id)
        self._outcome: Outcome[TaskResult] = Outcome()

    async def result(self, timeout: float | None = None) -> TaskResult:
        """Wait for the result. Raises the error with which the task failed or was cancelled."""
        self._read()
        return await self._outcome.wait(timeout)

    async def show(self, *, timeout: Timeout = DEFAULT) -> TaskDetail:
        """Return the task with its newest events."""
        return await self._http.call("GET", self._path, timeout=timeout)

    async def cancel(self, reason: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Stop it."""
        await self._http.call("POST", f"{self._path}/cancel", given(reason=reason) or None, timeout=timeout)

    async def retry(self, id: str | None = None, *, timeout: Timeout = DEFAULT) -> str:
        """Submit it again as a new task, after it failed or was cancelled, and return the id of that one. With the same id once."""
        reply = await self._http.call("POST", f"{self._path}/retry", {"id": id or self._new_id()}, timeout=timeout)
        return reply["task_id"]

    async def message(self, message: Any, *, timeout: Timeout = DEFAULT) -> None:
        """Tell its agent something, any JSON but null; answer its question, if it has one."""
        body = {"id": self._new_id(), "message": message}
        await self._http.call("POST", f"{self._path}/messages", body, timeout=timeout)

    async def answer(self, question: Question | str, message: Any, *, timeout: Timeout = DEFAULT) -> None:
        """Answer a question of its agent."""
        await self._reply(self._question(question), Reply(True, message=message), timeout)

    def _take(self, e: CanonicalEvent) -> None:
        if e["type"] != "task.finished":
            return
        d = e["data"]
        if d["status"] == "completed":
            self._outcome.settle(TaskResult(d["status"], d.get("result")))
        else:
            text = d.get("error") or f"the task is {d['status']}"
            self._outcome.fail(error_of(d.get("code") or "TASK_FAILED", text, detail=d))

    def _end(self, error: WaggleError) -> None:
        self._outcome.fail(error)


class Tasks:
    """The tasks of the swarm."""

    def __init__(self, client: Waggle) -> None:
        self._client = client

    async def create(
        self,
        data: Any,
        *,
        agent: str | None = None,
        agent_id: str | None = None,
        capabilities: Sequence[str] | None = None,
        type: str | None = None,
        queue_ms: int | None = None,
        timeout_ms: int | None = None,
        id: str | None = None,
        timeout: Timeout = DEFAULT,
    ) -> Task:
        """Give an agent work: the one with the id, else one with the name, else any that has all capabilities.

        data: for the agent, any JSON but null. queue_ms: how long it may wait for an agent. timeout_ms: of the whole task.
        id: of the request; sent again with it, the task is made once.
        """
        optional = given(
            agent_name=agent,
            agent_id=agent_id,
            capabilities=None if capabilities is None else list(capabilities),
            task_type=type,
            queue_ms=queue_ms,
            timeout_ms=timeout_ms,
        )
        body = {"id": id or self._client._new_id(), "data": data, **optional}
        reply = await self._client._http.call("POST", "/api/v1/tasks", body, timeout=timeout)
        return self._client.task(reply["task_id"])

    def list(self, **filters: Any) -> AsyncGenerator[TaskSummary, None]:
        """Yield tasks, the newest change first. Filters: limit, before."""
        return self._client.pages("/api/v1/tasks", "tasks", **filters)

    def watch(self, count: int = 50) -> AsyncGenerator[list[TaskSummary], None]:
        """Yield the newest tasks, now and whenever tasks change."""
        return watch(self._client._http, self.list, of_kind("task"), count)
