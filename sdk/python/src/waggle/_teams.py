"""Teams of agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ._http import DEFAULT, Timeout, given
from ._live import of_kind, watch
from ._questions import Question, Reply
from ._watched import Watched

if TYPE_CHECKING:
    from ._client import Waggle
    from .api import TeamView


class Team(Watched):
    """A team of agents: one log of all that its members do."""

    kind: ClassVar[str] = "team"
    last_event: ClassVar[str] = "team.closed"

    async def show(self, *, timeout: Timeout = DEFAULT) -> TeamView:
        """Return the team as it is now."""
        return await self._http.call("GET", self._path, timeout=timeout)

    async def message(
        self,
        content: str,
        *,
        target: str | None = None,
        image_urls: Sequence[str] = (),
        context_files: Sequence[str] = (),
        id: str | None = None,
        timeout: Timeout = DEFAULT,
    ) -> str:
        """Send a message and return its id. target: a name, a path of names or an id; default: the coordinator.

        It counts once, however often the request is sent. id: sent again with it, the message counts once.
        """
        files, images = list(context_files) or None, list(image_urls) or None
        body = {
            "id": id or self._new_id(),
            "content": content,
            **given(target=target, context_files=files, image_urls=images),
        }
        reply = await self._http.call("POST", f"{self._path}/messages", body, timeout=timeout)
        return reply.get("message_id") or reply["command_id"]

    async def stop(self, *, target: str | None = None, reason: str | None = None, timeout: Timeout = DEFAULT) -> None:
        """Stop the runs of the members, or of one of them."""
        await self._http.call(
            "POST", f"{self._path}/stop", given(target=target, reason=reason) or None, timeout=timeout
        )

    async def pause(self, *, timeout: Timeout = DEFAULT) -> None:
        """Hold messages to the members back."""
        await self._http.call("POST", f"{self._path}/pause", timeout=timeout)

    async def resume(self, *, timeout: Timeout = DEFAULT) -> None:
        """Release the messages that were held back."""
        await self._http.call("POST", f"{self._path}/resume", timeout=timeout)

    async def delete(self, *, timeout: Timeout = DEFAULT) -> None:
        """Stop the team and close it for good."""
        await self._http.call("DELETE", self._path, timeout=timeout)

    async def answer(self, question: Question | str, reply: Reply | bool, *, timeout: Timeout = DEFAULT) -> None:
        """Answer a question of a member. Raises InputAnsweredError if another answer counts."""
        asked = self._question(question)
        await self._reply(asked, Reply(reply) if isinstance(reply, bool) else reply, timeout)


class Teams:
    """The teams of the tenant."""

    def __init__(self, client: Waggle) -> None:
        self._client = client

    async def create(
        self, definition: Mapping[str, Any] | str, *, id: str | None = None, timeout: Timeout = DEFAULT
    ) -> Team:
        """Make a team of a definition (TeamDefinition), or of the name of one in the configuration.

        It is made once, however often the request is sent. id: sent again with it, the request returns the same team.
        """
        body = {"named": definition} if isinstance(definition, str) else dict(definition)
        body["id"] = id or self._client._new_id()
        view: TeamView = await self._client._http.call("POST", "/api/v1/teams", body, timeout=timeout)
        return self._client.team(view["team_id"])

    def list(self, **filters: Any) -> AsyncGenerator[TeamView, None]:
        """Yield teams, the newest first. Filters: limit, before."""
        return self._client.pages("/api/v1/teams", "teams", **filters)

    def watch(self, count: int = 50) -> AsyncGenerator[list[TeamView], None]:
        """Yield the newest teams, now and whenever teams change."""
        return watch(self._client._http, self.list, of_kind("team"), count)
