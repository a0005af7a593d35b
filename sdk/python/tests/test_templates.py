"""The templates of "waggle new" that are Python programs, as a new project has them."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from conftest import Server

import waggle
from waggle import Waggle

WAGGLE = os.environ.get("WAGGLE_E2E_BINARY") or str(Path(__file__).parents[3] / "bin" / "waggle")

SOURCES = str(Path(waggle.__file__).parents[1])


@pytest.mark.parametrize(
    ("answer", "result"), [("send", "The letter was sent."), ("discard", "The letter was discarded.")]
)
async def test_the_agent_asks_before_it_sends(server: Server, tmp_path: Path, answer: str, result: str) -> None:
    folder = tmp_path / "project"
    new = await asyncio.create_subprocess_exec(WAGGLE, "new", str(folder), "--template", "python-agent")
    assert await new.wait() == 0
    program = await asyncio.create_subprocess_exec(
        sys.executable, "agent.py", cwd=folder, env={**os.environ, "PYTHONPATH": SOURCES, "WAGGLE_URL": server.url}
    )
    try:
        async with Waggle(server.url) as client:
            while not [a async for a in client.swarm.agents() if a.get("name") == "secretary"]:
                assert program.returncode is None
            run = client.session().send("ask letters to thank the bees", mode="plan")
            async for question in run.questions():
                assert "thank the bees" in question.text
                await question.reply(answer)
            assert result in (await run.result()).text
    finally:
        program.terminate()
        assert await program.wait() == 0
    assert (folder / "sent.txt").exists() == (answer == "send")
