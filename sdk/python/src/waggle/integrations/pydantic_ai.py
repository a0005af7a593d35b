"""Agents of Pydantic AI as agents of the swarm: their messages survive the process, deferred tools are questions."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Collection
from typing import Any

from ..swarm import Agent
from ._durable import DurableTask, durable, unknown
from ._report import PATIENCE, as_json
from ._store import Store


def agent(
    wrapped: Any,
    *,
    name: str,
    state: Store | str | os.PathLike[str],
    input: Callable[[DurableTask], Any] | None = None,
    deps: Callable[[DurableTask], Any] | None = None,
    idempotent: Collection[str] = (),
    timeout: float = PATIENCE,
    run: dict[str, Any] | None = None,
    **options: Any,
) -> Agent:
    """Make an agent of one whose output_type has DeferredToolRequests, if it has tools that need an approval.

    input, deps: of the run, for a task; default: its text, and None. idempotent: names of tools that may run twice. timeout: seconds
    for an answer. run: further arguments of agent.iter. Other options: of waggle.swarm.agent.
    """

    async def work(task: DurableTask) -> Any:
        own = {**(run or {}), "deps": deps(task) if deps else None}
        runs = _Run(wrapped, task, own, timeout)
        return await runs.output(input(task) if input else task.text, idempotent)

    return durable(state=state, name=name, **options)(work)


class _Run:
    def __init__(self, wrapped: Any, task: DurableTask, own: dict[str, Any], timeout: float) -> None:
        self._messages: Any = importlib.import_module("pydantic_ai.messages").ModelMessagesTypeAdapter
        self._tools: Any = importlib.import_module("pydantic_ai.tools")
        self._agent = wrapped
        self._task = task
        self._own = own
        self._timeout = timeout
        self._saved: dict[str, Any] = {"messages": None, "deferred": None, "open": {}, **(task.state or {})}

    async def output(self, prompt: Any, idempotent: Collection[str]) -> Any:
        """Run from the newest messages until the output is no request of deferred tools, and return it."""
        if lost := [tool for tool in self._saved["open"].values() if tool not in idempotent]:
            raise unknown(lost)
        while True:
            begun = self._saved["messages"]
            result = await self._run(
                None if begun else prompt,
                message_history=self._messages.validate_json(begun) if begun else None,
                deferred_tool_results=await self._results(),
            )
            if not isinstance(result.output, self._tools.DeferredToolRequests):
                return result.output
            await self._save(result.all_messages(), deferred=_calls(result.output))

    async def _save(self, messages: Any, **changed: Any) -> None:
        text = self._messages.dump_json(messages).decode() if messages else self._saved["messages"]
        self._saved = {"messages": text, "deferred": None, "open": {}, **changed}
        await self._task.checkpoint(self._saved)

    async def _run(self, prompt: Any, **options: Any) -> Any:
        async with self._agent.iter(prompt, **options, **self._own) as run:
            node = run.next_node
            while not self._agent.is_end_node(node):
                if self._agent.is_model_request_node(node) or self._agent.is_call_tools_node(node):
                    async with node.stream(run.ctx) as events:
                        async for event in events:
                            await self._show(event)
                node = await run.next(node)
                if not self._agent.is_end_node(node):
                    await self._save([*run.all_messages(), *self._following(run, node)])
            return run.result

    def _following(self, run: Any, node: Any) -> list[Any]:
        """Return the request that a node will send, which is in no history yet: the results of tools are in it."""
        if not self._agent.is_model_request_node(node) or not node.request.parts:
            return []
        return [] if any(m is node.request for m in run.all_messages()) else [node.request]

    async def _results(self) -> Any:
        """Ask people about the deferred calls, and return their answers; None without such calls."""
        deferred = self._saved["deferred"]
        if deferred is None:
            return None
        if "answers" not in deferred:
            deferred["answers"] = await self._ask(deferred)
            await self._save(None, deferred=deferred)
        results = self._tools.DeferredToolResults()
        for call, (approved, why) in deferred["answers"]["approvals"].items():
            denied = self._tools.ToolDenied(why) if why else self._tools.ToolDenied()
            results.approvals[call] = True if approved else denied
        results.calls.update(deferred["answers"]["calls"])
        return results

    async def _ask(self, deferred: dict[str, Any]) -> dict[str, Any]:
        approvals = {
            c: await self._task.approve(tool, a, timeout=self._timeout) for c, tool, a in deferred["approvals"]
        }
        calls: dict[str, Any] = {}
        for call, tool, arguments in deferred["calls"]:
            question = {"question": f"What does {tool} return?", "tool": tool, "arguments": arguments}
            calls[call] = await self._task.ask(question, timeout=self._timeout)
        return {"approvals": approvals, "calls": calls}

    async def _show(self, event: Any) -> None:
        if event.event_kind == "part_start" and event.part.part_kind == "text":
            await self._task.stream(event.part.content)
        elif event.event_kind == "part_delta" and event.delta.part_delta_kind == "text":
            await self._task.stream(event.delta.content_delta)
        elif event.event_kind == "function_tool_call":  # the tool runs when the next event is asked for
            await self._open(event.part)
            await self._task.called(event.part.tool_name, event.part.args, event.part.tool_call_id)
        elif event.event_kind == "function_tool_result":
            failed = event.part.part_kind == "retry-prompt"
            await self._task.returned(event.part.tool_name, event.part.content, event.part.tool_call_id, failed=failed)

    async def _open(self, call: Any) -> None:
        opened = {**self._saved["open"], call.tool_call_id: call.tool_name}
        await self._save(None, deferred=self._saved["deferred"], open=opened)


def _calls(requests: Any) -> dict[str, list[Any]]:
    """Return deferred calls as the state has them."""
    return {
        kind: [[c.tool_call_id, c.tool_name, as_json(c.args)] for c in getattr(requests, kind)]
        for kind in ("approvals", "calls")
    }
