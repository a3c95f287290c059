// HTML reports in a real browser. Run by tests/browser/run, which says where rollcall and the browser are.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { Browser } from "./chromium.mjs";

const folder = mkdtempSync(join(tmpdir(), "rollcall-reports-"));
const source = process.env.ROLLCALL_SOURCE_DIR;
let browser;

before(async () => { browser = await Browser.launch(process.env.ROLLCALL_CHROMIUM); });
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

// The path of the example of that name, whatever its chapter.
function example(name) {
  const files = readdirSync(join(source, "scenarios"), { recursive: true });
  return join(source, "scenarios", files.find(file => basename(file) === `${name}.json`));
}

// The page of a scenario, as its URL. Any verdict will do.
function report(scenario) {
  const name = typeof scenario === "string" ? scenario : "made";
  const file = typeof scenario === "string" ? example(scenario) : join(folder, `${name}.json`);
  if (typeof scenario !== "string") writeFileSync(file, JSON.stringify({ version: 1, ...scenario }));
  const page = join(folder, `${name}.html`);
  const options = { stdio: ["ignore", "ignore", "pipe"] };
  try {
    execFileSync(process.env.ROLLCALL_CLI, ["run", "-q", file, "--report", `html=${page}`], options);
  } catch (error) {
    if (error.status !== 1) throw new Error(error.stderr.toString());
  }
  return pathToFileURL(page).href;
}

// The page of any paths, as its URL.
function view(name, ...paths) {
  const page = join(folder, `${name}.html`);
  execFileSync(process.env.ROLLCALL_CLI, ["view", ...paths, "-o", page], { stdio: ["ignore", "ignore", "pipe"] });
  return pathToFileURL(page).href;
}

const data = name => `document.getElementById("timeline").dataset.${name}`;
const isReady = `${data("ready")} === "yes"`;

async function open(scenario, options) {
  const page = await browser.open(report(scenario), options);
  await page.until(isReady);
  return page;
}

// Where the canvas is on the screen.
async function plot(page) {
  return page.value(`(() => {
    document.querySelector("canvas").scrollIntoView();
    const { left, top, width, height } = document.querySelector("canvas").getBoundingClientRect();
    return { left, top, width, height };
  })()`);
}

async function range(page) {
  const [from, to] = await page.value(`[Number(${data("from")}), Number(${data("to")})]`);
  return { from, to, span: to - from };
}

const colors = page => page.value(`(() => {
  const canvas = document.querySelector("canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = {};
  for (let i = 0; i < data.length; i += 4) {
    const color = [data[i], data[i + 1], data[i + 2]].join(",");
    seen[color] = (seen[color] ?? 0) + 1;
  }
  return seen;
})()`);

// 40 ranks whose steps differ in length, one of which leaves early.
const manyRanks = {
  name: "many ranks", world_size: 40, inputs: [8, ...Array(39).fill(9)],
  program: [{ for_each_input: "x", do: [
    { compute: "5ms" }, { all_reduce: { numel: 1000, label: "gradients" } }, { barrier: {} }] }],
};

for (const scenario of ["uneven_inputs", "crossed_groups", "stray_device", "counter", "size_mismatch"]) {
  test(`the report of ${scenario} opens without an error and without asking for anything`, async () => {
    const page = await open(scenario);
    await page.settle();
    assert.deepEqual(page.errors, []);
    assert.equal(page.requests.filter(url => !url.startsWith("data:")).length, 1);  // the page itself
    await page.close();
  });
}

test("with scripts off the sentence, the table, the graph and the sequences are there", async () => {
  const page = await browser.open(report("uneven_inputs"), { scripts: false });
  const { root } = await page.send("DOM.getDocument", { depth: -1 });
  const html = (await page.send("DOM.getOuterHTML", { nodeId: root.nodeId })).outerHTML;
  for (const words of ["rank 0 never called all_reduce #5", "State of every rank", "<svg", "Calls side by side",
                       "does not run here"]) {
    assert.ok(html.includes(words), words);
  }
  assert.deepEqual(page.errors.filter(error => !error.includes("script")), []);
  await page.close();
});

