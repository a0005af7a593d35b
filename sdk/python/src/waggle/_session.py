"""A conversation that outlives its connections."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, cast
from urllib.parse import quote

from ._errors import CallTimeoutError, ClosedError, WaggleError, error_of
from ._http import DEFAULT, Http, Timeout, given
from ._logs import Log, file_path
from ._questions import Question, Reply, question_of
from ._run import Run
from ._stream import Watching
from ._tools import Tool, ToolCall, text_of, tool
from ._watched import Watched

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .api import Accepted, SessionDetail, StateExportedData
    from .events import Budget, CanonicalEvent, File, Step

log = logging.getLogger("waggle")

MAX_WAITING = 1024
"""So many messages wait at most for a server that is away."""


@dataclass(frozen=True)
class FilePart:
    """A file of a message. Models see PNG, JPEG, GIF and WebP, and read text."""

    type: str
    """Its media type, such as image/png."""
    data: bytes
    """128 KiB for all files of a message, of which 64 KiB may be text."""
    name: str | None = None

    def body(self) -> dict[str, Any]:
        """Return it as the HTTP API takes it."""
        return given(media_type=self.type, name=self.name, data=base64.b64encode(self.data).decode())


class SendOptions(TypedDict, total=False):
    """How a message is answered."""

    mode: Literal["chat", "plan"] | None
    """chat, the default, answers at once with the help of tools; plan in steps."""
    agent: str | None
    """The agent of the swarm, by name, that answers instead of the model. It answers chats only."""
    confirm_plan: bool | None
    """Ask before a plan is executed."""
    on_busy: Literal["enqueue", "reject", "interrupt"] | None
    """While another run is active: wait (the default), be refused, or stop it."""
    budget: Budget | None
    """Limits of the run's resources."""
    max_concurrent: int | None
    """Steps at once."""
    timeout_seconds: int | None
    """Of one attempt at a step."""
    context: Sequence[Mapping[str, str]]
    """Facts before the message, each with description and value."""
    language: str | None
    """Of texts for people, such as en or zh-CN: of a new session."""
    files: Sequence[FilePart]
    """They come with the message."""
    tools: Sequence[Tool[..., Any] | Callable[..., Any]]
    """Functions of this program that the model may call in this run, as waggle.tool describes them. The program has to run until then."""
    id: str | None
    """Of the message: 1 to 200 printable characters. Sent again with it, also by another process, the message counts once."""
    timeout: float | None
    """Seconds until an undelivered message is given up. Default: never."""


_MEMBERS = ("mode", "agent", "confirm_plan", "budget", "max_concurrent", "timeout_seconds", "language")
"""Options that are members of the request."""


@dataclass(eq=False)
class _Outgoing:
    run: Run
    body: dict[str, Any]
    timeout: float | None


