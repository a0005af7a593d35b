import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";

const types: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".map": "application/json",
};

/** A web server of folders (by the prefix of their paths) and of texts. */
export class Site {
  private constructor(
    private readonly server: Server,
    readonly origin: string,
  ) {}

  static async start(folders: Record<string, string>, texts: Record<string, string> = {}, port = 0): Promise<Site> {
    const server = createServer(async (q, a) => {
      const path = normalize(new URL(q.url ?? "/", "http://x").pathname);
      const prefix = Object.keys(folders)
        .filter((p) => path.startsWith(p))
        .sort((x, y) => y.length - x.length)[0];
      const name = path.endsWith("/") ? `${path}index.html` : path;
      try {
        const body =
          texts[path] ?? (prefix === undefined ? undefined : await readFile(join(folders[prefix] as string, name.slice(prefix.length))));
        if (body === undefined) throw new Error("not found");
        a.writeHead(200, { "Content-Type": types[extname(name)] ?? "text/html; charset=utf-8" });
        a.end(body);
      } catch {
        a.writeHead(404);
        a.end();
      }
    });
    await new Promise<void>((go) => server.listen(port, "127.0.0.1", go));
    return new Site(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }

  end(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Debian's Chromium, without a window, with more arguments. */
export function launch(...more: string[]): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      ...more,
    ],
  });
}

/** Opens a page and collects the errors that it shows in its console. */
export async function open(browser: Browser, url: string): Promise<{ page: Page; errors: string[] }> {
  const page = await browser.newPage({ viewport: { width: 900, height: 720 } });
  const errors: string[] = [];
  page.on("pageerror", (e) => errors.push(String(e)));
  page.on("console", (m) => {
    if (m.type() === "error" && !/Failed to load resource|net::ERR_|WebSocket connection to .* failed/.test(m.text()))
      errors.push(m.text());
  });
  await page.goto(url);
  return { page, errors };
}
