import { me } from "./app.ts";
import {
  after,
  go,
  type InstallationTab,
  installationTabs,
  type Route,
  room,
  route,
  sessionViews,
  swarmTabs,
  taskViews,
  teamViews,
} from "./route.ts";

/** What everybody sees of the installation: the rest is for operators. */
export const openTabs: readonly InstallationTab[] = ["health", "quotas"];

/** The tabs of the installation that the reader may see. */
export const shownTabs = (): readonly InstallationTab[] => (me.value?.may.includes("operate") ? installationTabs : openTabs);

/** The address of a tab of the installation. */
export const installationTab = (tab: InstallationTab): Route => ({ ...room("installation"), tab }) as Route;

/** Shows the view or the tab that is `by` places after the present one. */
export function turn(by: number): void {
  const r = route.value;
  if (r.room === "sessions" && r.id !== undefined) go({ ...r, view: after(sessionViews, r.view, by) }, "replace");
  else if (r.room === "teams" && r.id !== undefined) go({ ...r, view: after(teamViews, r.view, by) }, "replace");
  else if (r.room === "task") go({ ...r, view: after(taskViews, r.view, by) }, "replace");
  else if (r.room === "swarm") go({ room: "swarm", tab: after(swarmTabs, r.tab, by) }, "replace");
  else if (r.room === "installation") go(installationTab(after(shownTabs(), r.tab, by)), "replace");
}
