"""A Waggle installation as a program sees it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

from ._backoff import Backoff
from ._errors import ClosedError
from ._http import DEFAULT, Http, Timeout, Token, given, query
from ._live import TopicMessage, of_kind, of_questions, topics, watch
from ._logs import Kind, Log
from ._questions import Reply
from ._session import Session
from ._tasks import Task, Tasks
from ._teams import Team, Teams

if TYPE_CHECKING:
    from types import TracebackType

    import httpx
    from typing_extensions import Self

    from ._watched import Watched
    from .api import (
        CallView,
        Me,
        Participant,
        QuestionOutcome,
        Quota,
        SessionSummary,
        StateExportedData,
        Status,
        ToolDetail,
        ToolSummary,
    )
    from .api import Question as Asked
    from .events import CanonicalEvent, EventType


def new_id() -> str:
    """Return a random id."""
    return uuid.uuid4().hex


class Waggle:
    """A Waggle installation. It makes no connection before one is needed.

    url: the address of a gateway, or of several that serve the same logs.
    token: an API key or a JWT; or a function, also an async one, that returns one. It is called again when the server no
    longer accepts the last token.
    timeout: seconds that a call may take, with all repeats, unless it has a time-out of its own; None: until the server answers.
    http_client: for proxies, certificates and the like; the program closes it.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: Token | None = None,
        timeout: float | None = 60.0,
        backoff: Backoff | None = None,
        http_client: httpx.AsyncClient | None = None,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        urls = [url] if isinstance(url, str) else list(url)
        self._http = Http(urls, token, backoff=backoff or Backoff(), timeout=timeout, client=http_client)
        self._new_id = new_id
        self._open: set[Watched] = set()
        self._closed = False
        self.sessions = Sessions(self)
        """The sessions that the principal may see."""
        self.teams = Teams(self)
        """The teams of the tenant."""
        self.tasks = Tasks(self)
        """The tasks of the swarm."""
        self.questions = Inbox(self)
        """The questions of all sessions, teams and tasks."""
        self.swarm = Swarm(self)
        """Who is connected to the swarm, and the tools."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._http.base!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End all connections. What happens on the server continues."""
        self._closed = True
        for item in [*self._open]:
            await item.aclose()
        self._open.clear()
        await self._http.aclose()

    def session(self, id: str | None = None, *, after: int = 0, fresh: bool | None = None) -> Session:
        """Return a session: a new one without an id, which its first message makes.

        after: only the later events are read, otherwise the whole log. fresh: the id is new, and the log is read once the
        session has its first message.
        """
        session = Session(
            self._http, id or self._new_id(), after, self._new_id, (id is None) if fresh is None else fresh
        )
        self._keep(session)
        return session

    def task(self, id: str, *, after: int = 0) -> Task:
        """Return a task that exists. after: only the later events are read."""
        task = Task(self._http, id, after, self._new_id)
        self._keep(task)
        return task

    def team(self, id: str, *, after: int = 0) -> Team:
        """Return a team that exists. after: only the later events are read."""
        team = Team(self._http, id, after, self._new_id)
        self._keep(team)
        return team

    def log(self, kind: Kind, id: str) -> Log:
        """Return a log in pages, and the files that members made."""
        return Log(self._http, kind, id)

    def _keep(self, item: Watched) -> None:
        if self._closed:
            raise ClosedError("the program closed the client")
        self._open.add(item)
        item._leave = self._open.discard

    async def live(
        self, *, types: Sequence[EventType] = (), on_gap: Callable[[int], None] | None = None
    ) -> AsyncGenerator[CanonicalEvent, None]:
        """Yield the events of all logs of the tenant, as they happen: no history, and nothing of the time without a connection.

        on_gap is told how many announcements were lost, because the reader or the gateway was too slow.
        """
        async with aclosing(topics(self._http, {}, announcements=True, types=types, on_gap=on_gap)) as messages:
            async for m in messages:
                if m.event:
                    yield m.event

    def topics(
        self,
        logs: Mapping[str, int],
        *,
        announcements: bool = False,
        types: Sequence[EventType] = (),
        on_gap: Callable[[int], None] | None = None,
    ) -> AsyncGenerator[TopicMessage, None]:
        """Read several logs and the announcements on one connection: at most eight topics.

        logs: as KIND/ID, each with the sequence of the last event that is known. Of each log each event comes once and in
        order; of the announcements nothing comes that happens without a connection. types filters the announcements.
        """
        return topics(self._http, logs, announcements=announcements, types=types, on_gap=on_gap)

    async def call_tool(
        self,
        provider: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        kind: Literal["mcp", "service"] = "service",
        timeout_ms: int | None = None,
        id: str | None = None,
        timeout: Timeout = DEFAULT,
    ) -> CallView:
        """Call a tool of a provider, outside of sessions and tasks, and wait for the outcome. A repeat with the same id joins the call.

        A status of "unknown" says that the effect of the tool is not known.
        """
        path = f"/api/v1/tools/{quote(provider, safe='')}/{quote(tool, safe='')}/call?wait=20"
        body = given(kind=kind, id=id or self._new_id(), arguments=arguments, timeout_ms=timeout_ms)
        while True:
            call: CallView = await self._http.call("POST", path, body, timeout=timeout)
            if call["status"] not in ("queued", "running"):
                return call

    async def status(self, *, timeout: Timeout = DEFAULT) -> Status:
        """Return the roles, models and tool servers of the installation."""
        return await self._http.call("GET", "/api/v1/status", timeout=timeout)

    async def me(self, *, timeout: Timeout = DEFAULT) -> Me:
        """Return who the server takes the program for, and what it may do."""
        return await self._http.call("GET", "/api/v1/me", timeout=timeout)

    async def quotas(self, *, timeout: Timeout = DEFAULT) -> list[Quota]:
        """Return what limits the principal and its tenant, and how much of it is used."""
        return (await self._http.call("GET", "/api/v1/quotas", timeout=timeout))["quotas"]

    async def call(self, method: str, path: str, body: Any = None, *, timeout: Timeout = DEFAULT) -> Any:
        """Make a request to the HTTP API, for what has no method here. It is repeated only if that is harmless: GET, PUT and DELETE."""
        if method.upper() in ("GET", "HEAD", "PUT", "DELETE"):
            return await self._http.call(method, path, body, timeout=timeout)
        return await self._http.once(method, path, body, timeout=timeout)

    async def pages(self, path: str, member: str, /, **filters: Any) -> AsyncGenerator[Any, None]:
        """Yield the entries of a list over all its pages. member: that of a page with its entries."""
        before = filters.pop("before", None)
        while True:
            page = cast("dict[str, Any]", await self._http.call("GET", path + query({**filters, "before": before})))
            entries: list[Any] = page.get(member) or []
            for entry in entries:
                yield entry
            before = page.get("next") if page.get("more") else None
            if not before:
                return