test("with styles and scripts forbidden the text can still be read", async () => {
  const url = report("uneven_inputs");
  const file = new URL(url).pathname.replace(".html", "-strict.html");
  const strict = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">';  // as Jenkins has it
  writeFileSync(file, readFileSync(new URL(url), "utf8").replace("<head>", `<head>${strict}`));
  const page = await browser.open(pathToFileURL(file).href);
  const shown = await page.value(`document.body.innerText`);
  assert.match(shown, /deadlock: rank 0 never called all_reduce #5/);
  assert.match(shown, /The timeline needs JavaScript/);
  assert.equal(await page.value(`getComputedStyle(document.querySelector("header")).borderLeftWidth`), "0px");
  const box = await page.value(`document.querySelector("svg").getBoundingClientRect().toJSON()`);
  assert.ok(box.width > 300 && box.height > 50);
  await page.close();
});

const CONTROL = 2, SHIFT = 8;  // of the DevTools protocol

test("the plain wheel scrolls the page past the timeline, which stays as it is", async () => {
  const page = await open("uneven_inputs", { height: 500 });
  const { left, top } = await plot(page);
  const all = await range(page);
  await page.value(`scrollTo(0, 0)`);
  const y = await page.value(`(scrollTo(0, document.querySelector("canvas").offsetTop - 200), scrollY)`);
  const box = await page.value(`document.querySelector("canvas").getBoundingClientRect().toJSON()`);
  for (let i = 0; i < 4; i++) await page.wheel(left + 300, box.top + 30, 100);
  await page.until(`scrollY > ${y + 300}`);
  assert.deepEqual(await range(page), all);
  await page.close();
});

test("Ctrl and the wheel zoom around the pointer, Shift and the wheel pan", async () => {
  const page = await open("uneven_inputs");
  const { left, top, width } = await plot(page);
  const all = await range(page);
  const x = left + 150 + (width - 150) / 4, y = top + 40;
  await page.wheel(x, y, -600, CONTROL);
  const near = await range(page);
  assert.ok(near.span < all.span * 0.6);
  const fixed = all.from + all.span / 4;
  assert.ok(Math.abs(near.from + near.span / 4 - fixed) < all.span * 0.01);
  await page.wheel(x, y, 200, SHIFT);
  const beside = await range(page);
  assert.ok(beside.from > near.from);
  assert.ok(Math.abs(beside.span - near.span) < 1);
  await page.close();
});

test("Shift and dragging pan", async () => {
  const page = await open("uneven_inputs");
  const { left, top } = await plot(page);
  await page.wheel(left + 600, top + 40, -1500, CONTROL);
  const before = await range(page);
  await page.drag([left + 600, top + 40], [left + 500, top + 40], SHIFT);
  assert.ok((await range(page)).from > before.from);
  await page.close();
});

test("dragging draws an area, of which the page has the sums over all its ranks", async () => {
  const page = await open("uneven_inputs");
  const { left, top, width, height } = await plot(page);
  const before = await range(page);
  await page.drag([left + 152, top + 26], [left + width - 2, top + height - 6]);
  const shown = await page.value(`document.querySelector(".details").innerText`);
  assert.match(shown, /ranks 0-3/);
  assert.match(shown, /calls 23/);
  assert.match(shown, /computing 115 ms/);  // 5 and three times 6 steps of 5 ms
  assert.match(shown, /in calls that never returned/);
  assert.deepEqual(await range(page), before);
  await page.drag([left + 152, top + 26], [left + width - 2, top + 40]);
  assert.match(await page.value(`document.querySelector(".details").innerText`), /rank 0[^]*computing 25 ms/);
  await page.close();
});

test("the sums of a folded row are those of all its ranks", async () => {
  const page = await open(manyRanks);
  const { left, top, width, height } = await plot(page);
  await page.drag([left + 152, top + 26], [left + width - 2, top + height - 6]);
  const shown = await page.value(`document.querySelector(".details").innerText`);
  assert.match(shown, /ranks 0-39/);
  assert.match(shown, /computing 1.795 s/);  // 39 times 9 and 8 steps of 5 ms
  await page.close();
});

test("keys work on a fresh page, W A S D as in Perfetto, and not while something is typed", async () => {
  const page = await open("uneven_inputs");
  const all = await range(page);
  await page.key("w");
  const near = await range(page);
  assert.ok(near.span < all.span);
  await page.key("d");
  assert.ok((await range(page)).from > near.from);
  await page.key("a");
  await page.key("s");
  await page.key("s");
  assert.deepEqual(await range(page), all);
  await page.key("/");
  await page.type("wsad");
  assert.deepEqual(await range(page), all);
  await page.close();
});

test("plus zooms on the chosen call", async () => {
  const page = await open("uneven_inputs");
  await page.key("g");
  await page.key("+");
  await page.key("+");
  const { from, to } = await range(page);
  assert.ok(from < 30e6 && 30e6 < to, `${from} to ${to}`);  // the call begins at 30 ms
  await page.close();
});

test("the address of the page leads to the chosen call, also in a folded row", async () => {
  for (const [scenario, key] of [["uneven_inputs", "g"], [manyRanks, "."]]) {
    const page = await open(scenario);
    await page.key(key);
    const address = await page.value(`location.hash`);
    assert.match(address, /^#timeline\.\d+\.\d+\.\d+$/);
    const title = await page.value(`document.querySelector(".details strong").innerText`);
    await page.close();
    const linked = await browser.open(report(scenario) + address);
    await linked.until(isReady);
    assert.equal(await linked.value(`document.querySelector(".details strong")?.innerText`), title);
    assert.deepEqual(linked.errors, []);
    await linked.close();
  }
  const page = await browser.open(`${report("uneven_inputs")}#timeline.9.9.9`);  // of no call
  await page.until(isReady);
  assert.deepEqual(page.errors, []);
  await page.close();
});

test("a button copies the command that repeats the run", async () => {
  const page = await open("uneven_inputs");
  await page.value(`navigator.clipboard.writeText = async text => { window.copied = text; }`);
  await page.value(`document.querySelector("button.copy").click()`);
  await page.until(`window.copied !== undefined`);
  assert.match(await page.value(`window.copied`), /^rollcall run .*uneven_inputs.json --seed 0$/);
  assert.match(await page.value(`document.querySelector("button.copy + .note").innerText`), /copied/);
  await page.close();
});

test("the calls in sight are a table, too, for whoever hears the page", async () => {
  const page = await open("uneven_inputs");
  const rows = `document.querySelectorAll("details.calls tbody tr")`;
  assert.equal(await page.value(`${rows}.length`), 0);
  await page.value(`document.querySelector("details.calls").open = true`);
  await page.until(`${rows}.length === 23`);
  assert.match(await page.value(`${rows}[22].innerText`), /rank 3\s+all_reduce #5.*never returned/);
  assert.match(await page.value(`document.querySelector("svg").getAttribute("aria-label")`),
               /ranks 1-3 wait for rank 0/);
  await page.close();
});

test("what is printed is the whole timeline, light and as wide as the paper, and no column is lost", async () => {
  const page = await open("uneven_inputs", { dark: true });
  await page.key("w");
  const near = await range(page);
  await page.send("Emulation.setEmulatedMedia", { media: "print" });
  await page.value(`dispatchEvent(new Event("beforeprint"))`);
  assert.ok((await colors(page))["255,255,255"] > 1000);
  await page.send("Emulation.setDeviceMetricsOverride", { width: 718, height: 1000, deviceScaleFactor: 1, mobile: false });
  await page.settle();
  assert.equal(await page.value(`[...document.querySelectorAll(".scroll, svg")].filter(each => each.scrollWidth > 718).length`), 0);
  assert.ok(await page.value(`document.documentElement.scrollWidth <= innerWidth`));
  await page.value(`dispatchEvent(new Event("afterprint"))`);
  await page.send("Emulation.setEmulatedMedia", { media: "" });
  await page.settle();
  assert.ok(Math.abs((await page.value(`Number(${data("from")})`)) - near.from) < 1);
  const { data: pdf } = await page.send("Page.printToPDF", { printBackground: true });
  assert.ok(pdf.length > 10000);
  assert.deepEqual(page.errors, []);
  await page.close();
});

test("hovering a call tells what it is", async () => {
  const page = await open("uneven_inputs");
  const { left, top, width } = await plot(page);
  await page.mouse("mouseMoved", left + width - 20, top + 24 + 30);  // rank 1's last call, which never returned
  await page.settle();
  let shown = "";
  for (let y = top + 30; !shown.includes("never returned") && y < top + 200; y += 8) {
    await page.mouse("mouseMoved", left + width - 20, y);
    await page.settle();
    shown = await page.value(`document.querySelector(".tip").innerText`);
  }
  for (const words of ["all_reduce #5", "rank", "world", "float32 x 1000, SUM", "gradients", "uneven_inputs.json:14:7"]) {
    assert.ok(shown.includes(words), `${words} in ${shown}`);
  }
  await page.close();
});

test("the keyboard zooms, pans, folds, finds and selects", async () => {
  const page = await open(manyRanks);
  await page.value(`document.querySelector("canvas").focus()`);
  const all = await range(page);
  await page.key("+");
  await page.key("+");
  const near = await range(page);
  assert.ok(near.span < all.span);
  await page.key("ArrowRight");
  assert.ok((await range(page)).from > near.from);
  await page.key("0");
  assert.deepEqual(await range(page), all);
  const folded = Number(await page.value(data("lines")));
  await page.key("f");
  assert.ok(Number(await page.value(data("lines"))) >= folded + 38);
  await page.key("f");
  await page.key("g");
  assert.match(await page.value(`document.querySelector(".details").innerText`), /never returned/);
  assert.ok((await range(page)).span < all.span / 1.1);
  await page.key(",");
  assert.doesNotMatch(await page.value(`document.querySelector(".details").innerText`), /never returned/);
  await page.key("/");
  assert.equal(await page.value(`document.activeElement.tagName`), "INPUT");
  await page.close();
});

test("ranks with the same story are one row, which a click on its label unfolds", async () => {
  const page = await open("thousand_ranks");
  assert.ok(Number(await page.value(data("lines"))) <= 4);
  const { left, top } = await plot(page);
  await page.click(left + 40, top + 34);
  assert.ok(Number(await page.value(data("lines"))) >= 1000);
  await page.close();
});

test("search says which match of how many is chosen, and is red where there is none", async () => {
  const page = await open("uneven_inputs");
  const said = () => page.value(`document.querySelector(".found").textContent`);
  await page.key("/");
  await page.type("all_reduce #3");
  assert.equal(await said(), "4 matches");
  const seen = [];
  for (let i = 0; i < 5; i++) {
    await page.key("Enter");
    seen.push(await said());
  }
  assert.deepEqual(seen, ["1 of 4", "2 of 4", "3 of 4", "4 of 4", "1 of 4"]);
  await page.type("4");
  assert.equal(await said(), "0 matches");
  assert.equal(await page.value(`getComputedStyle(document.querySelector(".found")).color`), "rgb(198, 40, 40)");
  assert.equal(await page.value(`document.querySelector(".tools input").getAttribute("aria-invalid")`), "true");
  await page.close();
});

test("search counts, dims the rest and goes from match to match", async () => {
  const page = await open(manyRanks);
  const before = await colors(page);
  await page.value(`document.querySelector("input").focus()`);
  await page.type("barrier #3");
  assert.equal(await page.value(`document.querySelector(".tools .note").textContent`), "40 matches");
  assert.notDeepEqual(await colors(page), before);
  await page.key("Enter");
  assert.match(await page.value(`document.querySelector(".details").innerText`), /^barrier #3/);
  assert.equal(await page.value(`document.querySelector(".tools .note").textContent`), "1 of 2 in rows, 40 matches");
  await page.key("Escape");
  assert.equal(await page.value(`document.querySelector(".tools .note").textContent`), "");
  await page.close();
});

test("the place where the culprit's call is missing is marked, and its calls, which are right, are not red", async () => {
  const page = await open("uneven_inputs");
  const seen = await colors(page);
  assert.ok(seen["253,236,234"] > 1000, "the culprit's row");
  assert.ok(seen["244,227,189"] > 100, "calls that never returned");
  const { left, top, width } = await plot(page);
  const reds = (from, to) => page.value(`(() => {
    const canvas = document.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(${from}, 46, ${to - from}, 18);  // of rank 0's calls
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += data[i] === 198 && data[i + 1] === 40 ? 1 : 0;
    return count;
  })()`);
  const end = await page.value(`(() => { const { from, to } = document.getElementById("timeline").dataset;
    return Math.floor(150 + (29.9e6 - from) / (to - from) * (${width} - 150)); })()`);
  assert.equal(await reds(152, end), 0);
  assert.ok(await reds(end, width) > 30, "the frame and the words");
  await page.close();
});

test("a wrong call of the culprit's is red", async () => {
  const page = await open({ name: "sizes", world_size: 4, program: [
    { compute: "1ms" }, { all_reduce: { numel: "rank == 3 ? 5 : 4" } }] });
  assert.ok((await colors(page))["198,40,40"] > 20);
  await page.close();
});

test("the statement that wrote too early is marked in the timeline", async () => {
  const page = await open("buffer_used_again");
  assert.ok((await colors(page))["198,40,40"] > 20);
  const shown = await page.value(`document.body.innerText`);
  assert.match(shown, /Written too early/);
  assert.doesNotMatch(shown, /first difference/);
  assert.doesNotMatch(shown, /Nothing depends on timing/);
  await page.close();
});

test("a call on the store is pale: it only waits", async () => {
  const page = await open({ name: "a key", world_size: 2, program: [
    { if: "rank == 0", do: [{ compute: "5ms" }, { store_set: { key: "ready", value: "1" } }] }, { store_get: "ready" }] });
  const seen = await colors(page);
  assert.ok(seen["219,232,247"] > 1000, "rank 1's wait for the key");
  assert.deepEqual(page.errors, []);
  await page.close();
});

test("in the dark the page and the timeline are dark", async () => {
  const page = await open("uneven_inputs", { dark: true });
  assert.equal(await page.value(`getComputedStyle(document.body).backgroundColor`), "rgb(13, 17, 23)");
  assert.ok((await colors(page))["13,17,23"] > 1000);
  await page.close();
});

test("hostile names are shown as text", async () => {
  const hostile = `</script><img src=x onerror="document.title='owned'">'"`;
  const page = await open({
    name: hostile, world_size: 2, groups: { [hostile]: [0, 1] },
    program: [{ print: hostile }, { all_reduce: { numel: 4, label: hostile } },
              { all_reduce: { numel: 4, label: "\u05d0\u202e".repeat(5000) } },
              { if: "rank == 0", do: [{ barrier: { group: hostile, label: hostile } }] }],
  });
  const { left, top, width } = await plot(page);
  for (let x = left + 155; x < left + width; x += 60) {
    await page.mouse("mouseMoved", x, top + 30);
    await page.settle();
  }
  assert.deepEqual(page.errors, []);
  assert.equal(await page.value(`document.querySelectorAll("img").length`), 0);
  assert.notEqual(await page.value(`document.title`), "owned");
  assert.ok((await page.value(`document.querySelector(".scenario").innerText`)).includes(hostile));
  await page.close();
});

const areReady = `[...document.querySelectorAll("section.timeline")].every(({ dataset }) => dataset.ready === "yes")`;
const ranges = page => page.value(
    `[...document.querySelectorAll("section.timeline")].map(({ dataset }) => [dataset.from, dataset.to].map(Number))`);

test("the timelines of two runs move together until the reader parts them", async () => {
  const file = example;
  const page = await browser.open(view("two", file("uneven_inputs"), file("uneven_inputs_join")));
  await page.until(areReady);
  await page.settle();
  assert.equal(await page.value(`document.querySelectorAll("canvas").length`), 2);
  await page.value(`document.querySelectorAll("canvas")[1].focus()`);
  await page.key("+");
  await page.settle();
  const [first, second] = await ranges(page);
  assert.deepEqual(first, second);
  assert.match(await page.value(`document.querySelector("h1").innerText`), /before and after differ in verdict/);
  await page.value(`[...document.querySelectorAll("button")].find(each => each.innerText === "Move together").click()`);
  await page.key("+");
  await page.settle();
  assert.deepEqual((await ranges(page))[0], first);
  assert.notDeepEqual((await ranges(page))[1], first);
  assert.deepEqual(page.errors, []);
  await page.close();
});

for (const dump of ["tp_dp_crossed_4", "p2p_missing_recv_8", "healthy_batched_pipeline_8", "crashed_no_dump_4"]) {
  test(`the page of the dumps ${dump} opens without an error`, async () => {
    const page = await browser.open(view(dump, join(source, "tests/data/flight_recorder", dump, "pickle")));
    await page.until(areReady);
    await page.settle();
    assert.deepEqual(page.errors, []);
    assert.ok(Number(await page.value(data("slices"))) > 10);
    await page.close();
  });
}

test("a recorded trace can be looked at", async () => {
  const trace = join(folder, "trace.json.gz");
  execFileSync(process.env.ROLLCALL_CLI, ["run", "-q", join(source, "scenarios/uneven_inputs.json"), "--trace", trace]);
  const page = await browser.open(view("trace", trace));
  await page.until(areReady);
  assert.deepEqual(page.errors, []);
  assert.match(await page.value(`document.querySelector("h1").innerText`), /4 ranks, .* 3 never returned/);
  await page.close();
});

test("a long table has a filter", async () => {
  const page = await open({ name: "talkative", world_size: 30,
                            program: [{ print: "rank {rank} is here" }, { barrier: {} }] });
  const shown = () => page.value(`[...document.querySelectorAll("table.output tbody tr")].filter(row => !row.hidden).length`);
  assert.equal(await shown(), 30);
  await page.value(`document.querySelector("input[aria-label='Filter rows']").focus()`);
  await page.type("rank 17 here");
  assert.equal(await shown(), 1);
  assert.equal(await page.value(`document.querySelector("input[aria-label='Filter rows'] + .note").innerText`), "1 of 30");
  assert.deepEqual(page.errors, []);
  await page.close();
});

// The page of `rollcall test` over nine passing scenarios, even_0 to even_8, and a failing one.
function overview() {
  const cases = mkdtempSync(join(folder, "cases-"));
  const scenario = inputs => JSON.stringify({ version: 1, world_size: 2, inputs,
                                              program: [{ for_each_input: "x", do: [{ all_reduce: {} }] }] });
  for (let i = 0; i < 9; i++) writeFileSync(join(cases, `even_${i}.json`), scenario([3, 3]));
  writeFileSync(join(cases, "uneven.json"), scenario([2, 3]));
  const file = join(cases, "all.html");
  assert.throws(() => execFileSync(process.env.ROLLCALL_CLI, ["test", cases, "--report", `html=${file}`],
                                   { stdio: "ignore" }), { status: 1 });
  return pathToFileURL(file).href;
}

test("the overview of a test run shows what failed first, filters it and leads to the pages", async () => {
  const page = await browser.open(overview());
  const rows = `[...document.querySelectorAll("tbody tr")].filter(row => !row.hidden)`;
  await page.until(`document.querySelector("input[aria-label='Filter rows']") !== null`);
  assert.match(await page.value(`${rows}[0].innerText`), /uneven[^]*rank 0/);
  await page.value(`document.querySelector(".tools button[data-state=passed]").click()`);
  assert.equal(await page.value(`${rows}.length`), 9);
  await page.value(`document.querySelector(".tools button[data-state='']").click()`);
  await page.value(`document.querySelector("input[aria-label='Filter rows']").focus()`);
  await page.type("even_3");
  assert.equal(await page.value(`${rows}.length`), 1);
  const link = await page.value(`${rows}[0].querySelector("a").href`);
  assert.deepEqual(page.errors, []);
  await page.close();
  const linked = await browser.open(link);
  assert.match(await linked.value(`document.body.innerText`), /2 ranks finished/);
  await linked.close();
});

// A page of every kind, and of every sort of verdict.
const pages = {
  ...Object.fromEntries(["uneven_inputs", "crossed_groups", "hook_too_short", "swapped_collectives", "wrong_peer",
                         "ddp_unused_parameters", "buffer_used_again", "decision_by_timing", "cpu_tensor",
                         "thousand_ranks"].map(name => [name, () => report(name)])),
  "a diagnosis": () => view("accessible-dumps", join(source, "tests/data/flight_recorder/skipped_rank_branch_8/pickle")),
  "two runs": () => view("accessible-runs", example("uneven_inputs"), example("uneven_inputs_join")),
  "an overview": overview,
};

test("axe finds nothing, wide and light or narrow and dark", async t => {
  if (!process.env.ROLLCALL_AXE) return t.skip("no axe-core (npm install --global axe-core)");
  const axe = readFileSync(process.env.ROLLCALL_AXE, "utf8");
  for (const [name, url] of Object.entries(pages)) {
    for (const options of [{ width: 1400, height: 900 }, { width: 700, height: 900, dark: true }]) {
      const page = await browser.open(url(), options);
      await page.settle();
      await page.send("Runtime.evaluate", { expression: axe });
      const found = JSON.parse(await page.value(`axe.run().then(({ passes, violations }) => JSON.stringify({
        rules: passes.length, violations: violations.map(({ id, nodes }) => [id, nodes[0].html]) }))`));
      assert.ok(found.rules > 10, name);
      assert.deepEqual(found.violations, [], name);
      await page.close();
    }
  }
});

test("two runs of very different length have axes of their own at first", async () => {
  const page = await browser.open(view("lengths", example("ddp_uneven_inputs"), example("ddp_uneven_inputs_join")));
  await page.until(areReady);
  await page.settle();
  const [first, second] = await ranges(page);
  const [a, b] = [first[1] - first[0], second[1] - second[0]];
  const isLinked = await page.value(`[...document.querySelectorAll("button")].find(each => each.innerText === "Move together").ariaPressed`);
  assert.equal(isLinked, String(Math.max(a, b) <= 4 * Math.min(a, b)));
  assert.deepEqual(page.errors, []);
  await page.close();
});

test("at 700 pixels no table and no picture is cut off", async () => {
  for (const [name, url] of Object.entries(pages)) {
    const page = await browser.open(url(), { width: 700, height: 900 });
    await page.settle();
    const wide = `[...document.querySelectorAll(".scroll")].filter(each => each.scrollWidth > each.clientWidth)`;
    assert.equal(await page.value(`${wide}.length`), 0, name);
    assert.ok(await page.value(`document.documentElement.scrollWidth <= innerWidth`), name);
    await page.close();
  }
});

test("in a narrow window the page is no wider than the window", async () => {
  for (const name of ["uneven_inputs", "hook_too_short", "thousand_ranks"]) {
    const page = await open(name, { width: 380, height: 800 });
    await page.settle();
    assert.ok(await page.value(`document.documentElement.scrollWidth <= innerWidth`), name);
    await page.close();
  }
});

test("64 ranks with 200 calls each are less than 300 kB", async () => {
  const url = report({ name: "sixty-four", world_size: 64, faults: [{ kind: "jitter", fraction: 0.5 }],
                       program: [{ repeat: 200, do: [{ compute: "1ms" }, { all_reduce: { numel: 1000, label: "g" } }] }] });
  const bytes = readFileSync(new URL(url)).length;
  assert.ok(bytes < 300000, `${bytes} bytes`);
});

// 512 ranks, none like another. A frame's time depends on the machine, which other things run on as well; what
// it may not depend on is the number of slices.
test("820,000 slices are there in seconds and stay fluid at every zoom", async t => {
  let chance = 1;
  const length = () => 1000 + (chance = chance * 48271 % 2147483647) % 1000;
  const step = () => [{ compute: `${length()}us` }, { all_reduce: { numel: 1000 } }];
  const steps = () => [{ repeat: 50, do: Array.from({ length: 16 }, step).flat() }];
  const programs = Object.fromEntries(Array.from({ length: 512 }, (_, rank) => [rank, steps()]));
  const page = await open({ name: "large", world_size: 512, programs });
  const ready = await page.value(`performance.now()`);
  await page.value(`document.querySelector("canvas").focus()`);
  await page.key("f");
  const times = [];
  for (let i = 0; i < 18; i++) {
    times.push(Number(await page.value(data("drawMs"))));
    await page.key("+");
  }
  const heap = await page.value(`(gc(), performance.memory.usedJSHeapSize / 1e6)`);
  t.diagnostic(`lines ${await page.value(data("lines"))}, ready after at most ${Math.round(ready)} ms, ` +
               `frames ${Math.min(...times)} to ${Math.max(...times)} ms, heap ${Math.round(heap)} MB`);
  assert.equal(Number(await page.value(data("slices"))), 512 * 1600);
  assert.ok(ready < 15000);
  assert.ok(times.sort((a, b) => a - b)[9] < 250, `frames: ${times}`);
  assert.ok(heap < 150);
  await page.close();
});
