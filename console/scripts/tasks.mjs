// Measures ten tasks of a person in the console: clicks, key presses and seconds from the start page to the answer, in a real Chromium on a
// real Waggle. Prints the table of docs/CONSOLE.md. Needs bin/waggle and chromium; the seconds are of a machine that does nothing else.
import { staged, url } from "./demo.mjs";
import { fill } from "./runs.mjs";

const session = (title) => `.recent a:has-text("${title}"), .sessions .line:has-text("${title}") a`;
const planned = session("Write hello to hello.md");

/** The tasks: each begins on the start page, acts as a person would, and ends when the answer is in sight. */
const tasks = {
  "Find a failed run and its cause": async (p) => {
    await p.click('.strip a:has-text("failed")');
    await p.click(session("How do bees dance?"));
    await p.see(':text("the library is closed")');
  },
  "See the cost of a run": async (p) => {
    await p.click(planned);
    await p.see(".session .head .amounts");
  },
  "Approve from a phone": async (p) => {
    await p.click('nav a[href="/questions"]');
    await p.click('.question:has-text("shopping.md") [data-answer="approve"]');
    await p.see('.result:has-text("Your answer counts")');
  },
  "Find the slow call": async (p) => {
    await p.click(planned);
    await p.click("#tab-trace");
    await p.see(".trace .kind-tool .long");
  },
  "Compare two runs": async (p) => {
    await p.click('nav a[href="/sessions"]');
    await p.click('.sessions .line:has-text("what does notes.md say?") .pick');
    await p.click('.sessions .line:has-text("What is 17 * 23?") .pick');
    await p.click('.several :text("Compare")');
    await p.see(".compare .pair, .compare h2");
  },
  "See who approved": async (p) => {
    await p.click(planned);
    await p.see(".item.decision");
  },
  "Go back to the moment before": async (p) => {
    await p.click(planned);
    await p.click("#tab-trace");
    await p.click(".trace .kind-people .name");
    await p.click('.trace .detail button:has-text("Began with")');
    await p.see(".session.past");
  },
  "See which agent is down": async (p) => {
    await p.click('nav a[href="/swarm"]');
    await p.see(".agents > li");
  },
  "Stop everything of one user": async (p) => {
    await p.click('nav a[href="/sessions"]');
    await p.click('.states button:has-text("Waiting")');
    await p.click('.columns input[type="checkbox"], .columns .pick');
    await p.click('.several button:has-text("Stop")');
    await p.click("dialog.sure .primary, dialog.sure .danger");
    await p.see('.states button:has-text("Cancelled")');
  },
  "Export a run": async (p) => {
    await p.click(planned);
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
    click: async (selector) => {
      await page.locator(selector).first().click();
      clicks++;
    },
    see: (selector) => page.locator(selector).first().waitFor(),
    end: () => page.close(),
    count: () => clicks,
  };
}

await staged(async (browser) => {
  await fill();
  console.log("| Task | Clicks | Seconds |\n|---|---|---|");
  for (const [name, act] of Object.entries(tasks)) {
    const p = await counted(browser, name.includes("phone"));
    const began = performance.now();
    await act(p).catch((error) => console.error(`${name}: ${error.message.split("\n")[0]} ${error.message.split("\n").at(-2)}`));
    console.log(`| ${name} | ${p.count()} | ${((performance.now() - began) / 1000).toFixed(1)} |`);
    await p.end();
  }
});
