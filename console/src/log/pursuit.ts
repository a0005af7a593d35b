/** Work in steps, one after the other, until nothing is left to do: for all who want it meanwhile, too. */
export class Pursuit {
  private on = false;

  /** Does the steps that `next` begins, unless they are being done: who does them sees then what is wanted now. */
  async run(next: () => Promise<void> | undefined): Promise<void> {
    if (this.on) return;
    this.on = true;
    try {
      for (let step = next(); step; step = next()) await step;
    } finally {
      this.on = false; // in the moment in which nothing was left
    }
  }
}
