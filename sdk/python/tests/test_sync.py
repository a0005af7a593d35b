from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest
from conftest import Server, free_port

from waggle import ClosedError
from waggle.errors import CallTimeoutError, SessionNotFoundError
from waggle.sync import Waggle


def test_a_script_chats_plans_and_answers(server: Server) -> None:
    with Waggle(server.url) as w:
        assert "".join(w.session().send("which files are in the workspace?").deltas()).count("notes.md")
        with w.session() as s:
            run = s.send(
                "which files are in the workspace, and what does notes.md say?", mode="plan", confirm_plan=True
            )
            for q in run.questions():
                assert q.scope == "plan"
                q.approve()
            assert run.result(timeout=60).outcome == "success"
            assert [e["type"] for e in run][-1] == "run.completed"
            assert s.show()["session_id"] == s.id
        with pytest.raises(SessionNotFoundError):
            next(w.session("no-such-session").events())
        assert w.me()["tenant"] == "default"
        assert next(iter(w.sessions.list(limit=1)))["session_id"]
    with pytest.raises(ClosedError):
        w.me()


async def test_it_works_where_a_loop_is_running(server: Server) -> None:
    def work() -> str:
        with Waggle(server.url) as w:
            return w.session().send("what is 2 + 3?").result().text

    asyncio.get_running_loop()
    assert "5" in work()  # as a cell of a notebook does


def test_an_iterator_that_is_left_ends_its_connection(server: Server) -> None:
    with Waggle(server.url) as w:
        s = w.session()
        for _ in s.send("hello").deltas():
            break
        for e in s.events():
            if e["type"] == "run.completed":
                break
    assert not [t for t in threading.enumerate() if t.name == "waggle"]


def test_a_listener_that_waits_for_a_call_is_told_so(server: Server) -> None:
    with Waggle(server.url) as w:
        s = w.session()
        told: list[str] = []

        def listener(_: object) -> None:
            try:
                s.show()
            except RuntimeError as error:
                told.append(str(error))

        s.on(listener)
        s.send("hello").result()
        assert "thread of the client" in told[0]


def test_a_call_has_a_time_out() -> None:
    with Waggle(f"http://127.0.0.1:{free_port()}") as w, pytest.raises(CallTimeoutError):
        w.me(timeout=0.05)


SHOUTER = """
import logging, sys
from waggle.swarm import SyncTask, agent

@agent(name="sync-shouter")
def shouter(task: SyncTask) -> str:
    return task.text.upper()

logging.basicConfig(stream=sys.stdout, level=logging.INFO)
shouter.run(sys.argv[1])
"""


def test_tasks_teams_and_logs_without_asyncio(server: Server) -> None:
    serving = subprocess.Popen([sys.executable, "-uc", SHOUTER, server.url], stdout=subprocess.PIPE, text=True)
    assert serving.stdout
    assert any("is registered" in line for line in serving.stdout)
    with Waggle(server.url) as w:
        with w.tasks.create("hello", agent="sync-shouter", timeout_ms=60_000) as task:
            assert task.result(timeout=60).result == "HELLO"
            assert [e["type"] for e in task.events()][-1] == "task.finished"
        assert [e["type"] for e in w.log("task", task.id).events(types=["task.finished"])] == ["task.finished"]
        assert next(w.swarm.agents(name="sync-shouter"))["name"] == "sync-shouter"
        with w.teams.create({"name": "t", "coordinator": "A", "members": [{"name": "A"}]}) as team:
            team.message("hello")
            assert team.show()["name"] == "t"
            team.delete()
        kept = w.session()
        kept.send("hello").result()
        assert [
            m.event["sequence"] for m, _ in zip(w.topics({f"session/{kept.id}": 1}), range(2), strict=False) if m.event
        ]
        assert next(w.sessions.watch(1))
    serving.terminate()
    assert "Traceback" not in serving.stdout.read()
    assert serving.wait() == 0
