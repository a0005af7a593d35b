import type { Page } from "playwright-core";

/** The requests that a page has made for logs, and how many of them were on at once. */
export class Requests {
  readonly paths: string[] = [];
  most = 0;
  private readonly on = new Set<unknown>();

  constructor(p: Page, base: string) {
    p.on("request", (q) => {
      const path = q.url().slice(base.length);
      if (!path.startsWith("/api/v1/logs/")) return;
      this.paths.push(path.slice("/api/v1/logs/session/long/".length));
      if (!path.includes("/events?")) return;
      this.on.add(q);
      this.most = Math.max(this.most, this.on.size);
    });
    for (const end of ["requestfinished", "requestfailed"] as const) p.on(end as "requestfinished", (q) => this.on.delete(q));
  }

  /** Those that ask for a stretch of all events. */
  get stretches(): string[] {
    return this.paths.filter((q) => /^events\?after=\d+&limit=\d+$/.test(q));
  }
}