class Session(Watched):
    """A conversation. Its log is read once something here needs it; messages are sent in order, each until the server has it."""

    kind: ClassVar[str] = "session"
    last_event: ClassVar[str] = "session.closed"

    def __init__(self, http: Http, id: str, after: int, new_id: Callable[[], str], fresh: bool) -> None:
        super().__init__(http, id, after, new_id)
        self._fresh = fresh
        self._after = after
        self._runs: dict[str, Run] = {}  # by the id of the message
        self._by_run: dict[str, Run] = {}
        self._queue: deque[_Outgoing] = deque()
        self._offers: dict[str, dict[str, Tool[..., Any]]] = {}  # by the id of the message
        self._calls: set[asyncio.Task[None]] = set()
        self._sender: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many messages wait for the server."""
        return len(self._queue)

    def send(self, text: str, **options: Unpack[SendOptions]) -> Run:
        """Send a message. It counts once, and waits in line while the server is away. The options are those of SendOptions."""
        unknown = options.keys() - SendOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"send has no option {', '.join(sorted(unknown))}")
        tools = {t.name: t for t in map(as_tool, options.get("tools", ()))}
        run = self._begin(options.get("id"))
        run._own = frozenset(tools)
        if tools:
            self._offers[run.id] = tools
        body = {
            "id": run.id,
            "content": text,
            "create_session": True,
            "on_busy": options.get("on_busy") or "enqueue",
            "context": [*options.get("context", ())],
            "files": [f.body() for f in options.get("files", ())],
            "tools": [
                {"name": t.name, "description": t.description, "input_schema": t.input_schema} for t in tools.values()
            ],
            **given(**{name: options.get(name) for name in _MEMBERS}),
        }
        return self._enqueue(run, body, options.get("timeout"))

    def solve(
        self,
        steps: Sequence[Step],
        *,
        max_concurrent: int | None = None,
        timeout_seconds: int | None = None,
        id: str | None = None,
        timeout: float | None = None,
    ) -> Run:
        """Have steps executed without planning."""
        run = self._begin(id)
        body = {
            "id": run.id,
            "mode": "steps",
            "steps": list(steps),
            "create_session": True,
            **given(max_concurrent=max_concurrent, timeout_seconds=timeout_seconds),
        }
        return self._enqueue(run, body, timeout)

    def _begin(self, id: str | None) -> Run:
        id = id or self._new_id()

        async def stop(reason: str | None) -> None:
            unsent = [out for out in [*self._queue][1:] if out.run.id == id]
            for out in unsent:
                self._queue.remove(out)
                self._runs.pop(id, None)
                out.run._broken(error_of("RUN_CANCELLED", "the message was not sent", retryable=False))
            if not unsent:
                await run.accepted()
                body = given(run_id=run.run_id, reason=reason)
                await self._http.persist(lambda: self._http.json("POST", f"{self._path}/cancel", body))

        known = self._runs.get(id)
        run = self._runs[id] = known or Run(id, stop, self._reply)
        return run

    def _enqueue(self, run: Run, body: dict[str, Any], timeout: float | None) -> Run:
        if self._closed or len(self._queue) >= MAX_WAITING:
            del self._runs[run.id]
            full = error_of("QUEUE_FULL", f"{MAX_WAITING} messages wait for the server", retryable=True)
            run._broken(ClosedError("the program closed the session") if self._closed else full)
            return run
        self._queue.append(_Outgoing(run, body, timeout))
        if self._sender is None:
            self._sender = asyncio.get_running_loop().create_task(self._send_all(), name=f"waggle sender {self.id}")
        return run

    async def _send_all(self) -> None:
        try:
            while self._queue:
                await self._send_one(self._queue[0])
                self._queue.popleft()
        finally:
            self._sender = None

    async def _send_one(self, out: _Outgoing) -> None:
        path = f"{self._path}/messages"
        try:
            accepted: Accepted = await self._http.persist(lambda: self._http.json("POST", path, out.body), out.timeout)
        except WaggleError as error:
            if isinstance(error, CallTimeoutError):
                self._change(error=error)
            self._runs.pop(out.run.id, None)
            out.run._broken(error)
            return
        self._fresh = False
        out.run.run_id = accepted.get("run_id")
        out.run._taken()
        await self._join(out.run, accepted)
        self._read()

    async def _join(self, run: Run, accepted: Accepted) -> None:
        """Follow a run. The reader may have passed its events: then its message was sent before, here or by another process."""
        run_id = accepted.get("run_id", "")
        if self._runs.get(run.id) is not run or run_id in self._by_run:
            return  # the reader has met its message since then
        try:
            while self.seq >= accepted.get("seq", 0):
                at = self.seq
                events = [e async for e in Log(self._http, "session", self.id).events(run=run_id)]
                if self.seq != at:
                    continue  # the reader has passed events since then
                self._by_run[run_id] = run
                for e in events:
                    if e["sequence"] <= at:
                        self._hand(run, e)
                return
        except WaggleError as error:
            self._runs.pop(run.id, None)
            run._broken(error)
            return
        self._by_run[run_id] = run

    async def events(
        self,
        *,
        after: int = 0,
        watching: Watching | None = None,
        on_expired: Callable[[int], None] | None = None,
    ) -> AsyncGenerator[CanonicalEvent, None]:
        """Read the log apart from the other readers, up to the end of the session. A first message that is under way is awaited."""
        if self._fresh and self._queue:
            await self._queue[-1].run.accepted()
        events = super().events(after=after, watching=watching, on_expired=on_expired)
        async with aclosing(events):
            async for e in events:
                yield e

    async def answer(self, question: Question | str, reply: Reply | bool, *, timeout: Timeout = DEFAULT) -> None:
        """Answer a question. Raises InputAnsweredError if another answer counts."""
        asked = self._question(question)
        await self._reply(asked, Reply(reply) if isinstance(reply, bool) else reply, timeout)

    async def cancel(self, *, timeout: Timeout = DEFAULT) -> None:
        """Stop the active run; the session stays usable."""
        await self._http.call("POST", f"{self._path}/cancel", timeout=timeout)

    async def cancel_step(self, step: str, reason: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Stop one step of the active run."""
        await self._act(f"/runs/last/steps/{quote(step, safe='')}/cancel", timeout, reason=reason)

    async def restart_step(self, step: str, reason: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Execute a step again that failed or was cancelled, also after the end of the run."""
        await self._act(f"/runs/last/steps/{quote(step, safe='')}/restart", timeout, reason=reason)

    async def cancel_plan(self, reason: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Give up a plan whose steps have not begun."""
        await self._act("/plan/cancel", timeout, reason=reason)

    async def replan(self, question: str | None = None, *, timeout: Timeout = DEFAULT) -> None:
        """Have the plan made again, for another question or the same."""
        await self._act("/replan", timeout, question=question)

    async def _act(self, rest: str, timeout: Timeout, **members: Any) -> None:
        """Return once the log has the deed. It is done once, however often the request is sent."""
        await self._http.call("POST", self._path + rest, {**given(**members), "id": self._new_id()}, timeout=timeout)

    async def file(self, file: File, *, timeout: Timeout = DEFAULT) -> bytes:
        """Return a file of a message, as the data of its event names it in files."""
        return await self._http.read(file_path(self.id, file), timeout)

    async def show(self, *, timeout: Timeout = DEFAULT) -> SessionDetail:
        """Return the session and its runs."""
        return await self._http.call("GET", self._path, timeout=timeout)

    async def export(self, *, timeout: Timeout = DEFAULT) -> StateExportedData:
        """Return the signed state of the session, for client.sessions.import_."""
        return await self._http.call("GET", f"{self._path}/state", timeout=timeout)

    async def close_for_good(self, *, timeout: Timeout = DEFAULT) -> None:
        """End the session: it takes no further message, and its log stays."""
        await self._http.call("POST", f"{self._path}/close", timeout=timeout)

    async def delete(self, *, timeout: Timeout = DEFAULT) -> bool:
        """Remove the session with all its events for good. Reports whether that is done already."""
        response = await self._http.persist(lambda: self._http.request("DELETE", self._path), timeout)
        return response.status_code == 204

    async def aclose(self) -> None:
        """Stop reading and sending. What happens in the session continues."""
        sender = self._sender
        self._queue.clear()
        await super().aclose()
        if sender is not None and sender is not asyncio.current_task():
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    def _read(self) -> None:
        if not self._fresh:  # before the first message the log has nothing
            super()._read()

    def _take(self, e: CanonicalEvent) -> None:
        if e["type"] == "message.refused":
            refused = self._runs.pop(e["data"]["message_id"], None)
            if refused:
                refused._broken(error_of(e["data"]["code"], e["data"]["message"], detail=e["data"]))
            return
        data = cast("dict[str, Any]", e["data"])
        run_id = str(data.get("run_id", ""))
        begun = self._runs.get(data["message_id"]) if e["type"] == "message.received" else None
        if begun:
            begun.run_id = run_id
            self._by_run[run_id] = begun
        run = self._by_run.get(run_id)
        if run and e["type"] == "input.requested":
            self._called(run, question_of(cast("dict[str, Any]", e), (), self._reply))
        if run:
            self._hand(run, e)

    def _hand(self, run: Run, e: CanonicalEvent) -> None:
        """Hand an event to its run."""
        if run._take(e):
            self._offers.pop(run.id, None)
            self._by_run.pop(run.run_id or "", None)
            self._runs.pop(run.id, None)

    def _offer(self, run: Run | None, asked: Question) -> Tool[..., Any] | None:
        """Return the tool of the program that a question calls."""
        if run is None or asked.scope != "client_tool":
            return None
        return self._offers.get(run.id, {}).get(asked.data.get("tool", ""))

    def _is_own(self, asked: Question) -> bool:
        """The calls of the program's own tools are no decisions for people."""
        return self._offer(self._by_run.get(asked.run or ""), asked) is not None

    def _called(self, run: Run, asked: Question) -> None:
        """Execute a call of a tool of the program itself. The server takes the first result."""
        t = self._offer(run, asked)
        if t is None:
            return

        async def answer() -> None:
            try:
                found = await t.run(
                    asked.data.get("arguments") or {}, ToolCall(asked.data.get("call_id", asked.id), {})
                )
                reply = Reply(True, result=text_of(found))
            except Exception as error:
                log.info("tool %s failed: %s", t.name, error)
                reply = Reply(False, str(error) or type(error).__name__)
            try:
                await self._reply(asked, reply, None)
            except WaggleError as error:
                log.warning("the result of tool %s was refused: %s", t.name, error)

        call = asyncio.get_running_loop().create_task(answer(), name=f"waggle tool {t.name}")
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    def _end(self, error: WaggleError) -> None:
        for run in self._runs.values():
            run._broken(error)
        self._runs.clear()
        self._by_run.clear()
        self._offers.clear()
        for call in self._calls:
            call.cancel()


def as_tool(f: Tool[..., Any] | Callable[..., Any]) -> Tool[..., Any]:
    """Return a function as a tool."""
    return cast("Tool[..., Any]", f) if isinstance(f, Tool) else tool(f)
