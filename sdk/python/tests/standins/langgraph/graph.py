"""Graphs whose nodes run one after the other."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

from .types import Command, GraphInterrupt, Interrupt, StateSnapshot, answers

START, END = "__start__", "__end__"
MessagesState = dict[str, Any]
Node = Callable[[dict[str, Any]], Awaitable[dict[str, Any] | None]]

said: contextvars.ContextVar[Callable[[str], None]] = contextvars.ContextVar("said")


def say(*pieces: str) -> dict[str, Any]:
    """Answer as a chat model in a node does: the pieces stream, the message is for the state."""
    for piece in pieces:
        said.get()(piece)
    return {"type": "ai", "content": "".join(pieces)}


def _of_role(m: dict[str, Any]) -> dict[str, Any]:
    return m if "type" in m else {"type": {"user": "human", "assistant": "ai"}[m["role"]], "content": m["content"]}


def _begun(given: Any) -> dict[str, Any]:
    values = {"messages": [_of_role(m) for m in given["messages"]]}
    return {"values": values, "step": 0, "id": "", "interrupts": [], "answers": []}


def _message(m: dict[str, Any]) -> Any:
    return SimpleNamespace(**{"tool_calls": [], "name": None, "tool_call_id": None, "status": "success", **m})


class StateGraph:
    def __init__(self, schema: Any) -> None:
        self._nodes: dict[str, Node] = {}
        self._edges: dict[str, str] = {}

    def add_node(self, name: str, node: Node) -> StateGraph:
        self._nodes[name] = node
        return self

    def add_edge(self, a: str, b: str) -> StateGraph:
        self._edges[a] = b
        return self

    def compile(self, checkpointer: Any = None, interrupt_before: Sequence[str] = ()) -> Graph:
        order: list[tuple[str, Node]] = []
        at = self._edges[START]
        while at != END:
            order.append((at, self._nodes[at]))
            at = self._edges.get(at, END)
        return Graph(order, checkpointer, interrupt_before)


class Graph:
    """As a compiled graph of LangGraph: astream and aget_state, with a checkpoint after each node."""

    def __init__(self, nodes: list[tuple[str, Node]], checkpointer: Any, before: Sequence[str]) -> None:
        self._nodes = nodes
        self._before = before
        self.checkpointer = checkpointer

    def _load(self, config: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
        thread = config["configurable"]["thread_id"]
        return thread, self.checkpointer.get(thread)

    async def aget_state(self, config: dict[str, Any]) -> StateSnapshot:
        _, c = self._load(config)
        if c is None:
            return StateSnapshot({}, (), None, ())
        values = {**c["values"], "messages": [_message(m) for m in c["values"].get("messages", [])]}
        waiting = tuple(Interrupt(v, c["id"]) for v in c["interrupts"])
        left = tuple(name for name, _ in self._nodes[c["step"] : c["step"] + 1])
        return StateSnapshot(values, left, "2026-01-01", waiting)

    async def astream(
        self, given: Any, config: dict[str, Any], *, stream_mode: list[str], subgraphs: bool, durability: str
    ) -> AsyncGenerator[tuple[tuple[str, ...], str, Any], None]:
        assert (stream_mode, subgraphs, durability) == (["messages", "tasks", "updates"], True, "sync")
        thread, stored = self._load(config)
        c: dict[str, Any] = stored or {}
        goes_on = bool(c) and (given is None or isinstance(given, Command))
        if not goes_on:
            c = _begun(given)
        if isinstance(given, Command):
            c["answers"] += [given.resume[c["id"]]]
        self.checkpointer.put(thread, c)
        while c["step"] < len(self._nodes):
            name, node = self._nodes[int(c["step"])]
            if name in self._before and not goes_on:
                yield (), "updates", {"__interrupt__": ()}
                return
            goes_on = False
            yield (), "tasks", {"id": f"{c['step']}", "name": name, "input": c["values"], "triggers": []}
            async for event in self._node(name, node, c):
                yield event
            self.checkpointer.put(thread, c)
            if c["interrupts"]:
                return

    async def _node(
        self, name: str, node: Node, c: dict[str, Any]
    ) -> AsyncGenerator[tuple[tuple[str, ...], str, Any], None]:
        pieces: asyncio.Queue[str | None] = asyncio.Queue()

        async def run() -> dict[str, Any] | None:
            answers.set([*c["answers"]])
            said.set(pieces.put_nowait)
            try:
                return await node({**c["values"], "messages": [_message(m) for m in c["values"]["messages"]]})
            finally:
                pieces.put_nowait(None)

        task = asyncio.ensure_future(run())
        try:
            while (piece := await pieces.get()) is not None:
                yield (), "messages", (SimpleNamespace(type="AIMessageChunk", content=piece), {"langgraph_node": name})
            update = await task or {}
        except GraphInterrupt as raised:
            c.update(interrupts=[raised.args[0]], id=f"{c['step']:032x}")
            yield (), "updates", {"__interrupt__": (Interrupt(raised.args[0], c["id"]),)}
            return
        finally:
            task.cancel()
        new = [_of_role(m) for m in update.get("messages", [])]
        c["values"] = {**c["values"], **update, "messages": [*c["values"]["messages"], *new]}
        c.update(step=c["step"] + 1, interrupts=[], answers=[])
        yield (), "updates", {name: {**update, "messages": [_message(m) for m in new]}}
