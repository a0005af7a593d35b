"""An agent that writes letters, and asks before it sends one.

It reconnects when Waggle restarts, and its work survives Waggle. Ctrl-C stops it.
"""

import os
from pathlib import Path

from waggle.swarm import AgentTask, agent


@agent(capabilities=["letters"], description="Writes letters, and sends them if you agree.")
async def secretary(task: AgentTask) -> str:
    letter = f"Dear reader,\n\n{task.text}\n\nYours, the secretary\n"
    await task.progress(0.5, "the letter is written")
    answer = await task.ask(f"Send this letter?\n\n{letter}", options=["send", "discard"], timeout=3600)
    if answer != "send":
        return "The letter was discarded."
    Path("sent.txt").write_text(letter)  # your mail server
    return "The letter was sent."


if __name__ == "__main__":
    secretary.run(os.environ.get("WAGGLE_URL", "http://127.0.0.1:9000"))
