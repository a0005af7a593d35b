"""Any async function as an agent whose work survives its process."""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, overload

from .._tools import called, plain
from ..swarm import Agent, AgentTask
from ._report import PATIENCE, Report, UnknownOutcomeError
from ._store import Folder, Store


class DurableTask(Report):
    """A task whose state survives the process: each step, call, child and question has one outcome over all attempts.

    The function runs again from its beginning in the next attempt. Steps that have ended return their stored outcome, so
    the function has to ask for the same steps in the same order.
    """

    def __init__(self, task: AgentTask, store: Store) -> None:
        super().__init__(task)
        self._store = store
        self._saving = asyncio.Lock()
        stored = store.load(self.id)
        self._saved: dict[str, Any] = json.loads(stored) if stored else {}
        self._steps: dict[str, Any] = self._saved.setdefault("steps", {})
        self._count = 0

    @property
    def state(self) -> Any:
        """The newest checkpoint of this attempt or an earlier one, None without one."""
        return self._saved.get("checkpoint")

    async def checkpoint(self, state: Any) -> None:
        """Store a state, which has to be JSON, for the next attempt to continue from. The steps before it count as done."""
        self._saved["checkpoint"] = state
        self._steps.clear()
        self._count = 0
        await self._save()

    async def _save(self) -> None:
        async with self._saving:
            await asyncio.to_thread(self._store.save, self.id, json.dumps(self._saved, ensure_ascii=False))

    async def begin(self) -> list[Any]:
        """Return the result of an earlier attempt as the only element, or nothing: then there is work to do."""
        if "result" in self._saved:
            return [self._saved["result"]]
        if self.attempt > 1 and "attempt" not in self._saved:
            await self.unknown(f"attempt {self.attempt} has no state of the attempts before it, and starts anew")
        elif self.attempt > 1:
            at = "from its checkpoint" if "checkpoint" in self._saved else "at the beginning"
            await self.resumed(f"{at}, after {len(self._steps)} stored steps")
        self._saved["attempt"] = self.attempt
        await self._save()
        return []

    async def end(self, result: Any) -> Any:
        """Store the result, so that the next attempt repeats it alone, and return it as JSON has it."""
        self._saved["result"] = plain(result)
        await self.flush()
        await self._save()
        return self._saved["result"]

    async def step(self, name: str, f: Callable[..., Any], *arguments: Any, idempotent: bool = False) -> Any:
        """Call a function once over all attempts and return its result, which has to be JSON.

        If a process ended while the function ran, its outcome is not known: it runs again if it is idempotent, else this
        raises UnknownOutcomeError.
        """
        self._count += 1
        key = f"{self._count} {name}"
        stored = self._steps.get(key)
        if stored is None and any(k.startswith(f"{self._count} ") for k in self._steps):
            raise RuntimeError(f"step {key!r} was another one in an earlier attempt: the order of steps may not change")
        if stored is not None and "result" in stored:
            return stored["result"]
        if stored is not None and not idempotent:
            raise unknown([name])
        self._steps[key] = {"attempt": self.attempt}
        await self._save()
        try:
            result = plain(await called(f, *arguments))
        except Exception:
            del self._steps[key]  # its outcome is known: the function may try again, here or in the next attempt
            await self._save()
            raise
        self._steps[key] = {"result": result}
        await self._save()
        return result

    async def ask(self, message: Any, *, options: Sequence[str] | None = None, timeout: float = PATIENCE) -> Any:
        """Ask people, and return the answer, that of an earlier attempt if it has one."""
        await self.flush()
        ask = functools.partial(super().ask, message, options=options, timeout=timeout)
        return await self.step("ask", ask, idempotent=True)

    async def call_service(
        self, service: str, tool: str, params: Any = None, *, timeout: float = 60.0, idempotent: bool = False
    ) -> Any:
        """Run a tool of a service once over all attempts."""
        call = functools.partial(super().call_service, service, tool, params, timeout=timeout)
        return await self.step(f"{service}.{tool}", call, idempotent=idempotent)

    async def call_mcp(
        self, server: str, tool: str, parameters: Any = None, *, timeout: float = 60.0, idempotent: bool = False
    ) -> Any:
        """Run a tool of an MCP server once over all attempts."""
        call = functools.partial(super().call_mcp, server, tool, parameters, timeout=timeout)
        return await self.step(f"{server}.{tool}", call, idempotent=idempotent)

    async def child(self, data: Any, *, idempotent: bool = False, **options: Any) -> Any:
        """Give another agent a child task once over all attempts. The other options are those of AgentTask.child."""
        give = functools.partial(super().child, data, **options)
        return await self.step("child", give, idempotent=idempotent)


def unknown(calls: Sequence[str]) -> UnknownOutcomeError:
    """Return the error of calls whose outcome an ended process did not store."""
    text = (
        f"an earlier attempt ended during {', '.join(calls)}: it may have taken effect, so check before you repeat it"
    )
    return UnknownOutcomeError(text, code="TOOL_LOST", detail={"calls": [*calls]})


Worker = Callable[[DurableTask], Awaitable[Any]]


@overload
def durable(
    f: Worker,
    /,
    *,
    state: Store | str | os.PathLike[str],
    name: str | None = None,
    id: str | None = None,
    capabilities: Sequence[str] = (),
    description: str | None = None,
    concurrency: int = 8,
) -> Agent: ...
@overload
def durable(
    *,
    state: Store | str | os.PathLike[str],
    name: str | None = None,
    id: str | None = None,
    capabilities: Sequence[str] = (),
    description: str | None = None,
    concurrency: int = 8,
) -> Callable[[Worker], Agent]: ...
def durable(f: Worker | None = None, /, *, state: Store | str | os.PathLike[str], **options: Any) -> Any:
    """Make an agent of an async function that takes a DurableTask. The options are those of waggle.swarm.agent.

    state: a folder, or another Store. id: give one that is the same after a restart: the server gives the tasks of a lost
    process to one that comes back under its id.
    """
    store: Store = Folder(state) if isinstance(state, (str, os.PathLike)) else state

    def make(g: Worker) -> Agent:
        @functools.wraps(g)
        async def work(task: AgentTask) -> Any:
            return await _work(g, DurableTask(task, store), store)

        return Agent(work, **options)

    return make(f) if f is not None else make


async def _work(f: Worker, task: DurableTask, store: Store) -> Any:
    task.on_delivered(functools.partial(store.delete, task.id))
    for result in await task.begin():
        return result
    try:
        return await task.end(await f(task))
    finally:
        task.close()
