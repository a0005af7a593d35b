import type { Step } from "@waggle-dev/client";

/** A step of a plan that is being edited. */
export interface Editable {
  step: Step;
  dropped: boolean;
}

/** The steps that are left of a plan. */
export function kept(steps: readonly Editable[]): Step[] {
  return steps.filter((s) => !s.dropped).map((s) => s.step);
}

/** The number of the first step that needs one that is dropped or comes later; 0 = none. */
export function dangling(steps: readonly Editable[]): number {
  const before = new Set<string>();
  for (const [i, { step, dropped }] of steps.entries()) {
    if (dropped) continue;
    if ((step.dependencies ?? []).some((d) => !before.has(d))) return i + 1;
    before.add(step.id);
  }
  return 0;
}

/** The steps with one of them at another place; the same list if it stands there already. */
export function moved(steps: readonly Editable[], id: string, to: number): readonly Editable[] {
  const from = steps.findIndex((s) => s.step.id === id);
  const one = steps[from];
  const place = Math.min(steps.length - 1, Math.max(0, to));
  return one === undefined || place === from ? steps : steps.toSpliced(from, 1).toSpliced(place, 0, one);
}
