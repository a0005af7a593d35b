import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the pages. */
export const here = fileURLToPath(new URL("..", import.meta.url));

/** The pages of the navigation, in order, with their section: [{ section, title, link }]. */
export function allPages() {
  const sections = JSON.parse(readFileSync(join(here, "nav.json"), "utf8"));
  const flat = (section, pages) => pages.flatMap(({ title, link, pages: more = [] }) => [{ section, title, link }, ...flat(section, more)]);
  return sections.flatMap((s) => flat(s.title, s.pages));
}
