import { WaggleClient } from "@waggle-dev/client";
import { faultOf } from "./fault.ts";
import { Keeper } from "./keeper.ts";
import type { Command, Report } from "./protocol.ts";

// The worker of the page: it reads logs and makes views of them, so that the page has to show them only.

const keepers = new Map<number, Keeper>();

/** That of the page, which may renew it. */
let secret = "";

function open(c: Extract<Command, { do: "open" }>): void {
  secret = c.token;
  const client = new WaggleClient({ url: c.origin, token: () => secret, backoff: { min: 200, max: 5000 } });
  const k = new Keeper(client, c, (r) => postMessage({ log: c.log, ...r } as Report));
  keepers.set(c.log, k);
  k.run(() => k.open());
}

function answer(log: number, call: number, work: Promise<Extract<Report, { do: "answer" }>["value"]>): void {
  work.then(
    (value) => postMessage({ log, do: "answer", call, value } satisfies Report),
    (error) => postMessage({ log, do: "error", error: faultOf(error) } satisfies Report),
  );
}

addEventListener("message", ({ data }: MessageEvent<Command>) => {
  if (data.do === "open") return open(data);
  if (data.do === "token") {
    secret = data.token;
    return;
  }
  const k = keepers.get(data.log);
  if (!k) return;
  switch (data.do) {
    case "close":
      keepers.delete(data.log);
      return k.close();
    case "follow":
      return data.on ? k.run(() => k.follow()) : k.unfollow();
    case "seek":
      return k.run(() => k.seek(data.at));
    case "part":
      return k.show(data.part, data.member);
    case "arrows":
      return k.arrows(data.from, data.to);
    case "window":
      return k.run(() => k.move(data.to));
    case "filter":
      return k.sieve(data.text);
    case "rows":
      return k.run(() => k.rows(data.seqs));
    case "whole":
      return k.whole(data.on);
    case "event":
      return answer(data.log, data.call, k.event(data.seq));
  }
});
