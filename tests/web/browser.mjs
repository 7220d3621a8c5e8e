// Looks at the page as its readers do: node browser.mjs URL FOLDER WHAT [LINK [OTHER]]
//
// LINK and OTHER are links of `gpurota web`, made by different users. WHAT is one of:
//   views      each view, wide and as a phone, light and dark: axe finds no mistake, the content
//              security policy has to stop nothing, no other host is asked, and nothing is wider
//              than the screen; screenshots go to FOLDER
//   restart    prints what the page says while the daemon is stopped and started again
//   text       text that users wrote is shown as text
//   keys       views can be reached with the keyboard
//   paint      prints how long the first view takes
//   signed_in  as views, for a user who has opened LINK
//   actions    what such a user can do, by mouse and keyboard; prints each step
//   fleet      the machines, as views
//   wall       a page that only signed-in users may see: before signing in by LINK, signed in, and
//              signed out again
//   offered    what the user of LINK is asked when the same browser opens OTHER
//   sessions   ends a session other than that of LINK
//   items      what the user of LINK can do with the items of the array sweep; prints each step
// Used by tests/e2e/web_browser.bats.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [url, folder, what, link, other] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = ["now", "queue", "turns", "history", "hours", "events"];
const SIZES = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };

const browser = await chromium.launch({
  executablePath: process.env.GPUROTA_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
const problems = [];

// Opens a page; whatever the page should not do becomes a problem.
async function open(options = {}) {
  const context = await browser.newContext({ viewport: SIZES.wide, locale: "en-GB", ...options });
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !message.text().includes("Failed to load resource")) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => { problems.push("a dialog: foreign text was run"); dialog.dismiss(); });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${url}/`)) problems.push(`a request to ${request.url()}`);
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  return page;
}

// The page follows a key or a click after a moment: calls `holds` until it returns true. If `holds`
// is still false after 10 s, that is a problem.
async function soon(page, holds, problem) {
  for (const end = Date.now() + 10000; Date.now() < end; await page.waitForTimeout(20)) {
    if (await holds()) return;
  }
  problems.push(typeof problem === "string" ? problem : await problem());
}

async function show(page, view) {
  await page.goto(`${url}/#${view}`);
  await page.locator(".is-live").waitFor();
  const there = { now: ".gpu, .compact", jobs: ".jobs, main .empty", queue: "main table, main .empty", turns: ".turns, main .empty", hours: ".hours", history: ".chart canvas, main .empty", events: "main table, main .empty", machines: ".machines", sessions: ".sessions" }[view];
  await page.locator(there).first().waitFor();
  await page.waitForTimeout(view === "history" || view === "now" ? 400 : 50); // lines are drawn after the first picture
}

async function check(page, name) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) problems.push(`${name}: ${wide} pixels wider than the screen`);
  // Evaluated by the debugger: the page's policy would refuse a script that is added to the page.
  const result = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
  for (const { id, nodes } of result.violations) problems.push(`${name}: axe ${id}: ${nodes.slice(0, 3).map((node) => node.html).join(" ")}`);
}

// 90 days of figures of eight GPUs, with a gap, as from a machine that has run for 90 days.
function ninetyDays() {
  const steps = 600, step_seconds = 12900, until = Date.now();
  const figures = (gpu, most) => Array.from({ length: steps }, (_, i) =>
    i > 100 && i < 120 ? null : Math.round(most * (0.5 + 0.4 * Math.sin(i / 7 + gpu))));
  const since = new Date(until - steps * step_seconds * 1000).toISOString();
  const gpus = Array.from({ length: 8 }, (_, gpu) => {
    const row = { uuid: `GPU-${gpu}`, label: `${gpu}` };
    for (const [name, most] of [["utilisation_percent", 100], ["used_bytes", 8e10], ["power_mw", 7e5], ["temperature_celsius", 90]]) {
      row[name] = figures(gpu, most);
      row[`max_${name}`] = figures(gpu, most * 1.1);
    }
    return row;
  });
  return { since, until: new Date(until).toISOString(), first: since, step_seconds, steps, gpus };
}

async function showCalendar(page) {
  await page.route(`${url}/api/history/90d`, (route) => route.fulfill({ json: ninetyDays() }));
  await show(page, "history");
  await page.getByLabel("90 d").check();
  await page.locator(".calendar").waitFor();
}

