import { WaggleError } from "./errors.js";
import type { NewTeam, TeamDefinition, TeamView } from "./generated/api.js";
import type { Http } from "./http.js";
import { Watched } from "./hub.js";
import { Link } from "./link.js";
import { type Question, unwrap } from "./questions.js";
import type { Reply } from "./session.js";

/** A message to a team. */
export interface TeamMessageOptions {
  /** A name, a path of names or an id; default: the coordinator. */
  target?: string;
  imageUrls?: string[];
  contextFiles?: string[];
}

/** A team of agents: one log of what all its members do. */
export class Team extends Watched {
  /** For `WaggleClient`. */
  constructor(
    http: Http,
    id: string,
    after: number,
    private readonly newId: () => string,
  ) {
    super(http, "team", id, after);
  }

  /** The team as it is now. */
  show(): Promise<TeamView> {
    return this.http.persist(() => this.http.json<TeamView>(this.path, { signal: this.signal }), this.signal);
  }

  /** Sends a message and returns its id. It is not sent again: after an error without an answer the log says whether it arrived. */
  async message(content: string, o: TeamMessageOptions = {}): Promise<string> {
    const body = { content, target: o.target, image_urls: o.imageUrls, context_files: o.contextFiles };
    const a = await this.http.json<{ message_id?: string; command_id: string }>(`${this.path}/messages`, { method: "POST", body });
    return a.message_id ?? a.command_id;
  }

  /** Stops the runs of the members, or of one of them. */
  stop(o: { target?: string; reason?: string } = {}): Promise<void> {
    return this.post("/stop", o);
  }

  /** Holds messages to the members back. */
  pause(): Promise<void> {
    return this.post("/pause");
  }

  /** Releases the messages that were held back. */
  resume(): Promise<void> {
    return this.post("/resume");
  }

  private post(rest: string, body?: object): Promise<void> {
    const request = { method: "POST", signal: this.signal, ...(body && Object.keys(body).length > 0 ? { body } : {}) };
    return this.http.persist(() => this.http.json(this.path + rest, request), this.signal);
  }

  /** Stops the team and closes it for good. */
  async delete(): Promise<void> {
    await this.http.persist(() => this.http.request(this.path, { method: "DELETE", signal: this.signal }), this.signal);
  }

  /** Answers a question of a member. Rejects with `INPUT_ANSWERED` if somebody else's answer counts. */
  answer(question: Question | string, reply: Pick<Reply, "approved" | "feedback"> | boolean): Promise<void> {
    const id = typeof question === "string" ? question : question.id;
    const r = typeof reply === "boolean" ? { approved: reply } : reply;
    return new Promise((done, fail) => {
      const stop = this.on((e) => {
        const { event } = unwrap(e);
        if (event.type !== "input.answered" || event.data.input_id !== id) return;
        const ours = (event.data.decision !== "reject") === r.approved;
        leave(
          ours ? undefined : new WaggleError("INPUT_ANSWERED", `${event.data.by || "somebody"} has answered it already`, { detail: event }),
        );
      });
      const link = new Link(this.http, {
        path: () => `/ws?watch=team/${encodeURIComponent(this.id)}&after=${this.seq}`,
        take: (f) => {
          if (f.type === "agent_ready") return "ready";
          if (f.type === "error" && f.seq === undefined) leave(new WaggleError(f.data.code, f.data.message, { detail: f }));
          return undefined;
        },
      });
      const leave = (error?: WaggleError) => {
        stop();
        if (error) fail(error);
        else done();
        link.close();
      };
      link.onEnd(leave);
      link.send({ type: "answer", question_id: id, approved: r.approved, feedback: r.feedback, id: this.newId() }, () => false);
    });
  }
}

/** The teams of the tenant. */
export class Teams {
  /** For `WaggleClient`. */
  constructor(
    private readonly http: Http,
    private readonly open_: (id: string, after: number) => Team,
  ) {}

  /** Makes a team of a definition, or of the name of one in the gateway's configuration. */
  async create(definition: TeamDefinition | string): Promise<Team> {
    const body: Partial<NewTeam> = typeof definition === "string" ? { named: definition } : definition;
    const view = await this.http.json<TeamView>("/api/v1/teams", { method: "POST", body });
    return this.open(view.team_id);
  }

  /** A team that exists. `after`: only the later events are read. */
  open(id: string, after = 0): Team {
    return this.open_(id, after);
  }
}
