"""Graphs of LangGraph as agents of the swarm: checkpoints of the graph survive the process, interrupts are questions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ..swarm import Agent, AgentTask
from ._report import PATIENCE, Report, as_json

MODES = ["messages", "tasks", "updates"]


def agent(
    graph: Any,
    *,
    name: str,
    id: str | None = None,
    input: Callable[[Report], Any] | None = None,
    output: Callable[[Any], Any] | None = None,
    config: Mapping[str, Any] | None = None,
    timeout: float = PATIENCE,
    capabilities: Sequence[str] = (),
    description: str | None = None,
    concurrency: int = 8,
) -> Agent:
    """Make an agent of a compiled graph. Its checkpointer has to outlive the process: AsyncSqliteSaver, AsyncPostgresSaver.

    input: the first state; default: a message of the user. output: the result, of the last state; default: the text of the last
    message, else the state. config: as of graph.ainvoke; the thread is the task. timeout: seconds for an answer.
    """
    if not getattr(graph, "checkpointer", None):
        raise TypeError("the graph has no checkpointer: compile it with one that outlives the process")

    async def work(task: AgentTask) -> Any:
        run = _Run(graph, Report(task), config or {}, timeout)
        try:
            values = await run.values((input or _message)(run.task))
            await run.task.flush()
        finally:
            run.task.close()
        return (output or _answer)(values)

    return Agent(
        work, name=name, id=id, capabilities=capabilities, description=description or "", concurrency=concurrency
    )


class _Run:
    def __init__(self, graph: Any, task: Report, config: Mapping[str, Any], timeout: float) -> None:
        self.task = task
        self._graph = graph
        self._timeout = timeout
        self._config = {**config, "configurable": {**config.get("configurable", {}), "thread_id": task.id}}

    async def values(self, given: Any) -> Any:
        """Run the graph to its end, from its newest checkpoint if it has one, and return its last state."""
        snapshot = await self._graph.aget_state(self._config)
        if snapshot.created_at is not None:
            if not snapshot.next:
                return snapshot.values
            await self.task.resumed(f"at {', '.join(snapshot.next)}")
            if not snapshot.interrupts:
                await self.task.unknown(f"{', '.join(snapshot.next)} may have run in part before, and runs again")
            given = None
        elif self.task.attempt > 1:
            await self.task.unknown("the checkpointer has no state of an earlier attempt: the graph starts anew")
        while True:
            interrupts: dict[str, Any] = {}
            stream = self._graph.astream(given, self._config, stream_mode=MODES, subgraphs=True, durability="sync")
            async for namespace, mode, data in stream:
                if mode == "updates" and not namespace and "__interrupt__" in data:
                    _collect(interrupts, data["__interrupt__"])
                else:
                    await self._show(mode, data)
            snapshot = await self._graph.aget_state(self._config)
            if not snapshot.next:
                return snapshot.values
            given = await self._answers(interrupts, ", ".join(snapshot.next))

    async def _answers(self, interrupts: Mapping[str, Any], nodes: str) -> Any:
        """Ask people what the graph waits for, and return what it continues with."""
        await self.task.flush()
        if interrupts:
            resume = {id: await self.task.ask(as_json(v), timeout=self._timeout) for id, v in interrupts.items()}
            return importlib.import_module("langgraph.types").Command(resume=resume)
        approved, why = await self.task.approve(nodes, None, timeout=self._timeout)  # interrupt_before, interrupt_after
        if not approved:
            raise PermissionError(f"people did not let {nodes} run: {why}")
        return None

    async def _show(self, mode: str, data: Any) -> None:
        if mode == "messages":
            if data[0].type in ("AIMessageChunk", "ai"):
                await self.task.stream(_text(data[0]))
        elif mode == "tasks" and "triggers" in data:
            await self.task.flush()
            await self.task.notify(f"{data['name']} begins", type="step", data={"node": data["name"], "state": "begun"})
        elif mode == "updates":
            for update in data.values():
                for m in _messages(update):
                    await self._show_calls(m)

    async def _show_calls(self, m: Any) -> None:
        for call in getattr(m, "tool_calls", None) or ():
            await self.task.called(call["name"], call["args"], call["id"])
        if m.type == "tool":
            failed = getattr(m, "status", "success") == "error"
            await self.task.returned(m.name or "tool", m.content, m.tool_call_id, failed=failed)


def _collect(interrupts: dict[str, Any], raised: Any) -> None:
    for i in raised:
        if interrupts.setdefault(i.id, i.value) != i.value:
            raise RuntimeError("two interrupts have one id, so their answers cannot be told apart: use a node for each")


def _messages(update: Any) -> list[Any]:
    if not isinstance(update, Mapping):
        return []
    found = cast("Mapping[str, Any]", update).get("messages")
    several = cast("list[Any]", found if isinstance(found, list) else [found])
    return [m for m in several if hasattr(m, "type")]


def _text(message: Any) -> str:
    if isinstance(message.content, str):
        return message.content
    blocks = [cast("dict[str, Any]", b) for b in message.content if isinstance(b, dict)]
    return "".join(b["text"] for b in blocks if b.get("type") == "text")


def _message(task: Report) -> Any:
    return {"messages": [{"role": "user", "content": task.text}]}


def _answer(values: Any) -> Any:
    messages = _messages(values)
    return _text(messages[-1]) if messages else as_json(values)