async function views() {
  const first = await open();
  await show(first, "now");
  const free = await first.locator(".free-line").innerText();
  if (!/^free: \d+ of \d+ GPUs?, [\d.]+ GiB$/.test(free)) problems.push(`the head line says '${free}'`);
  await first.context().close();
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      const page = await open({ colorScheme, viewport });
      for (const view of VIEWS) {
        await show(page, view);
        const name = `${view}-${size}-${colorScheme}`;
        await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
        await check(page, name);
      }
      await showCalendar(page);
      await page.screenshot({ path: `${folder}/calendar-${size}-${colorScheme}.png`, fullPage: true });
      await check(page, `calendar-${size}-${colorScheme}`);
      await page.context().close();
    }
  }
  // With a zoom of 200 %, the page has half as many CSS pixels. Nothing moves for a user who wants
  // reduced motion.
  const page = await open({ viewport: { width: 720, height: 450 }, deviceScaleFactor: 2, reducedMotion: "reduce" });
  for (const view of VIEWS) {
    await show(page, view);
    await check(page, `${view} at 200 %`);
  }
  const moving = await page.evaluate(() => document.getAnimations().length);
  if (moving > 0) problems.push(`${moving} animations where reduced motion is wanted`);
}

async function restart() {
  const page = await open();
  await show(page, "now");
  console.log("live");
  await page.locator(".banner:not([hidden])").first().waitFor({ timeout: 60000 });
  console.log(`gone: ${await page.locator(".banner:not([hidden])").first().textContent()}`);
  await page.screenshot({ path: `${folder}/gone.png` });
  await page.locator(".is-live").waitFor({ timeout: 60000 });
  console.log("back");
}

async function text() {
  const page = await open();
  await show(page, "now");
  await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
  if ((await page.content()).includes("secret")) problems.push("a note is on the page");
  if ((await page.locator("main img, main script").count()) > 0) problems.push("foreign text became markup");
}

async function keys() {
  const page = await open();
  await show(page, "now");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter"); // "skip to the content"
  await soon(page, () => page.evaluate(() => document.activeElement?.id === "content"), "the first Tab does not lead to the content");
  await page.locator("nav a", { hasText: "History" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".ranges").first().waitFor(); // the ranges of the charts come with their data
  await page.locator(".ranges input").first().focus();
  await page.keyboard.press("ArrowRight");
  await soon(page, () => page.getByLabel("1 h", { exact: true }).isChecked(), "the arrow keys do not choose a range");
  await soon(page, async () => (await page.title()) === "History – gpurota", async () => `the title is ${await page.title()}`);
}

const ROUNDS = 7;
function median(figures) { return [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)]; }
function report(what, figures) {
  console.log(`${what}: median ${Math.round(median(figures))} ms (least ${Math.round(Math.min(...figures))}, most ${Math.round(Math.max(...figures))}; ${figures.length} times)`);
}

// The page, and the time of its first paint, in a new browser context with an empty cache.
async function firstPaint(path) {
  const page = await open();
  await page.goto(`${url}/${path}`);
  const first = await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  return [page, await first.jsonValue()];
}

async function paint() {
  const plain = [], first = [], whole = [], answered = [], drawn = [];
  for (let round = 0; round < ROUNDS; ++round) {
    const [bare, least] = await firstPaint("healthz");
    plain.push(least);
    await bare.context().close();
    const [page, painted] = await firstPaint("#now");
    first.push(painted);
    await page.locator(".gpu").first().waitFor();
    whole.push(await page.evaluate(() => performance.now()));
    await page.goto(`${url}/#history`);
    await page.locator(".chart canvas").first().waitFor();
    await page.waitForTimeout(500);
    const times = await page.evaluate(async () => {
      const radio = [...document.querySelectorAll(".ranges label")].find((each) => each.textContent === "90 d").querySelector("input");
      const begin = performance.now();
      radio.click();
      const got = await new Promise((done) => {
        new PerformanceObserver((list) => {
          const entry = list.getEntriesByName(`${location.origin}/api/history/90d`)[0];
          if (entry) done(entry.responseEnd);
        }).observe({ type: "resource" });
      });
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      return [got - begin, performance.now() - begin];
    });
    answered.push(times[0]);
    drawn.push(times[1]);
    if (round === 0) await page.screenshot({ path: `${folder}/history-90d.png`, fullPage: true });
    await page.context().close();
  }
  report("baseline, a page of one word: first paint", plain);
  report("Now: first paint", first);
  report("Now: the first GPU is there", whole);
  report("History, 90 days: answered", answered);
  report("History, 90 days: drawn", drawn);
}

