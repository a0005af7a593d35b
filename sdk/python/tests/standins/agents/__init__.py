"""Agents that call each of their tools once, in order, and then answer with the results."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Callable
from types import SimpleNamespace
from typing import Any


class RunHooks:
    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None: ...


class FunctionTool:
    def __init__(self, f: Callable[..., Any], needs_approval: bool) -> None:
        self.name = f.__name__
        self.function = f
        self.needs_approval = needs_approval


def function_tool(*, needs_approval: bool = False) -> Callable[[Callable[..., Any]], FunctionTool]:
    return lambda f: FunctionTool(f, needs_approval)


class Agent:
    def __init__(self, *, name: str, instructions: str = "", tools: list[FunctionTool] | None = None) -> None:
        self.name = name
        self.tools = tools or []


class RunState:
    """The results of the tools so far, and the decisions of people."""

    def __init__(self, agent: Agent, state: dict[str, Any]) -> None:
        self.agent = agent
        self.state = state

    @staticmethod
    async def from_json(agent: Agent, state: dict[str, Any]) -> RunState:
        return RunState(agent, state)

    def to_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(self.state))

    def get_interruptions(self) -> list[Any]:
        return [SimpleNamespace(**i) for i in self.state["interruptions"]]

    def approve(self, item: Any) -> None:
        self.state["decisions"][item.call_id] = True

    def reject(self, item: Any, *, rejection_message: str = "rejected") -> None:
        self.state["decisions"][item.call_id] = rejection_message


class RunResultStreaming:
    """A run that continues in its own task, and waits at the end of a turn until its events were consumed."""

    def __init__(self, agent: Agent, state: RunState, hooks: RunHooks) -> None:
        self.final_output: Any = None
        self.run_loop_exception: BaseException | None = None
        self._agent = agent
        self._state = state
        self._hooks = hooks
        self._stopping = False
        self._events: asyncio.Queue[Any] = asyncio.Queue()
        self._task = asyncio.ensure_future(self._run())

    def to_state(self) -> RunState:
        return self._state

    def cancel(self, mode: str = "immediate") -> None:
        self._stopping = True
        if mode == "immediate":
            self._task.cancel()

    async def stream_events(self) -> AsyncGenerator[Any, None]:
        while (event := await self._events.get()) is not None:
            yield event
            self._events.task_done()
        self._events.task_done()
        await asyncio.wait({self._task})
        self.run_loop_exception = None if self._task.cancelled() else self._task.exception()

    async def _run(self) -> None:
        try:
            self._events.put_nowait(SimpleNamespace(type="agent_updated_stream_event", new_agent=self._agent))
            while self.final_output is None and not self._stopping and await self._turn():
                await self._events.join()
        finally:
            self._events.put_nowait(None)

    def _item(self, name: str, call: str, **item: Any) -> None:
        made = SimpleNamespace(call_id=call, **item)
        self._events.put_nowait(SimpleNamespace(type="run_item_stream_event", name=name, item=made))

    async def _turn(self) -> bool:
        s = self._state.state
        n = len(s["results"])
        if n == len(self._agent.tools):
            text = "; ".join(s["results"])
            for piece in (text[:3], text[3:]):
                data = SimpleNamespace(type="response.output_text.delta", delta=piece)
                self._events.put_nowait(SimpleNamespace(type="raw_response_event", data=data))
            self.final_output = text
            return True
        tool, call = self._agent.tools[n], f"call-{n}"
        argument = next(iter(inspect.signature(tool.function).parameters))
        arguments = json.dumps({argument: s["input"]})
        if call not in s["decisions"]:
            self._item("tool_called", call, tool_name=tool.name, raw_item=SimpleNamespace(arguments=arguments))
        if tool.needs_approval and call not in s["decisions"]:
            s["interruptions"] = [{"name": tool.name, "arguments": arguments, "call_id": call}]
            return False
        decision = s["decisions"].get(call, True)
        output = await self._call(tool, call, s["input"]) if decision is True else decision
        s["results"].append(output)
        s["interruptions"] = []
        self._item("tool_output", call, raw_item={"call_id": call}, output=output)
        return True

    async def _call(self, tool: FunctionTool, call: str, argument: str) -> str:
        await self._hooks.on_tool_start(SimpleNamespace(tool_call_id=call), self._agent, tool)
        return str(await tool.function(argument))


class Runner:
    @staticmethod
    def run_streamed(agent: Agent, input: Any, *, hooks: RunHooks, session: Any = None) -> RunResultStreaming:
        new: dict[str, Any] = {"input": input, "results": [], "decisions": {}, "interruptions": []}
        state = input if isinstance(input, RunState) else RunState(agent, new)
        return RunResultStreaming(agent, state, hooks)
