// Draws the web page of a made-up machine: node pictures.mjs URL FOLDER
//
// A gpurota-web at URL serves the page's files; the data that the page shows are made here. The
// pictures go to FOLDER: 8 and 16 GPUs, wide and as a phone, light and dark, and web-page.png.
// README shows a copy of web-page.png, which is in docs/images. Used by tests/e2e/web_browser.bats.
import { chromium } from "playwright-core";

const [url, folder] = process.argv.slice(2);
const NOW = "2026-11-21T01:00:00.000Z";
const GIB = 2 ** 30;
const SIZES = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
function before(minutes) { return new Date(Date.parse(NOW) - minutes * 60000).toISOString(); }

// The first 8 GPUs are those of `gpurota top` in README (src/cli/status/status_samples_test.cpp,
// "server"): both pictures show one machine at one time.

// A GPU. `changes` has what differs from a free GPU of 80 GiB.
function gpu(i, changes) {
  return {
    label: `${i}`, uuid: `GPU-${i}`, name: "NVIDIA H100 80GB HBM3", is_instance: false, state: "available", memory_bytes: 80 * GIB, used_bytes: 0, unified: false,
    reserved_bytes: 0, slices_bytes: 0, swap_bytes: 0, unreserved_bytes: 0, hidden_bytes: 0, available_bytes: 80 * GIB, swap_available_bytes: 80 * GIB, leases: 0,
    utilisation_percent: 0, power_mw: 71000, power_limit_mw: 700000, temperature_celsius: 31, slowdown_celsius: 87, sm_clock_mhz: 345, clock_limits: [],
    ecc_uncorrected: 0, xid_errors: 0, takes_turns: false, waiting_for_turn: 0, turn_holder: null, ...changes,
  };
}

function lease(id, user, share, minutes, gpus, changes = {}) {
  return {
    lease_id: id, kind: "run", share, state: "active", user, as_name: null, since: before(minutes), ends: null, priority: 0,
    gpus: gpus.map(([i, limit, used, more]) => ({
      label: `${i}`, uuid: `GPU-${i}`, limit_bytes: limit === null ? null : limit * GIB, used_bytes: used * GIB, processes: 1, turn: null, turn_position: null,
      moved_out_bytes: null, unused_since: null, ...more,
    })), ...changes,
  };
}

const busy = { state: "in_use", utilisation_percent: 97, power_mw: 694000, temperature_celsius: 64, clock_limits: ["power"], leases: 1 };
function whole(i, used) { return gpu(i, { ...busy, used_bytes: used * GIB, slices_bytes: used * GIB, reserved_bytes: 80 * GIB, available_bytes: 0, swap_available_bytes: 0 }); }

function machine(count) {
  const gpus = [
    gpu(0, { ...busy, utilisation_percent: 41, power_mw: 305000, temperature_celsius: 49, clock_limits: [], leases: 2, used_bytes: 28 * GIB, slices_bytes: 28 * GIB, reserved_bytes: 32 * GIB, available_bytes: 48 * GIB }),
    gpu(1, { ...busy, leases: 2, used_bytes: 64 * GIB, swap_bytes: 64 * GIB, available_bytes: 10 * GIB, takes_turns: true, waiting_for_turn: 1, turn_holder: "L18" }),
    whole(2, 71), whole(3, 71),
    gpu(4, { state: "held", available_bytes: 0, swap_available_bytes: 0 }),
    gpu(5, { state: "unreserved_use", used_bytes: 30 * GIB, unreserved_bytes: 30 * GIB, available_bytes: 0, utilisation_percent: 12, power_mw: 160000 }),
    gpu(6, { state: "draining", available_bytes: 0, swap_available_bytes: 0 }),
    gpu(7, {}),
  ];
  for (let i = 8; i < count; ++i) gpus.push(i < 14 ? whole(i, 74) : gpu(i, {}));
  const leases = [
    lease("L11", "ann", "slice", 76, [[0, 20, 18]], { ends: "2026-11-21T02:19:00.000Z" }),
    lease("L12", "bob", "slice", 20, [[0, 12, 10]]),
    lease("L18", "eve", "swap", 90, [[1, 70, 60, { turn: "holding" }]]),
    lease("L19", "dave", "swap", 90, [[1, 70, 4, { turn: "waiting", turn_position: 1, moved_out_bytes: 48 * GIB }]]),
    lease("L21", "erin", "exclusive", 303, [[2, null, 71], [3, null, 71]]),
  ];
  if (count > 8) leases.push(lease("L30", "ml-team", "exclusive", 3000, [8, 9, 10, 11, 12, 13].map((i) => [i, null, 74])));
  return {
    time: NOW, level: "names", sign_in: "link", machines: 1, daemon: { up: true, version: "1.0", driver_version: "580.95.05", since: before(9000), driver_ok: true, store_ok: true },
    gpus, leases, bookings: [], leases_by_kind: { run: leases.length }, leases_by_share: { exclusive: leases.length - 4, slice: 2, swap: 2 }, findings: { unreserved_use: 1 },
    queue: { waiting: 1, gpus: 2, oldest_since: before(12), requests: [] },
  };
}

const browser = await chromium.launch({ executablePath: process.env.GPUROTA_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

async function draw(name, count, viewport, colorScheme) {
  const context = await browser.newContext({ viewport, colorScheme, locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.route(`${url}/api/**`, (route) => route.fulfill({ status: 503, json: { error: "not here" } }));
  // After this answer the browser asks again, which changes nothing.
  const body = `retry: 600000\n\ndata: ${JSON.stringify(machine(count))}\n\n`;
  await page.route(`${url}/api/live`, (route) => route.fulfill({ contentType: "text/event-stream", body }));
  await page.goto(`${url}/`);
  await page.locator(".compact").waitFor();
  await page.screenshot({ path: `${folder}/${name}.png` });
  const { height, width } = await page.evaluate(() => ({ height: document.querySelector(".compact").getBoundingClientRect().bottom, width: document.documentElement.scrollWidth }));
  if (viewport === SIZES.wide && height > viewport.height) throw new Error(`${count} GPUs do not fit on one screen: ${height} pixels`);
  if (width > viewport.width) throw new Error(`${name} is ${width} pixels wide`);
  await context.close();
}

for (const count of [8, 16]) {
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries(SIZES)) await draw(`page-${count}-${size}-${colorScheme}`, count, viewport, colorScheme);
  }
}
await draw("web-page", 8, { width: 1200, height: 460 }, "light");
await browser.close();
