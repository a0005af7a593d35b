from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import CuttingProxy, Server, sequences

from waggle import Backoff, FilePart, Waggle
from waggle.errors import InvalidFieldError, NotFoundError, RunNotFoundError, TeamClosedError, TeamNotFoundError

QUESTION = "which files are in the workspace, and what does notes.md say?"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c636460f8cf500f0003010100c9fe92ef0000000049454e44ae426082"
)


async def test_a_log_is_read_in_pages_from_both_ends(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        run = s.send(QUESTION)
        await run.result()
        log = w.log("session", s.id)
        last = (await log.head())["last"]
        onwards = [e async for e in log.events(limit=3)]
        assert sequences(onwards)[:last] == list(range(1, last + 1))
        back = [e async for e in log.events(before=last + 1, limit=3)]
        assert back == onwards[: len(back)][::-1]
        received = [e async for e in log.events(types=["message.received"])]
        assert [e["type"] for e in received] == ["message.received"]
        assert [e["type"] async for e in log.events(run=run.run_id, types=["run.completed"])] == ["run.completed"]
        assert len((await log.export()).splitlines()) >= last
        with pytest.raises(RunNotFoundError):
            await w.log("session", "none").head()


async def test_files_come_with_a_message(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        run = s.send(
            "hello", files=[FilePart("image/png", PIXEL, "dot.png"), FilePart("text/plain", b"some text", "a.txt")]
        )
        await run.result()
        received = [e["data"] async for e in run if e["type"] == "message.received"]
        files: Any = received[0].get("files")
        assert [await s.file(f) for f in files] == [PIXEL, b"some text"]
        files[0]["object"]["digest"] = "0" * 64
        with pytest.raises(NotFoundError):
            await s.file(files[0])


async def test_several_logs_come_on_one_connection_that_breaks(server: Server) -> None:
    def after(connection: int) -> int | None:
        return 900 + 300 * connection

    async with Waggle(server.url) as w:
        sessions = [w.session(), w.session("a name with spaces", fresh=True)]
        for s in sessions:
            await s.send(QUESTION).result()
        ends = {f"session/{s.id}": (await w.log("session", s.id).head())["last"] for s in sessions}
    backoff = Backoff(0.001, 0.01)
    async with CuttingProxy(server.port, after).running() as proxy, Waggle(proxy.url, backoff=backoff) as w:
        seen: dict[str, list[Any]] = {log: [] for log in ends}
        messages = w.topics({**dict.fromkeys(ends, 0), "session/none": 0}, announcements=True, types=["run.completed"])
        errors: list[Any] = []
        async for m in messages:
            if m.error:
                errors.append((m.log, m.error.code))
            elif m.log and m.event:
                seen[m.log].append(m.event)
            if errors and all(sequences(seen[log])[-1:] == [end] for log, end in ends.items()):
                break
        await messages.aclose()
        for log, end in ends.items():
            assert sequences(seen[log]) == list(range(1, end + 1))
        assert errors == [("session/none", "SESSION_NOT_FOUND")]
        assert proxy.cuts > 2
        with pytest.raises(InvalidFieldError):
            await anext(w.topics({"session/a b": 0, "session/c d": 0}))


async def test_announcements_come_as_they_happen(server: Server) -> None:
    async with Waggle(server.url) as w:
        ended = asyncio.ensure_future(_first(w.live(types=["run.completed"])))
        s = w.session()
        while not ended.done():  # nothing says when the connection is there
            await s.send("hello").result()
        assert (await ended)["type"] == "run.completed"


async def test_lists_follow_what_the_server_has(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        run = s.send(QUESTION, mode="plan", confirm_plan=True)
        asked = False
        async for questions in w.questions.watch():
            mine = [q for q in questions if q["log_id"] == s.id]
            if mine and not asked:
                asked = True
                await w.questions.answer(mine[0], True)
            elif asked and not mine:
                break
        await run.result()
        async for sessions in w.sessions.watch(5):
            if s.id in [x["session_id"] for x in sessions]:
                break


async def test_a_team_works_is_held_and_closed(server: Server) -> None:
    async with Waggle(server.url) as w:
        team = await w.teams.create(
            {"name": "site", "coordinator": "Boss", "members": [{"name": "Boss"}, {"name": "Coder"}]}
        )
        done = asyncio.Event()
        team.on(lambda e: done.set() if e["type"] == "team.member_event" else None)
        await team.message("hello")
        await done.wait()
        assert (await team.show())["name"] == "site"
        await team.pause()
        await team.resume()
        await team.stop(reason="enough")
        while team.id not in [t["team_id"] async for t in w.teams.list(limit=5)]:
            pass
        assert [a async for a in w.log("team", team.id).artifacts()] == []
        events = asyncio.ensure_future(_all(team.events()))
        await team.delete()
        whole = await events
        assert whole[-1]["type"] == "team.closed"
        assert sequences(whole) == list(range(1, whole[-1]["sequence"] + 1))
        with pytest.raises(TeamClosedError):
            await team.message("late")
        with pytest.raises(TeamNotFoundError):
            await w.team("none").show()


async def _first(events: Any) -> Any:
    return await anext(events)


async def _all(events: Any) -> list[Any]:
    return [e async for e in events]
