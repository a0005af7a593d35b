from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any

import pytest
from judge import Judge, cases

from waggle import Backoff, CallTimeoutError, FilePart, Reply, Run, Session, Task, Team, Waggle, WaggleError

Sight = dict[str, Any]
Step = dict[str, Any]


@pytest.fixture(scope="module")
def judge() -> Generator[Judge, None, None]:
    started = Judge()
    yield started
    started.stop()


class Reader:
    """A log that is read, with what was told of it."""

    def __init__(self) -> None:
        self.expired: list[int] = []
        self.gaps: list[int] = []
        self.events: AsyncGenerator[Any, None]


class Program:
    """What a case does with the client. The programs of the other clients do the same."""

    def __init__(self, judge: Judge, case: dict[str, Any], urls: list[str]) -> None:
        tokens = [*case.get("client", {}).get("tokens", [])]

        def token() -> str:
            return tokens.pop(0) if len(tokens) > 1 else tokens[0]

        given = token if len(tokens) > 1 else tokens[0] if tokens else None
        self.client = Waggle(urls, token=given, backoff=Backoff(0.001, 0.01), timeout=None)
        self._judge = judge
        self._case = case
        self._runs: dict[str, Run] = {}
        self._sessions: dict[str, Session] = {}
        self._made: dict[str, str] = {}
        self._readers: dict[str, Reader] = {}
        self._asked: list[str] = []

    async def close(self) -> None:
        for r in self._readers.values():
            await r.events.aclose()
        await self.client.aclose()

    async def do(self, s: Step) -> Sight:
        """Do a step, and return what it shows."""
        does: Callable[[Step], Awaitable[Sight | None]] | None = getattr(self, f"do_{s['do']}", None)
        if does is None:
            raise NotImplementedError(f"the program cannot {s['do']}")
        return await does(s) or {}

    def _session(self, s: Step) -> Session:
        name = s.get("session", "")
        if name not in self._sessions:
            self._sessions[name] = self.client.session(None if self._case.get("real") else name)
        return self._sessions[name]

    def _named(self, name: str) -> str:
        return self._made.get(name, name)

    def _task(self, s: Step) -> Task:
        return self.client.task(self._named(s["task"]))

    def _team(self, s: Step) -> Team:
        return self.client.team(self._named(s["team"]))

    def _log(self, s: Step) -> Any:
        kind, _, name = s["log"].partition("/")
        id = self._session({"session": name}).id if kind == "session" else self._named(name)
        return self.client.log(kind, id)

    def _reader(self, s: Step) -> Reader:
        key = f"{s.get('log')} {s['do']}"
        if key in self._readers:
            return self._readers[key]
        r = self._readers[key] = Reader()
        if s["do"] == "live":
            r.events = self.client.live(types=s.get("types", ()), on_gap=r.gaps.append)
            return r
        kind, _, name = s["log"].partition("/")
        items = {
            "session": lambda: self._session({"session": name}),
            "team": lambda: self.client.team(self._named(name)),
            "task": lambda: self.client.task(self._named(name)),
        }
        item = items[kind]()
        r.events = item.events(after=s.get("after", 0), on_expired=r.expired.append)
        return r

    async def do_read(self, s: Step) -> Sight:
        r = self._reader(s)
        seqs: list[int] = []
        types: list[str] = []
        text = ""
        async for e in r.events:
            seqs.append(e["sequence"])
            if "types" not in s or e["type"] in s["types"]:
                types.append(e["type"])
            if e["type"] in ("input.requested", "task.asked"):
                self._asked.append(".".join([*e["subject"].split(".")[1:], e["data"]["input_id"]]))
            if e["type"] == "message.delta":
                text += e["data"]["text"]
            if (
                e["type"] == s.get("type")
                or ("until" in s and e["sequence"] >= s["until"])
                or (s["do"] == "live" and len(seqs) == s["events"])
            ):
                size = len(text.encode())
                sight = {"events": seqs, "types": types, "size": size, "expired": r.expired, "gaps": r.gaps}
                return {**sight, "data": e["data"], **({} if size > 1000 else {"text": text})}
        return {"events": seqs, "types": types, "text": text, "expired": r.expired, "gaps": r.gaps, "ended": True}

    do_live = do_read

    async def do_tell(self, s: Step) -> None:
        await self._judge.post(f"{self._case['name']}/tell", s)

    async def do_me(self, s: Step) -> Sight:
        return {"subject": (await self.client.me(**_timeout(s))).get("subject")}

    async def do_call(self, s: Step) -> Sight:
        return {"body": await self.client.call(s["method"], f"/api/v1/{s['path']}", s.get("data"), **_timeout(s))}

    async def do_create_session(self, s: Step) -> Sight:
        session = await self.client.sessions.create(s.get("id"), on_busy=s.get("mode"))
        self._sessions[s.get("session", "")] = session
        return {"session": session.id}

    async def do_send(self, s: Step) -> None:
        names = {"id": "id", "mode": "mode", "confirm": "confirm_plan", "agent": "agent"}
        options: dict[str, Any] = {option: s[name] for name, option in names.items() if name in s}
        if "attach" in s:
            options["files"] = [FilePart("text/plain", s["attach"].encode(), "note.txt")]
        run = self._session(s).send(s["text"], **options, **_timeout(s))
        self._runs[s.get("run", "")] = run
        await run.accepted()

    async def do_solve(self, s: Step) -> None:
        steps: Any = [{"id": f"step_{i + 1}", "title": title} for i, title in enumerate(s["steps"])]
        run = self._session(s).solve(steps)
        self._runs[s.get("run", "")] = run
        await run.accepted()

    async def do_result(self, s: Step) -> Sight:
        a = await self._runs[s["run"]].result()
        return {"text": a.text, "size": len(a.text.encode()), "outcome": a.outcome}

    async def do_stop(self, s: Step) -> None:
        await self._runs[s["run"]].cancel(s.get("reason"))

    async def do_cancel(self, s: Step) -> None:
        await self._session(s).cancel(**_timeout(s))

    async def do_cancel_step(self, s: Step) -> None:
        await self._session(s).cancel_step(s["step"], s.get("reason"))

    async def do_restart_step(self, s: Step) -> None:
        await self._session(s).restart_step(s["step"], s.get("reason"))

    async def do_cancel_plan(self, s: Step) -> None:
        await self._session(s).cancel_plan(s.get("reason"))

    async def do_replan(self, s: Step) -> None:
        await self._session(s).replan(s.get("text"))

    async def do_show(self, s: Step) -> Sight:
        d = await self._session(s).show(**_timeout(s))
        return {"session": d["session_id"], "runs": len(d["runs"])}

    async def do_delete(self, s: Step) -> Sight:
        return {"done": await self._session(s).delete()}

    async def do_list_sessions(self, _: Step) -> Sight:
        return {"ids": [one["session_id"] async for one in self.client.sessions.list()]}

    async def do_head(self, s: Step) -> Sight:
        head = await self._log(s).head()
        return {"first": head["first"], "last": head["last"]}

    async def do_file(self, s: Step) -> Sight:
        named: Any = {"object": {"digest": s["file"]}}
        return _file(await self._session(s).file(named))

    async def do_artifact(self, s: Step) -> Sight:
        return _file(await self._log(s).artifact(s["file"]))

    async def do_questions(self, s: Step) -> Sight:
        while True:
            ids = [q["id"] async for q in self.client.questions.list(log=self._session(s).id)]
            if not s.get("none") or not ids:
                return {"ids": ids}

    async def do_answer(self, s: Step) -> Sight:
        which = {"first": 0, "second": 1}.get(s["question"])
        question = s["question"] if which is None else self._asked[which]
        reply = Reply(s.get("approve", False), s.get("feedback"))
        return {"decision": (await self.client.questions.answer(question, reply)).get("decision")}

    async def do_create_task(self, s: Step) -> Sight:
        able = [s["capability"]] if "capability" in s else None
        task = await self.client.tasks.create(s["data"], agent=s.get("agent"), capabilities=able, **_timeout(s))
        self._made[s.get("task", "")] = task.id
        return {"task": task.id}

    async def do_retry_task(self, s: Step) -> Sight:
        again = await self._task(s).retry()
        self._made[s.get("run", "")] = again
        return {"task": again, "other": again != self._named(s["task"])}

    async def do_task_result(self, s: Step) -> Sight:
        return {"result": (await self._task(s).result()).result}

    async def do_list_tasks(self, s: Step) -> Sight:
        ids = [one["task_id"] async for one in self.client.tasks.list()]
        return {"ids": ids, "has": self._named(s.get("task", "")) in ids}

    async def do_show_task(self, s: Step) -> Sight:
        d = await self._task(s).show()
        return {"task": d["task_id"], "status": d["status"]}

    async def do_cancel_task(self, s: Step) -> None:
        await self._task(s).cancel(s.get("reason"))

    async def do_message_task(self, s: Step) -> None:
        await self._task(s).message(s["data"])

    async def do_create_team(self, s: Step) -> Sight:
        definition = {"name": s["team"], "coordinator": "Boss", "members": [{"name": "Boss"}, {"name": "Coder"}]}
        before = self._made.get(s["team"])
        team = await self.client.teams.create(definition, id=s.get("id"))
        self._made[s["team"]] = team.id
        return {"team": team.id, "same": team.id == before}

    async def do_message_team(self, s: Step) -> None:
        await self._team(s).message(s["text"], id=s.get("id"))

    async def do_stop_team(self, s: Step) -> None:
        await self._team(s).stop(reason=s.get("reason"))

    async def do_close_team(self, s: Step) -> None:
        await self._team(s).delete()


