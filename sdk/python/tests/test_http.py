from __future__ import annotations

import asyncio
import json
import logging
import pickle

import pytest
from conftest import free_port, response, scripted

from waggle import Backoff, CallTimeoutError, UnreachableError, Waggle, WaggleError
from waggle.errors import CLASSES, RateLimitedError, SessionNotFoundError
from waggle.swarm import AgentTask, agent

FAST = Backoff(0.001, 0.002)


def problem(code: str, status: int, **headers: str) -> bytes:
    return response(status, json.dumps({"title": code, "status": status, "detail": "Wait."}), **headers)


async def test_a_refused_token_is_renewed_once() -> None:
    tokens = iter(["old", "new", "never"])
    seen: list[str] = []

    async def handler(head: str, _: bytes) -> bytes:
        seen.append(next(line for line in head.split("\r\n") if line.lower().startswith("authorization")))
        return response(200, "{}") if "new" in seen[-1] else problem("CREDENTIALS_EXPIRED", 401)

    async def token() -> str:
        return next(tokens)

    async with scripted(handler) as url, Waggle(url, token=token) as w:
        await asyncio.gather(w.me(), w.me())
        await w.me()
    assert [s.split()[-1] for s in seen].count("old") <= 2
    assert seen[-1].endswith("Bearer new")
    assert next(tokens) == "never"


async def test_a_time_out_names_the_last_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(_: float) -> None:
        raise asyncio.TimeoutError  # the time is over during the first pause

    monkeypatch.setattr(asyncio, "sleep", sleep)
    url = f"http://127.0.0.1:{free_port()}"
    async with Waggle(url, backoff=FAST) as w:
        with pytest.raises(CallTimeoutError, match="cannot be reached") as caught:
            await w.me(timeout=60)
        assert isinstance(caught.value, TimeoutError)
        assert isinstance(caught.value.__cause__, UnreachableError)


def test_each_code_of_the_catalogue_is_a_class() -> None:
    assert CLASSES["SESSION_NOT_FOUND"] is SessionNotFoundError
    assert RateLimitedError("x").retryable
    assert not SessionNotFoundError("x").retryable
    copy = pickle.loads(pickle.dumps(SessionNotFoundError("gone", status=404, field="id")))
    assert (copy.code, copy.status, copy.field, str(copy)) == (
        "SESSION_NOT_FOUND",
        404,
        "id",
        "SESSION_NOT_FOUND: gone (at id)",
    )


def test_addresses_without_a_gateway_are_refused() -> None:
    urls: list[str | list[str]] = ["", "127.0.0.1:9000", "ftp://x", []]
    for url in urls:
        with pytest.raises(WaggleError, match="url names no gateway"):
            Waggle(url)
    assert repr(Waggle("ws://h:1/ws/session/?x=1", token="secret")) == "Waggle('http://h:1')"


async def test_no_token_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(_: str, __: bytes) -> bytes:
        return response(200, "{}")

    caplog.set_level(logging.DEBUG, "waggle")
    async with scripted(handler) as url, Waggle(url, token="secret-token") as w:
        await w.me()
    assert "/api/v1/me: 200" in caplog.text
    assert "secret-token" not in caplog.text


async def test_no_redirect_gets_the_token() -> None:
    heads: list[str] = []

    async def thief(head: str, _: bytes) -> bytes:
        heads.append(head)
        return response(200, "{}")

    @agent
    async def a(task: AgentTask) -> None: ...

    async with scripted(thief) as elsewhere:

        async def handler(_: str, __: bytes) -> bytes:
            return response(302, "", Location=elsewhere.replace("http", "ws", 1))

        async with scripted(handler) as url, Waggle(url, token="secret") as w:
            with pytest.raises(WaggleError, match="302"):
                await w.me()
            with pytest.raises(WaggleError, match="302"):
                await a.connect(url, token="secret", backoff=FAST)
    assert heads == []