class Sessions:
    """The sessions that the principal may see."""

    def __init__(self, client: Waggle) -> None:
        self._client = client

    def list(self, **filters: Any) -> AsyncGenerator[SessionSummary, None]:
        """Yield sessions, the newest change first. Filters: status, state, principal, dialect, since, until, q, limit, before."""
        return self._client.pages("/api/v1/sessions", "sessions", **filters)

    def watch(self, count: int = 50, **filters: Any) -> AsyncGenerator[list[SessionSummary], None]:
        """Yield the newest sessions, now and whenever sessions change. The filters are those of list."""
        return watch(self._client._http, self.list, of_kind("session"), count, **filters)

    async def create(
        self,
        id: str | None = None,
        *,
        confirm_plan: bool | None = None,
        on_busy: Literal["enqueue", "reject", "interrupt"] | None = None,
        language: str | None = None,
        timeout: Timeout = DEFAULT,
    ) -> Session:
        """Create a session at once, with preferences for all its messages. A repeat with the same id returns the same session.

        Raises SessionExistsError if the id belongs to another session. Default: a new id.
        """
        body = given(
            session_id=id or self._client._new_id(), confirm_plan=confirm_plan, on_busy=on_busy, language=language
        )
        reply = await self._client._http.call("POST", "/api/v1/sessions", body, timeout=timeout)
        return self._client.session(reply["session_id"])

    async def import_(self, state: StateExportedData, *, timeout: Timeout = DEFAULT) -> Session:
        """Restore an exported session, here or on another installation with the same key."""
        found = cast("dict[str, Any]", state)
        body = found.get("signed") or found.get("signed_state") or state
        reply = await self._client._http.call("POST", "/api/v1/sessions/import", body, timeout=timeout)
        return self._client.session(reply["session"])


