"""Agents that call each of their tools once, in order, and then answer with the results."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from .messages import Message
from .tools import DeferredToolRequests, DeferredToolResults, ToolDenied

__all__ = ["Agent", "DeferredToolRequests"]

Tool = Callable[..., Any]


class Node:
    """A node of a run, whose work is done once, in its stream or without."""

    def __init__(self, run: Run, kind: str, message: Message, results: DeferredToolResults | None = None) -> None:
        self.kind = kind
        self.request = message
        self._run = run
        self._results = results
        self._done = False
        self.following: Node | None = None

    async def events(self) -> AsyncGenerator[Any, None]:
        if self._done:
            return
        async for event in self._run.work(self, self._results):
            yield event
        self._done = True

    @asynccontextmanager
    async def stream(self, ctx: Any) -> AsyncGenerator[AsyncGenerator[Any, None], None]:
        yield self.events()


class Run:
    def __init__(self, agent: Agent, history: list[Message]) -> None:
        self.ctx = object()
        self.result: Any = None
        self._agent = agent
        self._history = history
        self.next_node = Node(self, "end", Message("", []))

    def all_messages(self) -> list[Message]:
        return [*self._history]

    async def next(self, node: Node) -> Node:
        async for _ in node.events():
            pass
        assert node.following
        return node.following

    async def work(self, node: Node, results: DeferredToolResults | None) -> AsyncGenerator[Any, None]:
        if node.kind == "request":
            self._history.append(node.request)
            response = self._respond()
            for p in response.parts:
                if p["part_kind"] == "text":
                    first, rest = p["content"][:3], p["content"][3:]
                    yield SimpleNamespace(
                        event_kind="part_start", part=SimpleNamespace(part_kind="text", content=first)
                    )
                    delta = SimpleNamespace(part_delta_kind="text", content_delta=rest)
                    yield SimpleNamespace(event_kind="part_delta", delta=delta)
            self._history.append(response)
            node.following = Node(self, "tools", response)
            return
        call = node.request.parts[0]
        if call["part_kind"] == "text":
            self._end(node, call["content"])
            return
        part = SimpleNamespace(**call)
        yield SimpleNamespace(event_kind="function_tool_call", part=part)
        tool, deferred = self._agent.tools[call["tool_name"]]
        if deferred and results is None:
            self._end(node, DeferredToolRequests(approvals=[part]))
            return
        decision = results.approvals[call["tool_call_id"]] if results else True
        content = decision.message if isinstance(decision, ToolDenied) else await tool(**call["args"])
        back = {**call, "part_kind": "tool-return", "content": content}
        yield SimpleNamespace(event_kind="function_tool_result", part=SimpleNamespace(**back))
        node.following = Node(self, "request", Message("request", [back]))

    def _end(self, node: Node, output: Any) -> None:
        self.result = SimpleNamespace(output=output, all_messages=self.all_messages)
        node.following = Node(self, "end", node.request)

    def _respond(self) -> Message:
        parts = [p for m in self._history if m.kind == "request" for p in m.parts]
        prompt = next(p["content"] for p in parts if p["part_kind"] == "user-prompt")
        done = [p for p in parts if p["part_kind"] == "tool-return"]
        names = [*self._agent.tools]
        if len(done) == len(names):
            return Message("response", [{"part_kind": "text", "content": "; ".join(p["content"] for p in done)}])
        tool = names[len(done)]
        argument = next(iter(inspect.signature(self._agent.tools[tool][0]).parameters))
        call = {
            "part_kind": "tool-call",
            "tool_name": tool,
            "args": {argument: prompt},
            "tool_call_id": f"call-{len(done)}",
        }
        return Message("response", [call])


class Agent:
    def __init__(self, model: str, *, output_type: Any = str) -> None:
        self.tools: dict[str, tuple[Tool, bool]] = {}

    def tool_plain(self, *, requires_approval: bool = False) -> Callable[[Tool], Tool]:
        def add(f: Tool) -> Tool:
            self.tools[f.__name__] = (f, requires_approval)
            return f

        return add

    @asynccontextmanager
    async def iter(
        self,
        prompt: str | None,
        *,
        message_history: list[Message] | None = None,
        deferred_tool_results: DeferredToolResults | None = None,
        deps: Any = None,
    ) -> AsyncGenerator[Run, None]:
        history = [*(message_history or [])]
        run = Run(self, history)
        if history and history[-1].kind == "response":
            run.next_node = Node(run, "tools", history[-1], deferred_tool_results)
        elif history:
            run.next_node = Node(run, "request", history.pop())
        else:
            request = Message("request", [{"part_kind": "user-prompt", "content": prompt}])
            run.next_node = Node(run, "request", request)
        yield run

    @staticmethod
    def is_end_node(node: Node) -> bool:
        return node.kind == "end"

    @staticmethod
    def is_model_request_node(node: Node) -> bool:
        return node.kind == "request"

    @staticmethod
    def is_call_tools_node(node: Node) -> bool:
        return node.kind == "tools"
