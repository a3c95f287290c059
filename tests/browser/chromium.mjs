// A browser to test pages in: Debian's chromium, driven through a pair of pipes by the DevTools protocol.
// Nothing but Node and the browser is needed, and nothing listens on a port.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Messages are JSON, each ended by a zero byte. Requests have numbers, events have none.
class Connection {
  constructor(input, output) {
    this.input = input;
    this.waiting = new Map();
    this.listeners = [];
    this.last = 0;
    let rest = [];
    output.on("data", chunk => {
      for (let end; (end = chunk.indexOf(0)) >= 0; chunk = chunk.subarray(end + 1)) {
        this.receive(JSON.parse(Buffer.concat([...rest, chunk.subarray(0, end)]).toString()));
        rest = [];
      }
      rest.push(chunk);
    });
  }

  receive(message) {
    const request = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (!request) this.listeners.forEach(listener => listener(message));
    else if (message.error) request.reject(new Error(`${request.method}: ${message.error.message}`));
    else request.resolve(message.result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, method });
      this.input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }
}

export class Browser {
  static async launch(program) {
    const browser = new Browser();
    browser.profile = mkdtempSync(join(tmpdir(), "rollcall-browser-"));
    browser.process = spawn(program, [
      "--headless=new", "--remote-debugging-pipe", `--user-data-dir=${browser.profile}`, "--no-sandbox",
      "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--hide-scrollbars",
      "--js-flags=--expose-gc", "--enable-precise-memory-info", "about:blank",
    ], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    browser.exited = new Promise(resolve => browser.process.on("exit", resolve));
    browser.connection = new Connection(browser.process.stdio[3], browser.process.stdio[4]);
    await Promise.race([browser.connection.send("Browser.getVersion"),
                        browser.exited.then(code => { throw new Error(`${program} ended with code ${code}`); })]);
    return browser;
  }

  async close() {
    await this.connection.send("Browser.close").catch(() => {});  // it may be gone before it answers
    await this.exited;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }

  // A page of its own. `scripts`: whether the page may run any; `styles`: likewise. `dark`: what the reader prefers.
  async open(url, { scripts = true, dark = false, width = 1280, height = 900 } = {}) {
    const { targetId } = await this.connection.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.connection.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this.connection, sessionId, targetId);
    await page.load(url, { scripts, dark, width, height });
    return page;
  }
}

class Page {
  constructor(connection, session, target) {
    Object.assign(this, { connection, session, target, errors: [], requests: [], loaded: () => {} });
    connection.listeners.push(({ method, params, sessionId }) => {
      if (sessionId !== session) return;
      if (method === "Page.loadEventFired") this.loaded();
      if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
      if (method === "Runtime.exceptionThrown") this.errors.push(params.exceptionDetails.exception?.description);
      if (method === "Log.entryAdded" && params.entry.level !== "verbose") this.errors.push(params.entry.text);
      if (method === "Runtime.consoleAPICalled") this.errors.push(JSON.stringify(params.args));
    });
  }

  send(method, params) { return this.connection.send(method, params, this.session); }

  async load(url, { scripts, dark, width, height }) {
    for (const domain of ["Page", "Network", "Runtime", "Log"]) await this.send(`${domain}.enable`);
    await this.send("Emulation.setScriptExecutionDisabled", { value: !scripts });
    await this.send("Emulation.setEmulatedMedia",
                    { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    const loaded = new Promise(resolve => { this.loaded = resolve; });
    await this.send("Page.navigate", { url });
    await loaded;
  }

  // The value of an expression, which may be a promise.
  async value(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression: `(async () => (${expression}))()`, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  // Waits until an expression is true.
  async until(expression, seconds = 30) {
    for (const end = Date.now() + seconds * 1000; Date.now() < end;) {
      if (await this.value(expression)) return;
      await new Promise(resolve => setTimeout(resolve, 20));
    }
    throw new Error(`not within ${seconds} s: ${expression}`);
  }

  // After the next frame has been drawn.
  settle() { return this.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"); }

  mouse(type, x, y, more = {}) { return this.send("Input.dispatchMouseEvent", { type, x, y, ...more }); }

  async click(x, y) {
    await this.mouse("mousePressed", x, y, { button: "left", clickCount: 1 });
    await this.mouse("mouseReleased", x, y, { button: "left", clickCount: 1 });
    await this.settle();
  }

  async drag(from, to, modifiers = 0) {
    await this.mouse("mousePressed", ...from, { button: "left", clickCount: 1, modifiers });
    await this.mouse("mouseMoved", ...to, { button: "left", buttons: 1, modifiers });
    await this.mouse("mouseReleased", ...to, { button: "left", clickCount: 1, modifiers });
    await this.settle();
  }

  async wheel(x, y, deltaY, modifiers = 0) {
    await this.mouse("mouseWheel", x, y, { deltaX: 0, deltaY, modifiers });
    await this.settle();
  }

  async key(key, text = key.length === 1 ? key : undefined) {
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, text });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key });
    await this.settle();
  }

  async type(text) {
    await this.send("Input.insertText", { text });
    await this.settle();
  }

  async screenshot(file, clip = undefined) {
    const { data } = await this.send("Page.captureScreenshot", {
      format: "png", captureBeyondViewport: true, clip: clip && { ...clip, scale: 1 } });
    writeFileSync(file, Buffer.from(data, "base64"));
  }

  async close() { await this.connection.send("Target.closeTarget", { targetId: this.target }); }
}
