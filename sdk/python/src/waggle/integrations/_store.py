"""Where the state of tasks is kept."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Protocol


class Store(Protocol):
    """Keeps the state of tasks. A state that save has returned for is there after a crash."""

    def load(self, id: str) -> str | None:
        """Return the newest state of a task, None without one."""
        ...

    def save(self, id: str, state: str) -> None:
        """Replace the state of a task."""
        ...

    def delete(self, id: str) -> None:
        """Remove the state of a task. Without one it does nothing."""
        ...


class Folder:
    """Keeps states as files, which survive a killed process. Processes on several machines need a folder that they share."""

    def __init__(self, path: str | os.PathLike[str], *, keep_days: float = 7) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        for old in self.path.glob("*.task.json"):  # of tasks that ended while no process was there to learn it
            if time.time() - old.stat().st_mtime > keep_days * 86_400:
                old.unlink(missing_ok=True)

    def _file(self, id: str) -> Path:
        return self.path / f"{hashlib.sha256(id.encode()).hexdigest()[:32]}.task.json"

    def load(self, id: str) -> str | None:
        """Return the newest state of a task, None without one."""
        try:
            return self._file(id).read_text("utf-8")
        except FileNotFoundError:
            return None

    def save(self, id: str, state: str) -> None:
        """Replace the state of a task: a crash leaves the state before it or this one."""
        file = self._file(id)
        new = file.with_suffix(f".{os.getpid()}.new")
        with new.open("w", encoding="utf-8") as out:
            out.write(state)
            out.flush()
            os.fsync(out.fileno())
        new.replace(file)

    def delete(self, id: str) -> None:
        """Remove the state of a task. Without one it does nothing."""
        self._file(id).unlink(missing_ok=True)
