"""A Waggle installation as a program sees it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from ._backoff import Backoff
from ._errors import ClosedError
from ._http import DEFAULT, Http, Timeout, Token, query
from ._questions import Reply
from ._session import Session

if TYPE_CHECKING:
    from types import TracebackType

    import httpx
    from typing_extensions import Self

    from ._watched import Watched
    from .api import Me, QuestionOutcome, Quota, SessionSummary, StateExportedData, Status
    from .api import Question as Asked


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
        self.questions = Inbox(self)
        """The questions of all sessions, teams and tasks."""

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

    def _keep(self, item: Watched) -> None:
        if self._closed:
            raise ClosedError("the program closed the client")
        self._open.add(item)
        item._leave = self._open.discard

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

    async def import_(self, state: StateExportedData, *, timeout: Timeout = DEFAULT) -> Session:
        """Restore an exported session, here or on another installation with the same key."""
        found = cast("dict[str, Any]", state)
        body = found.get("signed") or found.get("signed_state") or state
        reply = await self._client._http.call("POST", "/api/v1/sessions/import", body, timeout=timeout)
        return self._client.session(reply["session"])


class Inbox:
    """The questions of all logs that the principal may see."""

    def __init__(self, client: Waggle) -> None:
        self._client = client

    def list(self, **filters: Any) -> AsyncGenerator[Asked, None]:
        """Yield questions, the newest first. Filters: scope, state (default: open), kind, log, limit, before."""
        return self._client.pages("/api/v1/questions", "questions", **filters)

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
