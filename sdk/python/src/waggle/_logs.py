"""Logs in pages, and the files in them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

from ._http import DEFAULT, Http, Timeout, query
from ._questions import unwrap

if TYPE_CHECKING:
    from .api import LogHead, LogPage
    from .events import Artifact, CanonicalEvent, EventType

Kind = Literal["session", "member", "team", "task", "call"]


class Log:
    """A log in pages. To read what will come, use events of a session, a team or a task."""

    def __init__(self, http: Http, kind: Kind, id: str) -> None:
        self._http = http
        self.kind: Kind = kind
        self.id = id

    def __repr__(self) -> str:
        return f"Log({self.kind!r}, {self.id!r})"

    @property
    def _path(self) -> str:
        return f"/api/v1/logs/{self.kind}/{quote(self.id, safe='')}"

    async def head(self, *, timeout: Timeout = DEFAULT) -> LogHead:
        """Return where the log begins and ends."""
        return await self._http.call("GET", f"{self._path}/head", timeout=timeout)

    async def page(
        self,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
        types: Sequence[EventType] = (),
        run: str | None = None,
        timeout: Timeout = DEFAULT,
    ) -> LogPage:
        """Return one page, the oldest event first. With "more" the next one is after, or before, its "next". It may be empty."""
        wanted = query({"after": after, "before": before, "limit": limit, "types": list(types) or None, "run": run})
        return await self._http.call("GET", f"{self._path}/events{wanted}", timeout=timeout)

    async def events(
        self,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
        types: Sequence[EventType] = (),
        run: str | None = None,
    ) -> AsyncGenerator[CanonicalEvent, None]:
        """Yield the events over all pages up to the present end; with before, back to the beginning, the newest first.

        limit: events of a page, at most 1,000. types: of these types alone, those of members in the log of a team, too.
        """
        while True:
            page = await self.page(after=after, before=before, limit=limit, types=types, run=run)
            events = cast("list[CanonicalEvent]", page["events"])
            for e in events if before is None else reversed(events):
                yield e
            if not page["more"]:
                return
            at = int(page.get("next", "0"))
            after, before = (at, None) if before is None else (None, at)

    async def artifacts(self) -> AsyncGenerator[Artifact, None]:
        """Yield the files that members of a team made, each in its newest version, the newest first."""
        seen: set[str] = set()
        end = (await self.head())["last"] + 1
        async with aclosing(self.events(before=end, types=["artifact.persisted", "artifact.updated"])) as events:
            async for e in events:
                found = cast("Artifact", unwrap(e)[0]["data"])
                if found["artifact_id"] not in seen:
                    seen.add(found["artifact_id"])
                    yield found

    async def artifact(self, artifact: Artifact | str, *, timeout: Timeout = DEFAULT) -> bytes:
        """Return a file in the version of an event or of artifacts(); by its id alone the newest. Raises NotFoundError once it expired."""
        name, of = (artifact, None) if isinstance(artifact, str) else (artifact["artifact_id"], artifact.get("object"))
        log = of["log"].replace(".", "/", 1) if of else f"{self.kind}/{quote(self.id, safe='')}"
        version = query({"version": of["digest"] if of else None})
        path = f"/api/v1/artifacts/{log}/{quote(name, safe='')}{version}"
        return await self._http.read(path, timeout)

    async def export(self, *, timeout: Timeout = DEFAULT) -> bytes:
        """Return the whole log as a file: one event a line."""
        return await self._http.read(f"{self._path}/export", timeout)


def file_path(session: str, file: Any) -> str:
    """Return where a file of a message is: file is what the data of an event names in files."""
    return f"/api/v1/sessions/{quote(session, safe='')}/files/{file['object']['digest']}"