// A page whose user has signed in by LINK.
async function signIn(options) {
  const page = await open(options);
  await page.goto(link);
  await page.getByRole("dialog").getByRole("button", { name: /^Sign in as / }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await soon(page, () => !page.url().includes("sign-in"), "the secret is still in the address");
  return page;
}

async function signed_in() {
  const storageState = await (await signIn()).context().storageState();
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      const page = await open({ colorScheme, viewport, storageState });
      const picture = async (what) => {
        const name = `mine-${what}-${size}-${colorScheme}`;
        await page.screenshot({ path: `${folder}/${name}.png`, fullPage: !what.includes("dialog") });
        await check(page, name);
      };
      await show(page, "now");
      await page.locator("tr.mine").first().waitFor();
      await picture("now");
      await page.getByRole("button", { name: "Reserve GPUs" }).click();
      await page.getByLabel("A slice of each").check();
      await picture("dialog-reserve");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: /^Release / }).first().click();
      await picture("dialog-release");
      await page.keyboard.press("Escape");
      await show(page, "queue");
      await page.locator(".tag").first().waitFor();
      await picture("queue");
      // Where the page has only totals, the next views show what belongs to the user.
      await show(page, "events");
      await page.getByRole("cell", { name: "lease made" }).first().waitFor();
      await picture("events");
      await show(page, "jobs");
      await page.getByRole("button", { name: "Output of talker" }).click();
      await page.getByRole("log").getByText("said 3").waitFor();
      await picture("jobs");
      await page.getByRole("link", { name: /Signed in as/ }).click();
      await page.locator(".sessions .tag").first().waitFor();
      await picture("sessions");
      await page.context().close();
    }
  }
}

// Takes and checks a picture for each colour scheme and size; `begin` shows the view.
async function pictures(name, begin) {
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      const page = await open({ colorScheme, viewport });
      await begin(page);
      await page.screenshot({ path: `${folder}/${name}-${size}-${colorScheme}.png`, fullPage: true });
      await check(page, `${name}-${size}-${colorScheme}`);
      await page.context().close();
    }
  }
}

async function fleet() {
  await pictures("machines", async (page) => {
    await show(page, "machines");
    await page.locator(".machines").getByText("asking…").first().waitFor({ state: "detached" });
  });
  const page = await open();
  await show(page, "now");
  await page.locator("nav a", { hasText: "Machines" }).click();
  await page.locator(".machines tbody tr").first().waitFor();
  for (const row of await page.locator(".machines tbody tr").all()) console.log((await row.innerText()).replace(/\s+/g, " "));
}

async function wall() {
  await pictures("wall", async (page) => {
    await page.goto(url);
    await page.getByText("Sign in to see this machine").waitFor();
  });
  const page = await signIn();
  await page.locator(".gpu").first().waitFor();
  await page.locator(".is-live").waitFor();
  for (const view of VIEWS) await show(page, view);
  console.log("seen");
  await page.reload();
  await page.locator(".gpu, .events, main table").first().waitFor();
  console.log("seen again");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("Sign in to see this machine").waitFor();
  await soon(page, async () => (await page.locator(".gpu, main table").count()) === 0, "what was seen is still there");
  console.log("gone");
}

// A signed-in user opens OTHER, a link of another user. The page names the other account, and does
// nothing before the user agrees.
async function offered() {
  const page = await signIn();
  const who = page.getByRole("link", { name: /Signed in as/ });
  const mine = await who.textContent();
  const openOther = async () => {
    await page.goto("about:blank");
    await page.goto(other);
    await page.getByRole("dialog").getByRole("heading", { name: /^Sign in as nobody\?$/ }).waitFor();
  };
  await openOther();
  await soon(page, () => !page.url().includes("sign-in"), "the secret is still in the address");
  await check(page, "offered");
  await page.getByRole("dialog").getByText(/^You are signed in as/).waitFor();
  await page.screenshot({ path: `${folder}/offered.png` });
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  if ((await who.textContent()) !== mine) problems.push("the link acted without an answer");
  console.log("declined");
  await openOther();
  await page.getByRole("dialog").getByRole("button", { name: "Sign in as nobody" }).click();
  await page.getByRole("link", { name: "Signed in as nobody" }).waitFor();
  console.log("accepted");
}

