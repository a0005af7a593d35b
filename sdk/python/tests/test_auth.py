from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from conftest import SETTINGS, Server

from waggle import Backoff, Waggle
from waggle.errors import ForbiddenError, SessionNotFoundError, UnauthenticatedError
from waggle.swarm import AgentTask, agent

FAST = Backoff(0.001, 0.01)
KEY, VIEWER = "k" * 40, "v" * 40


@pytest.fixture
def guarded(tmp_path: Path) -> Generator[Server, None, None]:
    keys = [("me", KEY, "user, agent"), ("viewer", VIEWER, "viewer")]
    lines = [
        f"    - {{id: {id}, sha256: {hashlib.sha256(k.encode()).hexdigest()}, tenant: acme, roles: [{roles}]}}"
        for id, k, roles in keys
    ]
    started = Server(tmp_path, SETTINGS + "auth:\n  api_keys:\n" + "\n".join(lines) + "\n")
    yield started
    started.kill()


async def test_tokens_are_renewed_and_refusals_are_errors(guarded: Server) -> None:
    @agent(name="shouter")
    async def shouter(task: AgentTask) -> str:
        return task.text.upper()

    def tokens() -> Callable[[], str]:
        all = iter(["x" * 40])
        return lambda: next(all, KEY)

    async with (
        await shouter.connect(guarded.url, token=tokens(), backoff=FAST),
        Waggle(guarded.url, token=tokens()) as w,
    ):
        s = w.session()
        assert (await s.send("hello", agent="shouter").result()).text == "HELLO"
        assert (await w.me())["may"] == ["watch", "act"]
        async with Waggle(guarded.url, token=VIEWER) as viewer:
            with pytest.raises(ForbiddenError):
                await viewer.session().send("hello").accepted()
            with pytest.raises((SessionNotFoundError, ForbiddenError)):
                await anext(viewer.session("none").events())
    for token in (None, "y" * 40, lambda: "z" * 40):
        async with Waggle(guarded.url, token=token) as stranger:
            with pytest.raises(UnauthenticatedError):
                await stranger.me()
            with pytest.raises(UnauthenticatedError):
                await anext(stranger.session("none").events())
        with pytest.raises(UnauthenticatedError):
            await asyncio.wait_for(shouter.connect(guarded.url, token=token, backoff=FAST), 60)
    with pytest.raises(ForbiddenError):
        await shouter.connect(guarded.url, token=VIEWER, backoff=FAST)