def _timeout(s: Step) -> dict[str, Any]:
    return {"timeout": s["timeout_ms"] / 1000} if "timeout_ms" in s else {}


def _file(body: bytes) -> Sight:
    """Describe a file: its text, or its size."""
    if len(body) < 1000:
        return {"text": body.decode(errors="replace"), "size": len(body)}
    return {"size": len(body), "sum": sum((i % 251 + 1) * b for i, b in enumerate(body)) % 1_000_003}


def _error(e: Exception) -> Sight:
    """Return an error as all languages tell it."""
    if isinstance(e, CallTimeoutError):
        return {"code": "TIMEOUT"}
    if isinstance(e, WaggleError):
        return {"code": e.code, "status": e.status, "field": e.field or "", "retryable": e.retryable}
    return {"code": repr(e)}


@pytest.mark.parametrize("case", cases(), ids=lambda c: c["name"])
async def test_conformance(judge: Judge, monkeypatch: pytest.MonkeyPatch, case: dict[str, Any]) -> None:
    pauses: list[int] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds >= 1:
            pauses.append(int(seconds))
            seconds = 0
        await real(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    program = Program(judge, case, (await judge.post(case["name"], {}))["urls"])
    seen: list[Sight] = []
    for step, expected in zip(case["program"], case["sees"], strict=True):
        try:
            seen.append(await program.do(step))
        except Exception as e:
            seen.append({"error": _error(e)})
            if "error" not in expected:
                break
    await program.close()
    assert (await judge.post(f"{case['name']}/end", {"seen": seen, "pauses": pauses}))["wrong"] == []