class Swarm:
    """Who is connected to the swarm, each list over all its pages, and the tools of all providers."""

    def __init__(self, client: Waggle) -> None:
        self._client = client

    def agents(self, **filters: Any) -> AsyncGenerator[Participant, None]:
        """Yield agents. Filters: status, capability, name, prefix, type, limit, before."""
        return self._client.pages("/api/v1/agents", "agents", **filters)

    def services(self, **filters: Any) -> AsyncGenerator[Participant, None]:
        """Yield services. They have the filters of agents."""
        return self._client.pages("/api/v1/services", "services", **filters)

    def clients(self, **filters: Any) -> AsyncGenerator[Participant, None]:
        """Yield clients. They have the filters of agents."""
        return self._client.pages("/api/v1/clients", "clients", **filters)

    def servers(self, **filters: Any) -> AsyncGenerator[Participant, None]:
        """Yield MCP servers. They have the filters of agents."""
        return self._client.pages("/api/v1/mcp", "servers", **filters)

    def tools(self, **filters: Any) -> AsyncGenerator[ToolSummary, None]:
        """Yield the tools of providers. Filters: kind, provider, limit, before."""
        return self._client.pages("/api/v1/tools", "tools", **filters)

    async def tool(
        self, provider: str, tool: str, *, kind: Literal["mcp", "service"] = "service", timeout: Timeout = DEFAULT
    ) -> ToolDetail:
        """Return a tool with its schemas."""
        path = f"/api/v1/tools/{quote(provider, safe='')}/{quote(tool, safe='')}?kind={kind}"
        return await self._client._http.call("GET", path, timeout=timeout)


class Inbox:
    """The questions of all logs that the principal may see."""

    def __init__(self, client: Waggle) -> None:
        self._client = client

    def list(self, **filters: Any) -> AsyncGenerator[Asked, None]:
        """Yield questions, the newest first. Filters: scope, state (default: open), kind, log, limit, before."""
        return self._client.pages("/api/v1/questions", "questions", **filters)

    def watch(self, count: int = 50, **filters: Any) -> AsyncGenerator[list[Asked], None]:
        """Yield the newest open questions, now and whenever they change. The filters are those of list."""
        return watch(self._client._http, self.list, of_questions, count, **filters)

    async def answer(
        self, question: Asked | str, reply: Reply | bool, *, timeout: Timeout = DEFAULT
    ) -> QuestionOutcome:
        """Answer a question, by its id in the list. It counts once. Raises InputAnsweredError if another answer counts."""
        id, digest = (question, None) if isinstance(question, str) else (question["id"], question.get("digest"))
        said = Reply(reply) if isinstance(reply, bool) else reply
        body = {**said.body(), "id": self._client._new_id()}
        if digest:
            body["digest"] = digest
        path = f"/api/v1/questions/{quote(id, safe='')}/answer"
        return await self._client._http.call("POST", path, body, timeout=timeout)
