import type { NewTeam, TeamDefinition, TeamView } from "./generated/api.js";
import { type CallOptions, type Http, until } from "./http.js";
import { Watched } from "./hub.js";
import { answerOf, type Question, type Reply } from "./questions.js";

/** A message to a team. */
export interface TeamMessageOptions extends CallOptions {
  /** A name, a path of names or an id; default: the coordinator. */
  target?: string;
  imageUrls?: string[];
  contextFiles?: string[];
  /** Of the message: sent again with it, the message counts once. */
  id?: string;
}

/** A team of agents: one log of what all its members do. */
export class Team extends Watched {
  /** For `WaggleClient`. */
  constructor(http: Http, id: string, after: number, newId: () => string) {
    super(http, "team", id, after, newId);
  }

  /** The team as it is now. */
  show(o: CallOptions = {}): Promise<TeamView> {
    const signal = until(this.signal, o);
    return this.http.persist(() => this.http.json<TeamView>(this.path, { signal }), signal);
  }

  /** Sends a message and returns its id. It counts once, however often the request is sent. */
  async message(content: string, o: TeamMessageOptions = {}): Promise<string> {
    const signal = until(this.signal, o);
    const body = { id: o.id ?? this.newId(), content, target: o.target, image_urls: o.imageUrls, context_files: o.contextFiles };
    const r = { method: "POST", body, signal };
    const a = await this.http.persist(
      () => this.http.json<{ message_id?: string; command_id: string }>(`${this.path}/messages`, r),
      signal,
    );
    return a.message_id ?? a.command_id;
  }

  /** Stops the runs of the members, or of one of them. */
  stop({ signal, timeoutMs, ...body }: { target?: string; reason?: string } & CallOptions = {}): Promise<void> {
    return this.post("/stop", { signal, timeoutMs }, body);
  }

  /** Holds messages to the members back. */
  pause(o: CallOptions = {}): Promise<void> {
    return this.post("/pause", o);
  }

  /** Releases the messages that were held back. */
  resume(o: CallOptions = {}): Promise<void> {
    return this.post("/resume", o);
  }

  private post(rest: string, o: CallOptions, body?: object): Promise<void> {
    const signal = until(this.signal, o);
    const request = { method: "POST", signal, ...(body && Object.keys(body).length > 0 ? { body } : {}) };
    return this.http.persist(() => this.http.json(this.path + rest, request), signal);
  }

  /** Stops the team and closes it for good. */
  async delete(o: CallOptions = {}): Promise<void> {
    const signal = until(this.signal, o);
    await this.http.persist(() => this.http.request(this.path, { method: "DELETE", signal }), signal);
  }

  /** Answers a question of a member. Rejects with `INPUT_ANSWERED` if somebody else's answer counts. */
  answer(
    question: Question | string,
    reply: Pick<Reply, "approved" | "feedback" | "arguments"> | boolean,
    o: CallOptions = {},
  ): Promise<void> {
    const body = answerOf(reply);
    return this.reply(question, body, until(this.signal, o));
  }
}

/** The teams of the tenant. */
export class Teams {
  /** For `WaggleClient`. */
  constructor(
    private readonly http: Http,
    private readonly team: (id: string) => Team,
    private readonly signal: AbortSignal,
    private readonly newId: () => string,
  ) {}

  /**
   * Makes a team of a definition, or of the name of one in the gateway's configuration. It is made once, however often the
   * request is sent; sent again with the same `id`, the request returns the same team.
   */
  async create(definition: TeamDefinition | string, o: { id?: string } & CallOptions = {}): Promise<Team> {
    const of: Partial<NewTeam> = typeof definition === "string" ? { named: definition } : definition;
    const signal = until(this.signal, o);
    const request = { method: "POST", body: { ...of, id: o.id ?? this.newId() }, signal };
    const view = await this.http.persist(() => this.http.json<TeamView>("/api/v1/teams", request), signal);
    return this.team(view.team_id);
  }
}
