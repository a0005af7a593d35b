import { computed, effect, signal } from "@preact/signals";
import { type ConsoleInfo, type Me, type Status, WaggleApi, WaggleError } from "@waggle-dev/client";
import { type Language, language, t } from "./words.ts";

const tokenKey = "waggle.token";
const stored = sessionStorage.getItem(tokenKey) ?? "";
let secret = stored;

/** The token with which this page makes requests; empty without one. */
export const token = (): string => secret;

/** Whether the installation asks who this is: the last token is missing, wrong or expired. */
export const login = signal<"no" | "asks" | "wrong" | "expired">("no");

/** The headers with which this page makes requests that are not made by the client. */
export const authorization = (): HeadersInit => (secret === "" ? {} : { Authorization: `Bearer ${secret}` });

/** The installation, as this page sees it. */
export const client = new WaggleApi({ url: location.origin, token, backoff: { min: 200, max: 5000 } });

let told: Promise<ConsoleInfo> | undefined;

/** What the page learns before it has credentials: one request for all that ask. Undefined: it failed, and the next one asks again. */
export function consoleInfo(): Promise<ConsoleInfo | undefined> {
  told ??= client.call<ConsoleInfo>("GET", "/api/v1/console");
  return told.catch(() => {
    told = undefined;
    return undefined;
  });
}

/** Who this page is, once it is known. */
export const me = signal<Me | undefined>(undefined);

/** The roles, models and tool servers, once they are known. */
export const status = signal<Status | undefined>(undefined);

/** Whether the principal may do more than look. */
export const mayAct = computed(() => me.value?.may.includes("act") ?? false);

/** Whether this page signs in with a token. */
export const signedIn = signal(secret !== "");

/** Signs in. The token stays in memory, or in the tab if it is to be kept. */
export async function signIn(value: string, keep: boolean): Promise<void> {
  secret = value;
  if (!(await begin())) {
    login.value = "wrong";
    return;
  }
  signedIn.value = secret !== "";
  if (keep) sessionStorage.setItem(tokenKey, secret);
  epoch.value++;
}

/** Takes a token in place of one that is about to expire. */
export function renewed(value: string): void {
  secret = value;
  if (sessionStorage.getItem(tokenKey) !== null) sessionStorage.setItem(tokenKey, value);
}

/** Forgets the token. */
export function signOut(): void {
  sessionStorage.removeItem(tokenKey);
  location.assign("/");
}

/** Changes when all that is shown has to be read anew. */
export const epoch = signal(0);

/** Finds out who this page is. Reports whether the installation takes its credentials. */
export async function begin(): Promise<boolean> {
  try {
    const [who, what] = await Promise.all([client.me(), client.status()]);
    me.value = who;
    status.value = what;
    login.value = "no";
    return true;
  } catch (error) {
    refusedLogin(error);
    return false;
  }
}

/** Whether an error says that the credentials are missing or do not count any more; the page asks for others then. */
export function refusedLogin(error: unknown): boolean {
  const no = error instanceof WaggleError && error.status === 401;
  if (no && login.value === "no") login.value = error.code === "CREDENTIALS_EXPIRED" || (secret !== "" && me.value) ? "expired" : "asks";
  return no;
}

/** A timer of a browser has this many milliseconds at most. */
const longest = 2 ** 31 - 1;

// An expired credential is noticed when it expires, not at the next action.
effect(() => {
  const { expires } = me.value ?? {};
  if (!expires) return;
  const left = Date.parse(expires) - Date.now();
  const timer = setTimeout(() => void begin(), left > 0 ? Math.min(longest, left + 50) : 5000); // clocks may differ
  return () => clearTimeout(timer);
});

/** How things are shown; kept in this browser. */
export function setting<T extends string>(name: string, values: readonly T[]) {
  const key = `waggle.${name}`;
  const first = localStorage.getItem(key) as T | null;
  const s = signal<T>(first !== null && values.includes(first) ? first : (values[0] as T));
  effect(() => localStorage.setItem(key, s.value));
  const next = () => {
    s.value = values[(values.indexOf(s.value) + 1) % values.length] as T;
  };
  return { s, next };
}

export const { s: theme, next: nextTheme } = setting("theme", ["auto", "light", "dark"]);
export const { s: tongue, next: nextTongue } = setting("language", ["auto", "en", "zh"]);
export const { s: zone, next: nextZone } = setting("zone", ["local", "utc"]);
export const { s: density, next: nextDensity } = setting("density", ["roomy", "dense"]);

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  document.documentElement.dataset["density"] = density.value;
});

/** The language that the reader has chosen, or that of the browser. */
export const wantedLanguage = (): Language =>
  (tongue.value === "auto" ? /^zh\b/i.test(navigator.language) : tongue.value === "zh") ? "zh-CN" : "en";

/** The time, once a second: what counts down or up reads it. */
export const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now();
}, 1000);

const formats = new Map<string, Intl.DateTimeFormat>();

/** A time of day, in the zone that the reader has chosen; the date comes with it unless it is today. */
export function clock(time: string | number | Date, precise = false): string {
  const d = new Date(time);
  if (Number.isNaN(d.getTime())) return "";
  const day = d.toDateString() === new Date(now.peek()).toDateString() || precise;
  const id = `${language()} ${zone.value} ${precise} ${day}`;
  let f = formats.get(id);
  if (!f) {
    f = new Intl.DateTimeFormat(language() === "en" ? "en-GB" : language(), {
      ...(day ? {} : { day: "numeric", month: "short" }),
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      ...(precise ? { fractionalSecondDigits: 3 } : {}),
      ...(zone.value === "utc" ? { timeZone: "UTC" } : {}),
    });
    formats.set(id, f);
  }
  return f.format(d);
}

/** A length of time: "340 ms", "4.2 s", "2 min 5 s", "3 h 20 min". */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** What the page shows, for the title of the tab; how much waits for people stands before it. */
export const title = signal("");
export const waiting = signal(0);

effect(() => {
  const name = title.value === "" ? t("app.name") : `${title.value} · ${t("app.name")}`;
  document.title = waiting.value > 0 ? `(${waiting.value}) ${name}` : name;
});

/** A short message that goes by itself. */
export const notice = signal("");
let fading = 0;

export function say(text: string): void {
  notice.value = text;
  clearTimeout(fading);
  fading = window.setTimeout(() => {
    notice.value = "";
  }, 4000);
}

/** Copies a text, and says so. */
export async function copy(text: string): Promise<void> {
  await navigator.clipboard.writeText(text);
  say(t("copied"));
}

/** What a person is told of an error. */
export function reason(error: unknown): string {
  if (error instanceof WaggleError && error.status === 401 && login.peek() === "expired") return t("login.expired");
  return error instanceof Error ? error.message : String(error);
}
