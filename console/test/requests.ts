import type { Page, Request } from "playwright-core";

/** The requests that a page has made for logs, and how many of them were on at once. */
export class Requests {
  readonly paths: string[] = [];
  most = 0;
  /** Those that a busy server did not answer: the page makes them again. */
  readonly unanswered: string[] = [];
  private readonly on = new Set<Request>();

  constructor(p: Page, base: string) {
    p.on("request", (q) => {
      const path = q.url().slice(base.length);
      if (!path.startsWith("/api/v1/logs/")) return;
      this.paths.push(path.slice("/api/v1/logs/session/long/".length));
      if (!path.includes("/events?")) return;
      this.on.add(q);
      this.most = Math.max(this.most, this.on.size);
    });
    const lost = (q: Request, why: string | undefined) => {
      if (!this.on.has(q)) return;
      const path = q.url().slice(base.length + "/api/v1/logs/session/long/".length);
      console.log(`not answered: ${path}: ${why}`);
      this.unanswered.push(path);
    };
    p.on("response", (r) => r.status() >= 429 && lost(r.request(), String(r.status())));
    p.on("requestfailed", (q) => lost(q, q.failure()?.errorText));
    for (const end of ["requestfinished", "requestfailed"] as const) p.on(end as "requestfinished", (q) => this.on.delete(q));
  }

  /** Those that ask for a stretch of all events. */
  get stretches(): string[] {
    return this.paths.filter((q) => /^events\?after=\d+&limit=\d+$/.test(q));
  }

  /** Those of them that were answered, or still may be. */
  get answered(): string[] {
    const without = [...this.unanswered];
    return this.stretches.filter((q) => {
      const at = without.indexOf(q);
      if (at >= 0) without.splice(at, 1);
      return at < 0;
    });
  }
}
