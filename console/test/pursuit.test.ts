import { expect, test } from "vitest";
import { Pursuit } from "../src/log/pursuit.ts";

/** Counts up to what is wanted. */
class Counter {
  readonly pursuit = new Pursuit();
  wanted = 0;
  count = 0;
  /** Steps that are under way. */
  on = 0;

  to(n: number): Promise<void> {
    this.wanted = n;
    return this.pursuit.run(() => (this.count < this.wanted ? this.step() : undefined));
  }

  private async step(): Promise<void> {
    expect(++this.on).toBe(1);
    await Promise.resolve();
    if (this.wanted === 13) throw new Error("no");
    this.count++;
    this.on--;
  }
}

test("what is wanted while a step is under way is reached by those that follow, one at a time", async () => {
  const c = new Counter();
  const first = c.to(2);
  await c.to(5);
  await first;
  expect(c.count).toBe(5);
});

test("nothing that is wanted is lost, whenever it comes", async () => {
  for (let late = 0; late < 12; late++) {
    const c = new Counter();
    const works = [c.to(1)];
    for (let n = 0; n < late; n++) await Promise.resolve();
    works.push(c.to(2));
    await Promise.all(works);
    expect(c.count, `${late} turns later`).toBe(2);
  }
  const idle = new Counter();
  const works = [idle.to(0), idle.to(1)]; // nothing was to do, and then something is
  await Promise.all(works);
  expect(idle.count).toBe(1);
});

test("after a step that failed steps are done again", async () => {
  const c = new Counter();
  await expect(c.to(13)).rejects.toThrow("no");
  c.on = 0;
  await c.to(3);
  expect(c.count).toBe(3);
});
