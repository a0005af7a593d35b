from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from conftest import CuttingProxy, Server, free_port, sequences

from waggle import Backoff, ClosedError, Waggle

FAST = Backoff(0.001, 0.01)


async def test_cut_lines_lose_double_and_reorder_nothing(server: Server) -> None:
    chance = random.Random(1)
    (server.workspace / "long.txt").write_text("\n".join(f"line {n}" for n in range(2000)))

    def after(connection: int) -> int | None:
        return None if connection % 5 == 4 else chance.randrange(1, 3000 + 40 * connection)

    async with CuttingProxy(server.port, after).running() as proxy, Waggle(proxy.url, backoff=FAST) as w:
        s = w.session()
        heard: list[Any] = []
        s.on(heard.append)
        runs = [s.send("what does long.txt say?"), s.send("which files are in the workspace?")]
        viewers = [asyncio.ensure_future(_read(s, runs)) for _ in range(3)]
        texts = [(await r.result()).text for r in runs]
        seen = await asyncio.gather(*viewers)
        assert "line 1999" in texts[0]
        assert "".join([d async for d in runs[0].deltas()]) == texts[0]
        assert proxy.cuts > 10

    async with Waggle(server.url) as w:
        last = seen[0][-1]["sequence"]
        for events in [*seen, heard]:
            assert sequences(events)[:last] == list(range(1, last + 1))
        whole = [e["type"] for e in seen[0]]
        assert whole.count("message.received") == 2
        assert whole.count("run.completed") == 2


async def _read(s: Any, runs: list[Any]) -> list[Any]:
    await runs[-1].accepted()
    events: list[Any] = []
    ended = 0
    async for e in s.events():
        events.append(e)
        ended += e["type"] == "run.completed"
        if ended == len(runs):
            break
    return events


async def test_a_server_that_is_killed_while_it_streams_loses_nothing(own_server: Server) -> None:
    own_server.workspace.mkdir(exist_ok=True)
    (own_server.workspace / "long.txt").write_text("\n".join(f"line {n}" for n in range(20_000)))
    async with Waggle(own_server.url, backoff=FAST) as w:
        s = w.session()
        heard: list[Any] = []
        states: list[bool] = []
        s.on_connection(lambda c: states.append(c.connected))
        s.on(heard.append)
        run = s.send("what does long.txt say?")
        async for e in run:
            if e["type"] == "message.delta":
                break
        own_server.kill()
        waiting = s.send("which files are in the workspace?")
        own_server.start()
        answer = await run.result()
        assert "long.txt" in (await waiting.result()).text
        assert "line 100" in answer.text
        assert [text async for text in run.text()][-1] == answer.text
        assert sequences(heard) == list(range(1, heard[-1]["sequence"] + 1))
        assert [e["type"] for e in heard].count("run.completed") == 2
        assert False in states[states.index(True) :]


async def test_messages_wait_for_a_server_that_is_away() -> None:
    async with Waggle(f"http://127.0.0.1:{free_port()}", backoff=FAST) as w:
        s = w.session()
        runs = [s.send(f"{n}") for n in range(1024)]
        assert s.waiting == 1024
        with pytest.raises(Exception, match="QUEUE_FULL"):
            await s.send("one more").accepted()
        await s.aclose()
        with pytest.raises(ClosedError):
            await runs[-1].result()
        with pytest.raises(ClosedError):
            await s.send("late").accepted()


async def test_a_message_that_is_not_delivered_in_time_is_given_up() -> None:
    async with Waggle(f"http://127.0.0.1:{free_port()}", backoff=FAST) as w:
        s = w.session()
        with pytest.raises(TimeoutError):
            await s.send("hello", timeout=0.05).result()
        assert s.waiting == 0
        assert s.connection.error is not None
