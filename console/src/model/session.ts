import type { CanonicalEvent } from "@waggle-dev/client";
import { type TeamView, TeamViewBuilder, type View, ViewBuilder } from "@waggle-dev/client/view";
import { client } from "../app.ts";
import { LogModel } from "./log.ts";

/** One session: its conversation, as of any event. */
export class SessionModel extends LogModel<View> {
  constructor(
    id: string,
    /** Nobody has used the id yet: the log begins with the first message. */
    public fresh = false,
  ) {
    super(id, client.sessions.open(id, { fresh }), () => new ViewBuilder());
    if (!fresh) this.read();
  }

  override read(): void {
    this.fresh = false;
    super.read();
  }

  /** When a question of the log ends by itself. */
  ends(question: string): string | undefined {
    for (let i = this.events.length - 1; i >= 0; i--) {
      const e = this.events[i] as CanonicalEvent;
      if (e.type !== "input.requested" || e.data.input_id !== question) continue;
      const seconds = e.data.timeout_seconds;
      return seconds ? new Date(Date.parse(e.time) + seconds * 1000).toISOString() : undefined;
    }
    return undefined;
  }
}

/** One team: who is in what state, and what was said, as of any event. */
export class TeamModel extends LogModel<TeamView> {
  constructor(id: string) {
    super(id, client.teams.open(id), () => new TeamViewBuilder());
    this.read();
  }
}
