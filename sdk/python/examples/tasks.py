"""The twelve tasks of docs/SDKS.md. tests/test_tasks.py runs them."""

from __future__ import annotations

from waggle import FilePart, Reply, Waggle
from waggle.errors import RunCancelledError
from waggle.swarm import AgentTask, Service, agent, tool


async def chat(client: Waggle) -> None:
    run = client.session().send("what does notes.md say?")
    async for piece in run.deltas():
        print(piece, end="", flush=True)


async def resume(url: str) -> None:
    async with Waggle(url) as before:
        session = before.session()
        await session.send("what does notes.md say?", id="question-1").accepted()
        kept, after = session.id, session.seq  # in a file or a database

    async with Waggle(url) as client:
        again = client.session(kept, after=after)
        again.on(lambda event: print(event["sequence"], event["type"]))  # each event after the position, once
        run = again.send("what does notes.md say?", id="question-1")  # the same id: the same run
        print((await run.result()).text)


async def plan(client: Waggle) -> None:
    run = client.session().send("list the files, and read notes.md", mode="plan", confirm_plan=True)
    async for question in run.questions():
        print([step["title"] for step in question.data["steps"]])
        await question.approve()
    print((await run.result()).text)


async def answer(client: Waggle, session: str) -> None:
    async for question in client.questions.list(log=session):
        print(question["scope"], len(question.get("steps", [])))
        outcome = await client.questions.answer(question, Reply(False, "not now"))
        print(outcome["decision"])


async def client_tool(client: Waggle) -> None:
    def weather(city: str) -> str:
        """Tells the weather of a city."""
        return f"21.5 degrees in {city}"

    run = client.session().send('use weather {"city": "Lisbon"}', tools=[weather])
    print((await run.result()).text)


async def file(client: Waggle) -> None:
    session = client.session()
    todo = FilePart("text/markdown", b"call mum", "todo.md")
    async for event in session.send("say thanks", files=[todo]):
        if event["type"] == "message.received":
            for sent in event["data"].get("files", []):
                print(sent.get("name"), (await session.file(sent)).decode())


async def cancel(client: Waggle) -> None:
    run = client.session().send("tell me the story")
    async for _ in run.deltas():
        await run.cancel("it is late")
        break
    try:
        await run.result()
    except RunCancelledError as error:
        print(error.code)


async def team(client: Waggle) -> None:
    team = await client.teams.create(
        {"name": "site", "coordinator": "Boss", "members": [{"name": "Boss"}, {"name": "Coder"}]}
    )
    await team.message("say hello to the bees", target="Coder")
    async for event in team.events():
        if event["type"] == "team.member_event" and event["data"]["event"]["type"] == "run.completed":
            print(event["data"]["member_name"], event["data"]["event"]["data"]["content"])
            await team.delete()  # ends the events, too


async def task(client: Waggle) -> None:
    task = await client.tasks.create({"text": "hello"}, agent="shouter")
    print((await task.result()).result)


async def write_agent(url: str) -> None:
    @agent(capabilities=["shouting"])
    async def shouter(task: AgentTask) -> str:
        await task.progress(0.5, "taking a deep breath")
        return f"{task.text.upper()}!"

    await shouter.serve(url)  # until it is cancelled


async def write_tools(url: str) -> None:
    @tool(idempotent=True)
    def add(a: float, b: float) -> float:
        """Adds two numbers."""
        return a + b

    await Service("calculator", [add], id="calculator").serve(url)


async def sessions(client: Waggle) -> None:
    async for session in client.sessions.list(q="notes"):
        print(session["session_id"], session.get("state"), session.get("question"))
