"""Pending feedback in a file."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict
from typing import Any

from .async_feedback.types import PendingFeedbackContext


class SQLiteFlowPersistence:
    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path)
        self._db.execute("create table if not exists pending (id text primary key, state text, context text)")

    def save_pending_feedback(self, id: str, context: PendingFeedbackContext, state: dict[str, Any]) -> None:
        row = (id, json.dumps(state), json.dumps(asdict(context)))
        self._db.execute("insert or replace into pending values (?, ?, ?)", row)
        self._db.commit()

    def load_pending_feedback(self, id: str) -> tuple[dict[str, Any], PendingFeedbackContext] | None:
        row = self._db.execute("select state, context from pending where id = ?", (id,)).fetchone()
        return (json.loads(row[0]), PendingFeedbackContext(**json.loads(row[1]))) if row else None

    def clear_pending_feedback(self, id: str) -> None:
        self._db.execute("delete from pending where id = ?", (id,))
        self._db.commit()
