import type { CanonicalEvent } from "@waggle-dev/client";
import { statuses } from "../src/fold/board.ts";

export const routes = ["Lead", "Writer", "docs", "docs/Editor", "docs/Reader"] as const;
export const agents = routes.filter((r) => r !== "docs");
const definition = {
  name: "crew",
  coordinator: "Lead",
  members: [
    { name: "Lead" },
    { name: "Writer", role: "writes" },
    { name: "docs", team: { name: "docs", coordinator: "Editor", members: [{ name: "Editor" }, { name: "Reader" }] } },
  ],
};

/**
 * A team with a nested one, as its service writes the log: messages of people, members and the board, some of which are dropped,
 * runs of members with tools that ask, and tasks that need each other.
 */
export class Log {
  readonly events: CanonicalEvent[] = [];
  private seqs = new Map<string, number>();
  private things = 0;
  readonly sent: { path: string; member: string; id: string }[] = [];
  readonly asked: { route: string; run: string; id: string }[] = [];
  tasks: { task_id: string; assignee_name: string; dependencies: string[]; status: string }[] = [];

  constructor() {
    this.put("", "team.created", { team_id: "t", definition });
    this.put("", "team.status", { new_status: "RUNNING" });
  }

  put(team: string, type: string, data: object): void {
    const sequence = this.events.length + 1;
    const time = new Date(sequence * 1000).toISOString();
    const inner = { type, data, time, sequence: this.next(team), id: String(sequence) };
    const event =
      team === ""
        ? inner
        : { ...inner, type: "team.sub_team_event", data: { sub_team_node_name: team, sub_team_id: team, sub_team_event: inner } };
    this.events.push({ ...event, sequence } as unknown as CanonicalEvent);
  }

  member(route: string, type: string, data: object, status?: string): void {
    const cut = route.lastIndexOf("/");
    const event = {
      type,
      data,
      time: new Date(this.events.length * 1000).toISOString(),
      sequence: this.next(route),
      id: `${route} ${this.events.length}`,
    };
    this.put(route.slice(0, Math.max(0, cut)), "team.member_event", {
      member_name: route.slice(cut + 1),
      member_id: `id-${route}`,
      seq: event.sequence,
      ...(status ? { status } : {}),
      event,
    });
  }

  private next(of: string): number {
    const n = (this.seqs.get(of) ?? 0) + 1;
    this.seqs.set(of, n);
    return n;
  }

  do(what: string, n: number): void {
    const id = `i${++this.things}`;
    const route = agents[n % agents.length] as string;
    const last = this.asked.at(-1);
    switch (what) {
      case "message":
        this.message(id, n);
        break;
      case "drop": {
        const m = this.sent[n % Math.max(1, this.sent.length)];
        this.put(m?.path ?? "", "team.message_dropped", { message_id: m?.id ?? id, member: m?.member ?? "Lead", reason: "stopped" });
        break;
      }
      case "run":
        this.member(route, "message.received", { run_id: id, message_id: id, content: "go" });
        this.member(route, "run.started", { run_id: id }, "processing_user_input");
        this.member(route, "message.delta", { run_id: id, message_id: `a${id}`, text: "words" });
        break;
      case "ask":
        this.asked.push({ route, run: id, id });
        this.member(route, "input.requested", { run_id: id, input_id: id, scope: "tool", tool: "write" }, "awaiting_tool_approval");
        this.member(route, "job.suspended", { run_id: id, inputs: [id] });
        break;
      case "answer":
        if (!last) return;
        this.asked.pop();
        this.member(last.route, "input.answered", { run_id: last.run, input_id: last.id, decision: "approve" }, "executing_tool");
        break;
      case "tasks":
        this.board(n);
        break;
      case "work": {
        const task = this.tasks[n % Math.max(1, this.tasks.length)];
        if (!task) return;
        task.status = statuses[n % statuses.length] as string;
        this.put("", "board.updated", { task_id: task.task_id, new_status: task.status, agent_name: task.assignee_name });
      }
    }
  }

  private message(id: string, n: number): void {
    const senders = [
      undefined,
      { kind: "agent", id: "x", name: "Writer", route: "Writer" },
      { kind: "system", id: "system.task_notifier" },
    ];
    const sender = senders[n % 3];
    const member = ["Lead", "Writer", "docs"][n % 3] as string;
    const m = { message_id: id, content: `message ${id}`, ...(sender ? { sender } : {}) };
    this.sent.push({ path: "", member, id });
    this.put("", "team.message", { ...m, member });
    if (member !== "docs") return;
    this.sent.push({ path: "docs", member: "Editor", id });
    this.put("docs", "team.message", { ...m, member: "Editor" });
  }

  private board(n: number): void {
    const names = ["Lead", "Writer", "docs"];
    const add = [0, 1].map((i) => ({
      task_id: `task_${this.tasks.length + i}`,
      task_name: `task ${this.tasks.length + i}`,
      assignee_name: names[(n + i) % 3] as string,
      description: "",
      dependencies: this.tasks.slice(-2).map((t) => t.task_id),
      file_deliverables: [],
      status: "not_started",
    }));
    this.tasks = [...this.tasks, ...add];
    this.put("", "board.created", { call_id: "c", by: "Lead", tasks: structuredClone(this.tasks), added: add.map((t) => t.task_id) });
  }
}

/** A team of so many members in teams of ten, of which everyone has a task, a question or a message. */
export function large(members: number, messages: number): CanonicalEvent[] {
  const log = new Log();
  const teams = Array.from({ length: members / 10 }, (_, t) => ({
    name: `team${t}`,
    team: { name: `team${t}`, members: Array.from({ length: 9 }, (_, i) => ({ name: `m${i}` })) },
  }));
  log.events.length = 0;
  log.put("", "team.created", { team_id: "t", definition: { name: "all", members: teams } });
  for (let i = 0; i < members; i++) {
    const route = `team${i % teams.length}/m${i % 9}`;
    if (i % 2)
      log.member(route, "input.requested", { run_id: `r${i}`, input_id: `q${i}`, scope: "tool", tool: "write" }, "awaiting_tool_approval");
    else log.member(route, "message.received", { run_id: `r${i}`, message_id: `m${i}`, content: "go" }, "processing_user_input");
  }
  const tasks = Array.from({ length: members }, (_, i) => ({
    task_id: `task_${i}`,
    task_name: `task ${i}`,
    assignee_name: `team${i % teams.length}`,
    description: "",
    dependencies: i > 2 ? [`task_${i - 1}`, `task_${i - 3}`] : [],
    status: "not_started",
  }));
  log.put("", "board.created", { call_id: "c", by: "team0", tasks, added: [] });
  for (let i = 0; i < messages; i++)
    log.put("", "team.message", {
      message_id: `x${i}`,
      member: `team${(i * 7) % teams.length}`,
      content: `message ${i}`,
      ...(i % 3 ? { sender: { kind: "agent", id: "x", route: `team${i % teams.length}/m${i % 9}` } } : {}),
    });
  return log.events;
}
