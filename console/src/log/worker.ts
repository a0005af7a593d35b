import { WaggleApi } from "@waggle-dev/client";
import { Hub } from "../live/hub.ts";
import { announcements } from "../live/protocol.ts";
import { Tap } from "../live/tap.ts";
import { faultOf } from "./fault.ts";
import { Keeper } from "./keeper.ts";
import type { Command, Report } from "./protocol.ts";
import { clientFor } from "./sample.ts";

// The worker of the page: it reads logs and makes views of them, so that the page has to show them only. As a shared worker
// the same script is the hub of all tabs.

const { origin } = location;

/** The token of the page, which may renew it. */
let secret = "";
const client = new WaggleApi({ url: origin, token: () => secret, backoff: { min: 200, max: 5000 } });
const tap = new Tap();
const keepers = new Map<number, Keeper>();

const tell = (r: Report) => postMessage(r);

function identify(who: string, token: string): void {
  secret = token;
  if (who !== "") tap.identify(who, token);
}

function open(c: Extract<Command, { do: "open" }>): void {
  const k = new Keeper(clientFor(c.id, client), tap, c, (r) => tell({ log: c.log, ...r } as Report));
  keepers.set(c.log, k);
  k.run(() => k.open());
}

/** Goes on at a hub; without the port of one this worker has its own. */
function plug(port: MessagePort | undefined) {
  if (port) return tap.plug(port);
  const own = new MessageChannel();
  new Hub(origin).serve(own.port1);
  tap.plug(own.port2);
}

let deaf = () => {};

/** Tells the page of announcements, or stops that. */
function listen(on: boolean): void {
  deaf();
  deaf = () => {};
  if (!on) return;
  deaf = tap.follow(announcements, 0, (n) => {
    if (n.do === "event") tell({ log: 0, do: "announced", event: n.event });
    else if (n.do === "up") tell({ log: 0, do: "up", up: n.up });
    else if (n.do === "over") tell({ log: 0, do: "error", error: n.error });
  });
}

function answer(log: number, call: number, work: Promise<Extract<Report, { do: "answer" }>["value"]>): void {
  work.then(
    (value) => postMessage({ log, do: "answer", call, value } satisfies Report),
    (error) => postMessage({ log, do: "error", error: faultOf(error) } satisfies Report),
  );
}

function obey(c: Command) {
  switch (c.do) {
    case "open":
      return open(c);
    case "plug":
      return plug(c.port);
    case "listen":
      return listen(c.on);
    case "as":
      return identify(c.who, c.token);
  }
  const k = keepers.get(c.log);
  if (!k) return;
  switch (c.do) {
    case "close":
      keepers.delete(c.log);
      return k.close();
    case "follow":
      return c.on ? k.run(() => k.follow()) : k.unfollow();
    case "seek":
      return k.run(() => k.seek(c.at));
    case "part":
      return k.show(c.part, c.member);
    case "arrows":
      return k.arrows(c.from, c.to);
    case "window":
      return k.run(() => k.move(c.to));
    case "filter":
      return k.sieve(c.text);
    case "rows":
      return k.run(() => k.rows(c.seqs));
    case "whole":
      return k.whole(c.on);
    case "event":
      return answer(c.log, c.call, k.event(c.seq));
  }
}

if ("onconnect" in globalThis) {
  const hub = new Hub(origin);
  // A page gives its tab's port, and nothing when it goes.
  addEventListener("connect", (e) => {
    let end = () => {};
    const [page] = (e as MessageEvent).ports as [MessagePort];
    page.onmessage = ({ ports: [port] }) => {
      end();
      end = port ? hub.serve(port) : () => {};
    };
  });
} else addEventListener("message", ({ data }: MessageEvent<Command>) => obey(data));
