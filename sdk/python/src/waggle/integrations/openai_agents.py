"""Agents of the OpenAI Agents SDK as agents of the swarm: their runs survive the process turn by turn, approvals are questions."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Collection
from typing import Any, cast

from ..swarm import Agent
from ._durable import DurableTask, durable, unknown
from ._report import PATIENCE
from ._store import Store


def agent(
    starting: Any,
    *,
    name: str,
    state: Store | str | os.PathLike[str],
    input: Callable[[DurableTask], Any] | None = None,
    context: Callable[[DurableTask], Any] | None = None,
    session: Callable[[DurableTask], Any] | None = None,
    idempotent: Collection[str] = (),
    timeout: float = PATIENCE,
    run: dict[str, Any] | None = None,
    **options: Any,
) -> Agent:
    """Make an agent of the one that a run starts with.

    input, context, session: of the run, for a task; default: its text, none, none. idempotent: names of tools that may run twice.
    timeout: seconds for an approval. run: further arguments of Runner.run_streamed. Other options: of waggle.swarm.agent.
    """

    async def work(task: DurableTask) -> Any:
        own = {**(run or {}), "session": session(task) if session else None}
        runs = _Run(starting, task, context(task) if context else None, own, timeout)
        return await runs.output(input(task) if input else task.text, idempotent)

    return durable(state=state, name=name, **options)(work)


class _Run:
    def __init__(self, starting: Any, task: DurableTask, context: Any, own: dict[str, Any], timeout: float) -> None:
        self._agents: Any = importlib.import_module("agents")
        self._starting = starting
        self._task = task
        self._context = context
        self._own = own
        self._timeout = timeout
        self._saved: dict[str, Any] = {"run": None, "answered": False, "open": {}, **(task.state or {})}

    async def output(self, given: Any, idempotent: Collection[str]) -> Any:
        """Run turn by turn, each from the state of the one before it, and return the final output."""
        if lost := [tool for tool in self._saved["open"].values() if tool not in idempotent]:
            raise unknown(lost)
        while True:
            state = await self._state()
            result = self._begin(given if state is None else state)
            if not await self._turn(result) or result.final_output is not None:
                return result.final_output
            await self._save(run=result.to_state().to_json(), answered=False, open={})

    async def _save(self, **changed: Any) -> None:
        self._saved = {**self._saved, **changed}
        await self._task.checkpoint(self._saved)

    async def _state(self) -> Any:
        """Return the state of the run after its last turn, with the decisions of people; None before the first turn."""
        if self._saved["run"] is None:
            return None
        override = {} if self._context is None else {"context_override": self._context}
        state = await self._agents.RunState.from_json(self._starting, self._saved["run"], **override)
        waiting: list[Any] = [] if self._saved["answered"] else state.get_interruptions()
        for item in waiting:
            approved, why = await self._task.approve(item.name or "tool", item.arguments, timeout=self._timeout)
            if approved:
                state.approve(item)
            else:
                state.reject(item, **({"rejection_message": why} if why else {}))
        if waiting:
            await self._save(run=state.to_json(), answered=True)
        return state

    def _begin(self, given: Any) -> Any:
        own = {**self._own, "hooks": self._hooks()}
        if self._saved["run"] is None and self._context is not None:
            own["context"] = self._context
        return self._agents.Runner.run_streamed(self._starting, given, **own)

    def _hooks(self) -> Any:
        """Return hooks that store which tools run: the SDK awaits them before and after a tool."""

        async def on_tool_start(_: Any, context: Any, __: Any, tool: Any) -> None:
            await self._save(open={**self._saved["open"], getattr(context, "tool_call_id", tool.name): tool.name})

        return type("Hooks", (cast("type[Any]", self._agents.RunHooks),), {"on_tool_start": on_tool_start})()

    async def _turn(self, result: Any) -> bool:
        """Show one turn, and report whether the run did anything."""
        did = False
        try:
            async for event in result.stream_events():
                if event.type in ("raw_response_event", "run_item_stream_event"):
                    did = True
                    result.cancel(mode="after_turn")  # between turns the SDK has a state that can be stored
                    await self._show(event)
        except BaseException:
            result.cancel()  # the run is its own task
            raise
        if getattr(result, "run_loop_exception", None):
            raise result.run_loop_exception
        return did

    async def _show(self, event: Any) -> None:
        if event.type == "raw_response_event":
            if event.data.type == "response.output_text.delta":
                await self._task.stream(event.data.delta)
            return
        item, raw = event.item, event.item.raw_item
        if event.name == "tool_called":
            await self._task.called(item.tool_name or "tool", _of(raw, "arguments"), item.call_id or "")
        elif event.name == "tool_output":
            call = str(_of(raw, "call_id") or "")
            await self._task.returned(self._saved["open"].get(call, "tool"), item.output, call)


def _of(raw: Any, name: str) -> Any:
    return cast("dict[str, Any]", raw).get(name) if isinstance(raw, dict) else getattr(raw, name, None)