// Ends a session other than the page's own; the list must then be without that session.
async function sessions() {
  const page = await signIn();
  await page.getByRole("link", { name: /Signed in as/ }).click();
  const other = page.locator(".sessions tr:not(.mine)").getByRole("button", { name: /^End / });
  await other.waitFor();
  await page.screenshot({ path: `${folder}/sessions.png` });
  await other.click();
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  if ((await other.count()) !== 1) problems.push("it was ended without an answer");
  await other.click();
  await page.getByRole("dialog").getByRole("button", { name: "End" }).click();
  await other.waitFor({ state: "detached" });
  console.log("ended");
}

// The items of the array sweep: the first has failed, two run, the last one waits.
async function items() {
  const page = await signIn();
  const row = (index) => page.locator("tr.item", { hasText: `sweep[${index}]` });
  const fold = page.getByRole("button", { name: "Items of sweep" });
  await page.locator("nav a", { hasText: "Jobs" }).click();
  await fold.click();
  await row(1).getByText("failed", { exact: true }).waitFor();
  await row(1).getByText("last run: exited with 3").waitFor();
  if ((await row(4).count()) !== 0) problems.push("an item is shown that has not begun");
  console.log("unfolded");
  await row(2).getByRole("button", { name: "Output of sweep[2]" }).click();
  await page.locator("pre", { hasText: "item 2" }).waitFor();
  console.log("output");
  await check(page, "items");
  await row(3).getByRole("button", { name: "Stop sweep[3]" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await row(3).getByText("cancelled", { exact: true }).waitFor();
  console.log("stopped");
  await row(4).getByText("running", { exact: true }).waitFor();
  console.log("next");
  await row(1).getByRole("button", { name: "Restart sweep[1]" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Restart" }).click();
  await row(1).getByRole("button", { name: "Stop sweep[1]" }).waitFor();
  console.log("restarted");
  await fold.click();
  await soon(page, async () => (await page.locator("tr.item").count()) === 0, "the items are not folded");
  console.log("folded");
}

// Steps are printed when the page shows what they have changed.
async function actions() {
  const page = await signIn();
  await page.getByRole("button", { name: "Reserve GPUs" }).focus();
  await page.keyboard.press("Enter");
  await soon(page, () => page.evaluate(() => Boolean(document.activeElement?.closest("dialog"))), "the focus is not in the dialog");
  await page.getByLabel("Note").fill("<b>by the page</b>");
  await page.getByLabel("For").fill("0.5");
  await page.keyboard.press("Enter");
  const row = page.locator("tr.mine", { hasText: "<b>by the page</b>" });
  await row.waitFor();
  console.log("reserved");
  await soon(page, () => page.evaluate(() => document.activeElement?.textContent === "Reserve GPUs"), "the focus does not come back from the dialog");
  await row.getByRole("button", { name: /^Extend/ }).click();
  await page.getByLabel("It ends in").fill("5");
  await page.getByRole("dialog").getByRole("button", { name: "Extend" }).click();
  await row.getByText(/ends in (4|5).h/).waitFor();
  console.log("extended");
  await row.getByRole("button", { name: /^Release/ }).click();
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  if ((await row.count()) !== 1) problems.push("it was released without an answer");
  await row.getByRole("button", { name: /^Release/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Release" }).click();
  await row.waitFor({ state: "detached" });
  console.log("released");
  await page.getByRole("button", { name: "Reserve GPUs" }).click();
  await page.getByLabel("GPUs", { exact: true }).fill("200");
  await page.getByRole("dialog").getByRole("button", { name: "Reserve" }).click();
  await page.getByRole("alert").getByText(/GPU/).waitFor();
  console.log(`refused: ${await page.getByRole("alert").textContent()}`);
  await page.keyboard.press("Escape");
  await page.locator("nav a", { hasText: "Jobs" }).click();
  await page.getByRole("button", { name: "Stop talker" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await page.getByRole("button", { name: "Start talker" }).waitFor();
  console.log("stopped");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await page.getByText("Sign in to see your jobs.").waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("dialog").getByText("gpurota web").waitFor();
  console.log("signed out");
  // A used link says so, and signs nobody in.
  await page.goto("about:blank");
  await page.goto(link);
  await page.getByText("You are not signed in").waitFor();
  console.log("used up");
}

try {
  await { signed_in, actions, items, offered, fleet, wall, sessions, views, restart, text, keys, paint }[what]();
} catch (error) {
  problems.push(String(error));
}
await browser.close();
for (const problem of new Set(problems)) console.log(`PROBLEM ${problem}`);
process.exit(problems.length > 0 ? 1 : 0);
