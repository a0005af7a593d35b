// Measures ten tasks of a person in the console: clicks, key presses and seconds from the start page to the answer, in a real Chromium on a
// real Waggle. Prints the table of docs/CONSOLE.md. Needs bin/waggle and chromium; the seconds are of a machine that does nothing else.
import { staged, url } from "./demo.mjs";
import { fill } from "./runs.mjs";

const line = (title) => `.sessions .line:has-text("${title}")`;

/** Goes from the start page to a session of the list. */
async function openSession(p, title) {
  await p.click('nav a[href="/sessions"]');
  await p.click(`${line(title)} .title`);
}

const planned = "Write hello to hello.md";

/** The tasks: each begins on the start page, acts as a person would, and ends when the answer is visible. */
const tasks = {
  "Find today's failed run and its cause": async (p) => {
    await p.click('.counts a:has-text("failed today")');
    await p.click(`${line("How do bees dance?")} .title`);
    await p.see(':text("the library is closed"), .item.failed, .fault');
  },
  "See the cost of a run": async (p) => {
    await openSession(p, planned);
    await p.see(".session .head .facts");
  },
  "Approve from a phone": async (p) => {
    await p.click('nav a[href="/questions"]');
    await p.click('.question:has-text("shopping.md") [data-answer="approve"]');
    await p.see('.result:has-text("Your answer counts")');
  },
  "Find the slow call": async (p) => {
    await openSession(p, planned);
    await p.click("#tab-trace");
    await p.see(".trace .kind-tool .long");
  },
  "Compare two runs": async (p) => {
    await p.click('nav a[href="/sessions"]');
    await p.click(`${line("what does notes.md say?")} .pick`);
    await p.click(`${line("What is 17 * 23?")} .pick`);
    await p.click('.several button:has-text("Compare")');
    await p.see('.head :text("differences")');
  },
  "See who approved a call, and when": async (p) => {
    await openSession(p, planned);
    await p.see(".item.decision");
  },
  "Go back to the moment before": async (p) => {
    await openSession(p, planned);
    await p.click(".scrubber input", { position: { x: 60, y: 8 } });
    await p.see(".session.past");
  },
  "See which agent is down": async (p) => {
    await p.click('nav a[href="/swarm"]');
    await p.see(".agents > li");
  },
  "Stop everything of one user": async (p) => {
    await p.click('nav a[href="/sessions"]');
    await p.type(".sessions [data-search]", "by:anonymous");
    await p.click('.states button:has-text("Needs approval")');
    await p.click('.columns input[type="checkbox"]');
    await p.click('.several button:has-text("Stop")');
    await p.see(".face, .sessions .state-cancelled");
  },
  "Export a run": async (p) => {
    await openSession(p, planned);
    await p.click('.session .head button:has-text("Export log")');
  },
};

/** A page that counts. */
async function counted(browser, phone) {
  const page = await browser.newPage({ viewport: phone ? { width: 380, height: 800 } : { width: 1440, height: 860 } });
  page.setDefaultTimeout(20_000);
  await page.goto(`${url}/`);
  await page.waitForSelector(".ideas li");
  let clicks = 0;
  return {
    click: async (selector, how) => {
      await page.locator(selector).first().click(how);
      clicks++;
    },
    type: (selector, text) => page.locator(selector).first().fill(text),
    see: (selector) => page.locator(selector).first().waitFor(),
    end: () => page.close(),
    count: () => clicks,
  };
}

await staged(async (browser) => {
  const { stop } = await fill();
  console.log("| Task | Clicks | Seconds |\n|---|---|---|");
  for (const [name, act] of Object.entries(tasks)) {
    const p = await counted(browser, name.includes("phone"));
    const began = performance.now();
    await act(p).catch((error) => console.error(`${name}: ${error.message.split("\n")[0]} ${error.message.split("\n").at(-2)}`));
    console.log(`| ${name} | ${p.count()} | ${((performance.now() - began) / 1000).toFixed(1)} |`);
    await p.end();
  }
  await stop();
});
