"""Agents and tools of the swarm: functions that do the tasks and calls of others."""

from __future__ import annotations

import asyncio
import inspect
import json
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from ._backoff import Backoff
from ._errors import error_of
from ._http import Token, given
from ._link import Frame
from ._peer import Peer, failure, new_id, stamp
from ._tools import Tool, ToolCall, called, plain, tool

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")

__all__ = ["Agent", "AgentTask", "Service", "SyncTask", "Tool", "ToolCall", "agent", "tool"]


def _text(data: Any) -> str:
    """Return the text of a task: itself, or its description, text or content."""
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        members = cast("dict[str, Any]", data)
        for name in ("description", "text", "content"):
            if isinstance(members.get(name), str):
                return members[name]
    return "" if data is None else json.dumps(cast("Any", data), ensure_ascii=False)


class AgentTask:
    """A task that an agent does. When it is cancelled, or its time is over, the function of the agent is cancelled."""

    def __init__(self, peer: _AgentPeer, id: str, content: Frame) -> None:
        self._peer = peer
        self.id = id
        self.type: str = content.get("type") or content.get("taskType") or ""
        self.data: Any = content.get("input", content.get("data"))
        self.text = _text(self.data)
        """The text of a task, of a step of a plan, and of a message that a chat or a team has for the agent."""
        self.metadata: Frame = content.get("metadata") or {}
        self._delivered: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def on_delivered(self, f: Callable[[], None]) -> None:
        """Call a function once the server has the result or the failure: no other process gets the task then."""
        self._delivered.append(f)

    @property
    def _base(self) -> Frame:
        return {"taskId": self.id, "agentId": self._peer.id}

    async def notify(self, message: str, *, type: str = "info", data: Any = None) -> None:
        """Send the client a notification of the type progress, info, warning, error, debug, step or status."""
        content = {**self._base, "notificationType": type, "message": message, **given(data=data)}
        await self._peer.call("task.notification", content)

    async def progress(self, part: float, message: str = "") -> None:
        """Tell how far the task is, from 0 to 1."""
        await self.notify(message, type="progress", data={"progress": part * 100})

    async def ask(self, message: Any, *, options: Sequence[str] | None = None, timeout: float = 30.0) -> Any:
        """Ask people, and return the answer. Raises InputExpiredError without one in time (seconds)."""
        content = {**self._base, "message": message, "timeout": int(timeout * 1000), **given(options=options)}
        return (await self._peer.call("task.requestmessage", content)).get("message")

    async def call_service(self, service: str, tool: str, params: Any = None, *, timeout: float = 60.0) -> Any:
        """Run a tool of a service and return its result."""
        wanted: Frame = {"serviceId": service, "toolId": tool, "params": {} if params is None else params}
        return await self._outcome("service.task.execute", {**wanted, "timeout": int(timeout * 1000)})

    async def call_mcp(self, server: str, tool: str, parameters: Any = None, *, timeout: float = 60.0) -> Any:
        """Run a tool of an MCP server and return its result."""
        wanted: Frame = {"serverId": server, "toolName": tool, "parameters": {} if parameters is None else parameters}
        return await self._outcome("mcp.tool.execute", {**wanted, "timeout": int(timeout * 1000)})

    async def _outcome(self, type: str, wanted: Frame) -> Any:
        r = await self._peer.call(type, {**self._base, **wanted})
        if r.get("status") not in (None, "", "success", "completed"):
            raise error_of(r.get("code") or "TOOL_FAILED", str(r.get("error") or r["status"]), detail=r)
        return r.get("result")

    async def child(
        self,
        data: Any,
        *,
        agent: str | None = None,
        agent_id: str | None = None,
        type: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Give another agent a child task, and return its result. Raises the error with which it failed."""
        content = {
            "parentTaskId": self.id,
            "taskData": data,
            **given(targetAgent=agent, targetAgentId=agent_id, taskType=type, description=description),
            **given(timeout=None if timeout is None else int(timeout * 1000)),
        }
        child = ""

        def answered(id: str, f: Frame) -> bool:
            nonlocal child
            about: Frame = f.get("content") or {}
            if f.get("type") == "childagent.request.accepted" and about.get("inReplyTo") == id:
                child = about["childTaskId"]
            return f.get("type") == "childagent.response" and child != "" and about.get("childTaskId") == child

        end = await self._peer.call("agent.request", content, answered)
        if end.get("status") != "completed":
            text = end.get("error") or f"the child task is {end.get('status')}"
            raise error_of(end.get("code") or "TASK_FAILED", str(text), detail=end)
        return end.get("result")


class SyncTask:
    """The task of an agent whose function is not asynchronous: it runs in a thread, and its methods wait.

    When the task is cancelled, the next method raises CancelledError; a long calculation looks at cancelled.
    """

    def __init__(self, task: AgentTask) -> None:
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._cancelled = threading.Event()
        self.id = task.id
        self.type = task.type
        self.data = task.data
        self.text = task.text
        self.metadata = task.metadata

    def __repr__(self) -> str:
        return f"SyncTask({self.id!r})"

    @property
    def cancelled(self) -> bool:
        """Whether nobody needs the result any more."""
        return self._cancelled.is_set()

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Wait until the task is cancelled, and report whether it is."""
        return self._cancelled.wait(timeout)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self.cancelled:
            work.close()
            raise asyncio.CancelledError
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def notify(self, message: str, *, type: str = "info", data: Any = None) -> None:
        """Send the client a notification."""
        self._run(self._task.notify(message, type=type, data=data))

    def progress(self, part: float, message: str = "") -> None:
        """Tell how far the task is, from 0 to 1."""
        self._run(self._task.progress(part, message))

    def ask(self, message: Any, *, options: Sequence[str] | None = None, timeout: float = 30.0) -> Any:
        """Ask people, and return the answer. Raises InputExpiredError without one in time (seconds)."""
        return self._run(self._task.ask(message, options=options, timeout=timeout))

    def call_service(self, service: str, tool: str, params: Any = None, *, timeout: float = 60.0) -> Any:
        """Run a tool of a service and return its result."""
        return self._run(self._task.call_service(service, tool, params, timeout=timeout))

    def call_mcp(self, server: str, tool: str, parameters: Any = None, *, timeout: float = 60.0) -> Any:
        """Run a tool of an MCP server and return its result."""
        return self._run(self._task.call_mcp(server, tool, parameters, timeout=timeout))

    def child(self, data: Any, **options: Any) -> Any:
        """Give another agent a child task, and return its result. The options are those of AgentTask.child."""
        return self._run(self._task.child(data, **options))


class _Servable:
    """What connects to a gateway and works."""

    def _peer(self) -> Peer:
        raise NotImplementedError

    async def connect(
        self, url: str | Sequence[str], *, token: Token | None = None, backoff: Backoff | None = None
    ) -> Peer:
        """Connect to a gateway, or to one of several, and work until stop(). The result is an asynchronous context, too."""
        peer = self._peer()
        await peer.start(url, token, backoff)
        return peer

    async def serve(
        self, url: str | Sequence[str], *, token: Token | None = None, backoff: Backoff | None = None
    ) -> None:
        """Connect and work until this is cancelled. Raises the error with which the server refuses it."""
        async with await self.connect(url, token=token, backoff=backoff) as peer:
            await peer.done()

    def run(self, url: str | Sequence[str], *, token: Token | None = None, backoff: Backoff | None = None) -> None:
        """Connect and work until SIGINT or SIGTERM, without an event loop of the program. Then it leaves the swarm and returns."""
        with suppress(KeyboardInterrupt), _terminable():
            asyncio.run(self.serve(url, token=token, backoff=backoff))


@contextmanager
def _terminable() -> Generator[None, None, None]:
    """Have SIGTERM interrupt the program as SIGINT does, if this is its main thread: no other one may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


Handler = Callable[[AgentTask], Awaitable[Any]] | Callable[[SyncTask], Any]


class Agent(_Servable):
    """An agent of the swarm. Several agents of one name share its tasks."""

    def __init__(
        self,
        f: Handler,
        *,
        name: str | None = None,
        id: str | None = None,
        capabilities: Sequence[str] = (),
        description: str | None = None,
        concurrency: int = 8,
    ) -> None:
        self.function = f
        self.name = name or getattr(f, "__name__", "agent")
        self.id = id
        self.capabilities = list(capabilities)
        self.description = description if description is not None else inspect.getdoc(f)
        self.concurrency = concurrency

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"

    def _peer(self) -> Peer:
        return _AgentPeer(self)


@overload
def agent(f: Handler, /) -> Agent: ...
@overload
def agent(
    *,
    name: str | None = None,
    id: str | None = None,
    capabilities: Sequence[str] = (),
    description: str | None = None,
    concurrency: int = 8,
) -> Callable[[Handler], Agent]: ...
def agent(f: Handler | None = None, /, **options: Any) -> Any:
    """Make an agent of a function that takes a task and returns its result.

    An asynchronous function gets an AgentTask; another one runs in a thread and gets a SyncTask. What it raises fails
    the task. id: the same after a restart; default: a random one. concurrency: tasks at once; more of them wait here.
    """

    def make(g: Handler) -> Agent:
        return Agent(g, **options)

    return make(f) if f is not None else make


class _AgentPeer(Peer):
    role = "agent"

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent.concurrency)
        self._agent = agent
        self.id = agent.id or f"agent-{new_id()}"

    def description(self) -> Frame:
        a = self._agent
        about = {"id": self.id, "agentId": self.id, "name": a.name, "capabilities": a.capabilities, "status": "active"}
        return {**about, "tasks": [*self._work][:100], **given(description=a.description)}

    def work(self, f: Frame) -> None:
        content: Frame = f.get("content") or {}
        id = str(content.get("taskId"))
        if f.get("type") == "task.cancel":
            self.cancel(id)
        elif f.get("type") == "task.execute" and not self.has(id):
            self.begin(id, content.get("metadata") or {}, lambda: self._execute(AgentTask(self, id, content)))

    async def _execute(self, task: AgentTask) -> None:
        base = {"taskId": task.id, "agentId": self.id}
        try:
            result = plain(await self._call(task))
        except Exception as e:
            await self.deliver("task.error", {**base, **failure(e)})
        else:
            await self.deliver("agent.task.result", {**base, "result": result})
        for f in task._delivered:
            f()

    async def _call(self, task: AgentTask) -> Any:
        f = cast("Callable[[Any], Any]", self._agent.function)
        if inspect.iscoroutinefunction(f):
            return await f(task)
        waiting = SyncTask(task)
        try:
            return await called(f, waiting)
        except asyncio.CancelledError:
            waiting._cancelled.set()
            raise


class Service(_Servable):
    """A service with tools, which models, agents and people call. Replicas of one id share its calls."""

    def __init__(
        self,
        name: str,
        tools: Sequence[Tool[..., Any] | Callable[..., Any]] = (),
        *,
        id: str | None = None,
        capabilities: Sequence[str] = (),
        description: str | None = None,
        concurrency: int = 8,
    ) -> None:
        self.name = name
        self.id = id
        self.capabilities = list(capabilities)
        self.description = description
        self.concurrency = concurrency
        self.tools: dict[str, Tool[..., Any]] = {}
        for t in tools:
            self.add(t)

    def __repr__(self) -> str:
        return f"Service({self.name!r}, {[*self.tools]})"

    def add(self, f: Tool[..., Any] | Callable[..., Any]) -> Self:
        """Add a tool."""
        t = cast("Tool[..., Any]", f) if isinstance(f, Tool) else tool(f)
        self.tools[t.name] = t
        return self

    def _peer(self) -> Peer:
        return _ServicePeer(self)


class _ServicePeer(Peer):
    role = "service"

    def __init__(self, service: Service) -> None:
        super().__init__(service.concurrency)
        self._service = service
        self.id = service.id or ""

    def description(self) -> Frame:
        s = self._service
        own = {"id": self.id, "serviceId": self.id} if self.id else {}
        tools = [
            {
                "id": t.name,
                "name": t.name,
                "description": t.description,
                "inputSchema": t.input_schema,
                "idempotent": t.idempotent,
                **given(outputSchema=t.output_schema),
            }
            for t in s.tools.values()
        ]
        about = {"name": s.name, "capabilities": s.capabilities, "status": "active", "tools": tools}
        return {**own, **about, **given(description=s.description)}

    def greeted(self, f: Frame) -> None:
        content: Frame = f.get("content") or {}
        self.id = content.get("id") or self.id

    def lost(self) -> None:
        for id in [*self._work]:  # the server takes the loss of the connection for the end of its calls
            self.cancel(id)

    def work(self, f: Frame) -> None:
        id = str(f.get("id"))
        if f.get("type") != "service.task.execute" or self.has(id):
            return
        content: Frame = f.get("content") or {}
        self.begin(id, content.get("metadata") or {}, lambda: self._execute(id, content))

    async def _execute(self, id: str, content: Frame) -> None:
        base = {"taskId": id, "serviceId": self.id}

        async def notify(message: str, type: str, data: Any) -> None:
            about = {"type": type, "message": message, "timestamp": stamp(), **given(data=data)}
            await self.call("service.task.notification", {**base, "notification": about})

        wanted = content.get("toolId") or content.get("functionName") or ""
        try:
            t = self._service.tools.get(wanted)
            if t is None:
                raise error_of("TOOL_NOT_FOUND", f'the service has no tool "{wanted}"')
            call = ToolCall(id, content.get("metadata") or {}, notify)
            result = await t.run(content.get("params") or {}, call)
        except Exception as e:
            self.tell("service.error", {**base, **failure(e)})
            return
        self.tell("service.task.result", {**base, "result": result})
