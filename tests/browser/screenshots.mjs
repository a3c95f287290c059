// The pictures in docs/report: node tests/browser/screenshots.mjs ROLLCALL CHROMIUM, from the repository's root.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

import { Browser } from "./chromium.mjs";

const [rollcall, chromium] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "rollcall-screenshots-"));
const strict = '<head><meta http-equiv="Content-Security-Policy" content="default-src \'none\'">';
const size = { width: 1100, height: 800 };

// The path of the example of that name, whatever its chapter.
function example(name) {
  const files = readdirSync("scenarios", { recursive: true });
  return join("scenarios", files.find(file => basename(file) === `${name}.json`));
}

// Of scenarios, or of any path; several are one page.
function report(...subjects) {
  const paths = subjects.map(subject => subject.includes("/") ? subject : example(subject));
  const file = join(folder, `${subjects.join("-").replaceAll("/", "_")}.html`);
  execFileSync(rollcall, ["view", ...paths, "-o", file], { stdio: "ignore" });
  return file;
}

// Name, scenario, how to open it, what to do then.
const views = [
  ["first-screen", "uneven_inputs", {}],
  ["dark", "uneven_inputs", { dark: true }],
  ["divergence", "uneven_inputs", {}, async page => {
    await page.key("g");
    await page.value(`document.getElementById("timeline-title").scrollIntoView()`);
  }],
  ["folded", "thousand_ranks", {}, page => page.value(`document.getElementById("timeline-title").scrollIntoView()`)],
  ["circle", "crossed_groups", {}],
  ["narrow", "crossed_groups", { width: 700, height: 1150, dark: true }],
  ["narrow-light", "hook_too_short", { width: 700, height: 1150 }],
  ["wide", "hook_too_short", { width: 1400, height: 900 }],
  ["wide-dark", "swapped_collectives", { width: 1400, height: 900, dark: true }],
  ["compared", ["uneven_inputs", "uneven_inputs_join"], { height: 1450 }],
  ["diagnosis", "tests/data/flight_recorder/skipped_rank_branch_8/pickle", { height: 1300 }],
  ["forbidden", "uneven_inputs", { strict: true }],
];

const browser = await Browser.launch(chromium);
mkdirSync("docs/report", { recursive: true });
for (const [name, scenario, options, act] of views) {
  const file = report(...[scenario].flat());
  if (options.strict) writeFileSync(file, readFileSync(file, "utf8").replace("<head>", strict));
  const view = { width: options.width ?? size.width, height: options.height ?? size.height };
  const page = await browser.open(pathToFileURL(file).href, { ...view, dark: options.dark });
  if (!options.strict) {
    await page.until(`[...document.querySelectorAll("section.timeline")].every(({ dataset }) => dataset.ready === "yes")`);
  }
  await act?.(page);
  const y = await page.value("scrollY");
  await page.screenshot(`docs/report/${name}.png`, { x: 0, y, ...view });
  await page.close();
}
await browser.close();
rmSync(folder, { recursive: true });
