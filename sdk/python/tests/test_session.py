from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, cast

import pytest
from conftest import Server, sequences

from waggle import Reply, Session, Waggle, WaggleError
from waggle.errors import (
    InputAnsweredError,
    InvalidFieldError,
    RunCancelledError,
    SessionNotFoundError,
)

if TYPE_CHECKING:
    from waggle.events import CanonicalEvent

QUESTION = "which files are in the workspace, and what does notes.md say?"


async def test_an_answer_comes_in_pieces(server: Server) -> None:
    async with Waggle(server.url) as w:
        run = w.session().send("which files are in the workspace?")
        pieces = [piece async for piece in run.deltas()]
        answer = await run.result()
        assert "".join(pieces) == answer.text
        assert "notes.md" in answer.text
        assert not any(p.restarted for p in pieces)
        assert answer.outcome == "success"
        events = [e async for e in run]
        assert events == [e async for e in run]
        assert events[-1]["type"] == "run.completed"


async def test_a_message_with_the_same_id_counts_once(server: Server) -> None:
    async with Waggle(server.url) as w, Waggle(server.url) as other:
        s = w.session()
        first = await s.send("hello", id="only").result()
        again = other.session(s.id).send("hello", id="only")
        assert (await again.result()).text == first.text
        events = [e async for e in _until_idle(s)]
        assert [e["type"] for e in events].count("message.received") == 1


async def test_messages_are_taken_in_order(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        runs = [s.send(f"what is {n} + {n}?") for n in range(8)]
        for r in runs:
            await r.result()
        received = [e["data"]["message_id"] async for e in _until_idle(s) if e["type"] == "message.received"]
        sent = [r.run_id for r in runs]
        assert len(received) == 8
        ids = [e["data"]["run_id"] async for e in _until_idle(s) if e["type"] == "message.received"]
        assert ids == sent


async def test_events_of_a_session_wait_for_its_first_message(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        s.send("hello")
        async for e in s.events():
            if e["type"] == "run.completed":
                break
        with pytest.raises(SessionNotFoundError):
            async for _ in w.session("no-such-session").events():
                pass


async def test_a_plan_is_approved_rejected_and_changed(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        run = s.send(QUESTION, mode="plan", confirm_plan=True)
        async for q in run.questions():
            assert q.scope == "plan"
            steps = q.data["steps"]
            await q.modify(steps=steps[:1])
            with pytest.raises(InputAnsweredError) as late:
                await w.session(s.id).answer(q, True)
            assert late.value.detail["decision"] == "modify"
        assert "notes.md (" in (await run.result()).text
        assert not s.questions

        run = s.send(QUESTION, mode="plan", confirm_plan=True)
        async for q in run.questions():
            await q.modify(modified={q.data["steps"][0]["id"]: {"title": "what does notes.md say"}})
        await run.result()
        plans = [cast("dict[str, Any]", e["data"]) async for e in run if e["type"] == "input.answered"]
        assert plans[0]["steps"][0]["title"] == "what does notes.md say"

        run = s.send(QUESTION, mode="plan", confirm_plan=True)
        async for q in run.questions():
            await s.answer(q.id, Reply(False, "not today"))
        rejected = [cast("dict[str, Any]", e["data"]) async for e in run if e["type"] == "input.answered"]
        assert (rejected[0]["decision"], rejected[0]["feedback"]) == ("reject", "not today")


async def test_an_answer_holds_for_its_digest_only(server: Server) -> None:
    async with Waggle(server.url) as w:
        run = w.session().send(QUESTION, mode="plan", confirm_plan=True)
        async for q in run.questions():
            found: list[Any] = []
            while not found:  # the list is as of a second ago
                found = [i async for i in w.questions.list(log=q.inbox.split(".")[1])]
            assert [i["id"] for i in found] == [q.inbox]
            await w.questions.answer(found[0], True)
        assert (await run.result()).outcome == "success"


async def test_a_run_is_cancelled(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        waits = s.send(QUESTION, mode="plan", confirm_plan=True)
        queued = s.send("compute 6*7")
        async for _ in waits.questions():
            await queued.accepted()
            await waits.cancel("enough")
        with pytest.raises(RunCancelledError):
            await waits.result()
        assert (await queued.result()).text == "6*7 = 42"

        again = s.send(QUESTION, mode="plan", confirm_plan=True)
        async for _ in again.questions():
            await s.cancel_plan("no")
        assert (await again.result()).outcome in ("cancelled", "rejected")


async def test_a_log_is_resumed_from_any_position(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        await s.send(QUESTION).result()
        last = (await s.show())["last_seq"]
        for after in range(last):
            events: list[Any] = []
            async for e in s.events(after=after):
                events.append(e)
                if e["sequence"] == last:
                    break
            assert sequences(events) == list(range(after + 1, last + 1))


async def test_refusals_name_the_option(server: Server) -> None:
    async with Waggle(server.url) as w:
        run = w.session().send("x", mode=cast("Any", "sing"))
        with pytest.raises(InvalidFieldError) as caught:
            await run.accepted()
        assert caught.value.field == "mode"
        assert "forwardedProps" not in caught.value.message
        with pytest.raises(InvalidFieldError):
            _ = [e async for e in run]
        with pytest.raises(TypeError, match="no option colour"):
            w.session().send("x", **cast("Any", {"colour": 1}))


async def test_a_session_is_exported_listed_and_deleted(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        await s.send("hello").result()
        assert (await s.show())["session_id"] == s.id
        while s.id not in [x["session_id"] async for x in w.sessions.list(limit=3)]:
            pass  # the list is as of a second ago
        await s.delete()
        with pytest.raises(WaggleError) as caught:
            await s.show(timeout=10)
        assert caught.value.code in ("SESSION_DELETED", "SESSION_NOT_FOUND")


async def test_steps_are_executed_without_planning(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        await s.send("hello").result()
        run = s.solve([{"id": "one", "title": "what does notes.md say?"}])
        assert "Notes" in (await run.result()).text


async def _until_idle(s: Session) -> AsyncGenerator[CanonicalEvent, None]:
    last = (await s.show())["last_seq"]
    async for e in s.events():
        yield e
        if e["sequence"] >= last:
            return


async def test_a_message_that_was_sent_before_has_its_answer_after_a_restart(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        first = s.send("hello", id="mine")
        text = (await first.result()).text
        await s.send("what is 1 + 1?").result()
        whole = [e async for e in first]
        position = s.seq
    async with Waggle(server.url) as w:
        again = w.session(s.id, after=position)
        run, other = again.send("hello", id="mine"), again.send("what is 2 + 3?", id="another")
        assert (await run.result()).text == text
        assert sequences([e async for e in run]) == sequences(whole)
        assert "5" in (await other.result()).text


async def test_a_message_that_waits_is_taken_back(server: Server) -> None:
    async with Waggle(server.url) as w:
        s = w.session()
        sent, waits = s.send("hello"), s.send("good morning")
        await waits.cancel()
        with pytest.raises(RunCancelledError):
            await waits.result()
        await sent.result()
        assert [e["type"] async for e in _until_idle(s)].count("message.received") == 1
