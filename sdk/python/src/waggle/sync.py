"""The same client for programs without asyncio: scripts, notebooks, threads.

Each client has an event loop in a thread of its own, so that it works where another loop is running, as in notebooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _client
from ._backoff import Backoff
from ._http import DEFAULT, Timeout, Token
from ._portal import Portal
from ._questions import Reply
from ._sync import Log, Question, Run, Session, Task, Team

if TYPE_CHECKING:
    from types import TracebackType

    import httpx
    from typing_extensions import Self

    from ._live import TopicMessage
    from ._logs import Kind
    from .api import (
        CallView,
        Me,
        Participant,
        QuestionOutcome,
        Quota,
        SessionSummary,
        StateExportedData,
        Status,
        TaskSummary,
        TeamView,
        ToolDetail,
        ToolSummary,
    )
    from .api import Question as Asked
    from .events import CanonicalEvent, EventType

__all__ = [
    "Inbox",
    "Log",
    "Question",
    "Run",
    "Session",
    "Sessions",
    "Swarm",
    "Task",
    "Tasks",
    "Team",
    "Teams",
    "Waggle",
]


class Waggle:
    """A Waggle installation. It has the arguments of the asynchronous one."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: Token | None = None,
        timeout: float | None = 60.0,
        backoff: Backoff | None = None,
        http_client: httpx.AsyncClient | None = None,
        new_id: Callable[[], str] = _client.new_id,
    ) -> None:
        self._client = _client.Waggle(
            url, token=token, timeout=timeout, backoff=backoff, http_client=http_client, new_id=new_id
        )
        self._portal = Portal()
        self.sessions = Sessions(self._portal, self._client)
        """The sessions that the principal may see."""
        self.tasks = Tasks(self._portal, self._client)
        """The tasks of the swarm."""
        self.teams = Teams(self._portal, self._client)
        """The teams of the tenant."""
        self.questions = Inbox(self._portal, self._client)
        """The questions of all sessions, teams and tasks."""
        self.swarm = Swarm(self._portal, self._client)
        """Who is connected to the swarm, and the tools."""

    def __repr__(self) -> str:
        return repr(self._client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all connections. What happens on the server continues."""
        if not self._portal.closed:
            self._portal.run(self._client.aclose())
            self._portal.close()

    def session(self, id: str | None = None, *, after: int = 0, fresh: bool | None = None) -> Session:
        """Return a session: a new one without an id, which its first message makes."""
        return Session(self._portal, self._client.session(id, after=after, fresh=fresh))

    def task(self, id: str, *, after: int = 0) -> Task:
        """Return a task that exists. after: only the later events are read."""
        return Task(self._portal, self._portal.do(lambda: self._client.task(id, after=after)))

    def team(self, id: str, *, after: int = 0) -> Team:
        """Return a team that exists. after: only the later events are read."""
        return Team(self._portal, self._portal.do(lambda: self._client.team(id, after=after)))

    def log(self, kind: Kind, id: str) -> Log:
        """Return a log in pages, and the files that members made."""
        return Log(self._portal, self._client.log(kind, id))

    def live(self, *, types: Sequence[EventType] = ()) -> Iterator[CanonicalEvent]:
        """Yield the events of all logs of the tenant, as they happen."""
        return self._portal.iterate(self._client.live(types=types))

    def topics(
        self, logs: Mapping[str, int], *, announcements: bool = False, types: Sequence[EventType] = ()
    ) -> Iterator[TopicMessage]:
        """Read several logs, as KIND/ID, each after a position, and the announcements on one connection."""
        return self._portal.iterate(self._client.topics(logs, announcements=announcements, types=types))

    def call_tool(
        self, provider: str, tool: str, arguments: Mapping[str, Any] | None = None, **options: Any
    ) -> CallView:
        """Call a tool of a provider and wait for the outcome. Options: kind (service, mcp), timeout_ms, id, timeout."""
        return self._portal.run(self._client.call_tool(provider, tool, arguments, **options))

    def status(self, *, timeout: Timeout = DEFAULT) -> Status:
        """Return the roles, models and tool servers of the installation."""
        return self._portal.run(self._client.status(timeout=timeout))

    def me(self, *, timeout: Timeout = DEFAULT) -> Me:
        """Return who the server takes the program for, and what it may do."""
        return self._portal.run(self._client.me(timeout=timeout))

    def quotas(self, *, timeout: Timeout = DEFAULT) -> list[Quota]:
        """Return what limits the principal and its tenant, and how much of it is used."""
        return self._portal.run(self._client.quotas(timeout=timeout))

    def call(self, method: str, path: str, body: Any = None, *, timeout: Timeout = DEFAULT) -> Any:
        """Make a request to the HTTP API, for what has no method here."""
        return self._portal.run(self._client.call(method, path, body, timeout=timeout))


class _Part:
    """A part of the client."""

    def __init__(self, portal: Portal, client: _client.Waggle) -> None:
        self._portal = portal
        self._client = client


class Sessions(_Part):
    """The sessions that the principal may see."""

    def list(self, **filters: Any) -> Iterator[SessionSummary]:
        """Yield sessions, the newest change first. Filters: status, state, principal, dialect, since, until, q, limit, before."""
        return self._portal.iterate(self._client.sessions.list(**filters))

    def watch(self, count: int = 50, **filters: Any) -> Iterator[list[SessionSummary]]:
        """Yield the newest sessions, now and whenever sessions change."""
        return self._portal.iterate(self._client.sessions.watch(count, **filters))

    def create(self, id: str | None = None, **options: Any) -> Session:
        """Create a session at once. The options are those of the asynchronous client: confirm_plan, on_busy, language, timeout."""
        return Session(self._portal, self._portal.run(self._client.sessions.create(id, **options)))

    def import_(self, state: StateExportedData, *, timeout: Timeout = DEFAULT) -> Session:
        """Restore an exported session, here or on another installation with the same key."""
        return Session(self._portal, self._portal.run(self._client.sessions.import_(state, timeout=timeout)))


class Tasks(_Part):
    """The tasks of the swarm."""

    def create(self, data: Any, **options: Any) -> Task:
        """Give an agent work. The options are those of the asynchronous client: agent, agent_id, capabilities, id and so on."""
        return Task(self._portal, self._portal.run(self._client.tasks.create(data, **options)))

    def list(self, **filters: Any) -> Iterator[TaskSummary]:
        """Yield tasks, the newest change first. Filters: limit, before."""
        return self._portal.iterate(self._client.tasks.list(**filters))

    def watch(self, count: int = 50) -> Iterator[list[TaskSummary]]:
        """Yield the newest tasks, now and whenever tasks change."""
        return self._portal.iterate(self._client.tasks.watch(count))


class Teams(_Part):
    """The teams of the tenant."""

    def create(self, definition: Mapping[str, Any] | str, *, id: str | None = None, timeout: Timeout = DEFAULT) -> Team:
        """Make a team of a definition (TeamDefinition), or of the name of one in the configuration. It is made once for an id."""
        return Team(self._portal, self._portal.run(self._client.teams.create(definition, id=id, timeout=timeout)))

    def list(self, **filters: Any) -> Iterator[TeamView]:
        """Yield teams, the newest first. Filters: limit, before."""
        return self._portal.iterate(self._client.teams.list(**filters))

    def watch(self, count: int = 50) -> Iterator[list[TeamView]]:
        """Yield the newest teams, now and whenever teams change."""
        return self._portal.iterate(self._client.teams.watch(count))


class Inbox(_Part):
    """The questions of all logs that the principal may see."""

    def list(self, **filters: Any) -> Iterator[Asked]:
        """Yield questions, the newest first. Filters: scope, state (default: open), kind, log, limit, before."""
        return self._portal.iterate(self._client.questions.list(**filters))

    def watch(self, count: int = 50, **filters: Any) -> Iterator[list[Asked]]:
        """Yield the newest open questions, now and whenever they change."""
        return self._portal.iterate(self._client.questions.watch(count, **filters))

    def answer(self, question: Asked | str, reply: Reply | bool, *, timeout: Timeout = DEFAULT) -> QuestionOutcome:
        """Answer a question, by its id in the list. Raises InputAnsweredError if another answer counts."""
        return self._portal.run(self._client.questions.answer(question, reply, timeout=timeout))


class Swarm(_Part):
    """Who is connected to the swarm, each list over all its pages, and the tools of all providers."""

    def agents(self, **filters: Any) -> Iterator[Participant]:
        """Yield agents. Filters: status, capability, name, prefix, type, limit, before."""
        return self._portal.iterate(self._client.swarm.agents(**filters))

    def services(self, **filters: Any) -> Iterator[Participant]:
        """Yield services. They have the filters of agents."""
        return self._portal.iterate(self._client.swarm.services(**filters))

    def clients(self, **filters: Any) -> Iterator[Participant]:
        """Yield clients. They have the filters of agents."""
        return self._portal.iterate(self._client.swarm.clients(**filters))

    def servers(self, **filters: Any) -> Iterator[Participant]:
        """Yield MCP servers. They have the filters of agents."""
        return self._portal.iterate(self._client.swarm.servers(**filters))

    def tools(self, **filters: Any) -> Iterator[ToolSummary]:
        """Yield the tools of providers. Filters: kind, provider, limit, before."""
        return self._portal.iterate(self._client.swarm.tools(**filters))

    def tool(self, provider: str, tool: str, **options: Any) -> ToolDetail:
        """Return a tool with its schemas. Options: kind (service, mcp), timeout."""
        return self._portal.run(self._client.swarm.tool(provider, tool, **options))
