// The page around the picture: buttons, keys, pointer, details.

function element(tag, attributes = {}, ...children) {
  const result = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) result.setAttribute(name, value);
  result.append(...children);
  return result;
}

const HELP = "Wheel: zoom. Shift and wheel, or drag: pan. Keys: arrows pan, + − zoom, 0 shows all, F fold, D first " +
             "divergence, / search, N next match, . and , next and previous slice. Click a label to unfold it.";

const LEGEND = [["compute", "computing"], ["busy", "collective"], ["message", "message"],
                ["waiting", "waiting for the last rank"], ["stuck", "never returned (hatched)"],
                ["culprit", "culprit (✗)"]];

class Timeline {
  constructor(place, data) {
    this.place = place;
    this.data = data;
    this.rows = new Rows(data);
    this.search = new Search(data);
    this.describer = new Describer(data);
    this.build();
    this.picture = new Picture(this.canvas, data, this.rows, this.search, this.describer);
    this.listen();
    this.paint();
  }

  build() {
    this.canvas = element("canvas", { tabindex: "0", role: "application", "aria-label": `Timeline. ${HELP}` });
    this.tip = element("div", { class: "tip", hidden: "" });
    this.hair = element("div", { class: "hair", hidden: "" }, element("span"));
    this.details = element("div", { class: "details", "aria-live": "polite" });
    this.status = element("span", { class: "note", "aria-live": "polite" });
    this.field = element("input", { type: "search", placeholder: "Search: all_reduce #5, a label, a group",
                                    "aria-label": "Search calls" });
    this.buttons = {
      all: element("button", { type: "button" }, "All"),
      nearer: element("button", { type: "button", "aria-label": "Zoom in" }, "+"),
      farther: element("button", { type: "button", "aria-label": "Zoom out" }, "−"),
      fold: element("button", { type: "button" }, "Fold equal ranks"),
      broken: element("button", { type: "button" }, "First divergence"),
    };
    this.buttons.broken.disabled = !this.data.broken;
    const legend = element("p", { class: "legend" });
    for (const [look, words] of LEGEND) {
      legend.append(element("span", {}, element("i", { class: `swatch ${look}` }), words));
    }
    this.place.replaceChildren(
        element("div", { class: "tools" }, ...Object.values(this.buttons), this.field, this.status),
        element("div", { class: "plot" }, this.canvas, this.hair, this.tip), legend, this.details,
        element("p", { class: "note" }, HELP));
  }

  // Draws with the next frame, once for all that happens until then.
  paint() {
    if (this.isPending) return;
    this.isPending = true;
    requestAnimationFrame(() => {
      this.isPending = false;
      const took = this.picture.draw();
      if (!this.isFollowing) this.pair?.moved(this);
      this.isFollowing = false;
      const { view } = this.picture;
      this.buttons.fold.setAttribute("aria-pressed", String(this.rows.isFolded));
      Object.assign(this.place.dataset, { ready: "yes", from: view.from, to: view.to, top: view.top,
                                          lines: this.rows.lines.length, slices: this.data.slices.count,
                                          drawMs: took.toFixed(1) });
    });
  }

  listen() {
    const { canvas, buttons, picture } = this;
    const act = action => () => { action(); this.paint(); };
    buttons.all.addEventListener("click", act(() => this.showAll()));
    buttons.nearer.addEventListener("click", act(() => picture.zoom(0.5)));
    buttons.farther.addEventListener("click", act(() => picture.zoom(2)));
    buttons.fold.addEventListener("click", act(() => this.fold()));
    buttons.broken.addEventListener("click", act(() => this.showBroken()));
    this.field.addEventListener("input", act(() => this.find()));
    this.field.addEventListener("keydown", event => {
      if (event.key === "Enter") { this.nextMatch(event.shiftKey ? -1 : 1); this.paint(); }
      if (event.key === "Escape") { this.field.value = ""; this.find(); canvas.focus(); this.paint(); }
    });
    canvas.addEventListener("keydown", event => this.onKey(event));
    canvas.addEventListener("wheel", event => this.onWheel(event), { passive: false });
    this.listenToPointer();
    new ResizeObserver(act(() => picture.resize())).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", act(() => picture.resize()));
  }

  listenToPointer() {
    const { canvas, picture } = this;
    let drag = null;
    canvas.addEventListener("pointerdown", event => {
      drag = { x: event.offsetX, y: event.offsetY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      this.showHair(event);
      if (!drag) return this.hover(event);
      const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      picture.pan(-dx, -dy);
      drag = { x: event.offsetX, y: event.offsetY, moved: true };
      this.tip.hidden = true;
      this.paint();
    });
    canvas.addEventListener("pointerup", event => {
      if (drag && !drag.moved) this.onClick(event);
      drag = null;
    });
    canvas.addEventListener("pointercancel", () => { drag = null; });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = this.hair.hidden = true; });
  }

  onClick(event) {
    const line = this.picture.lineAt(event.offsetY);
    if (event.offsetX < LABELS && line >= 0) {
      this.rows.toggle(this.rows.lines[line].row);
      this.picture.selected = null;
      this.picture.resize();
    } else {
      this.select(this.picture.hit(event.offsetX, event.offsetY));
    }
    this.paint();
  }

  onWheel(event) {
    event.preventDefault();
    const scale = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.picture.pan((event.deltaX || event.deltaY) * scale);
    } else {
      this.picture.zoom(1.0015 ** (event.deltaY * scale), Math.max(event.offsetX, LABELS));
    }
    this.tip.hidden = true;
    this.paint();
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { picture } = this;
    const keys = {
      ArrowLeft: () => picture.pan(-picture.plot / 8), ArrowRight: () => picture.pan(picture.plot / 8),
      ArrowUp: () => picture.pan(0, -picture.lineHeight * 2), ArrowDown: () => picture.pan(0, picture.lineHeight * 2),
      "+": () => picture.zoom(0.7), "=": () => picture.zoom(0.7), "-": () => picture.zoom(1 / 0.7),
      0: () => this.showAll(), Home: () => this.showAll(), f: () => this.fold(), d: () => this.showBroken(),
      n: () => this.nextMatch(1), N: () => this.nextMatch(-1), "/": () => this.field.focus(),
      ".": () => this.step(1), ",": () => this.step(-1), Escape: () => this.select(null),
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
    this.paint();
  }

  hover(event) {
    const hit = this.picture.hit(event.offsetX, event.offsetY);
    this.tip.hidden = hit === null;
    if (hit === null) return;
    this.tip.replaceChildren(...this.factLines(hit));
    const left = Math.min(event.clientX + 14, innerWidth - this.tip.offsetWidth - 8);
    const isLow = event.clientY + 20 + this.tip.offsetHeight > innerHeight;
    this.tip.style.left = `${Math.max(left, 0)}px`;
    this.tip.style.top = `${isLow ? Math.max(event.clientY - 12 - this.tip.offsetHeight, 0) : event.clientY + 16}px`;
  }

  // A line through all ranks under the pointer, with its time.
  showHair(event) {
    this.hair.hidden = event.offsetX < LABELS;
    this.hair.style.left = `${event.offsetX}px`;
    const isRight = event.offsetX > this.picture.width - 110;
    this.hair.firstChild.textContent = durationText(Math.max(this.picture.time(event.offsetX), 0));
    this.hair.firstChild.className = isRight ? "before" : "";
  }

  factLines({ line, slice }) {
    return this.describer.facts(slice, this.rows.lines[line].row).map(([key, value]) =>
        key === "" ? element("strong", {}, value) : element("div", {}, element("span", {}, key), ` ${value}`));
  }

  select(hit) {
    this.picture.selected = hit;
    this.details.replaceChildren(...(hit ? this.factLines(hit) : []));
    if (hit) this.picture.reveal(hit);
  }

  // The next slice of the chosen line, or the first one in sight.
  step(sign) {
    const { selected, view } = this.picture;
    const line = selected ? selected.line : Math.floor(view.top / this.picture.lineHeight);
    const { lane } = this.rows.lines[line];
    const first = firstAbove(this.data.slices.end, lane.first, lane.last, view.from);
    const slice = selected ? selected.slice + sign : first;
    if (slice >= lane.first && slice < lane.last) this.select({ line, slice });
  }

  showsAll() {
    const { view, all } = this.picture;
    return view.from === all.from && view.to === all.to;
  }

  showAll() { this.picture.show(this.picture.all.from, this.picture.all.to); this.picture.view.top = 0; }

  fold() {
    this.rows.toggleAll();
    this.picture.selected = null;
    this.picture.resize();
  }

  // The broken call with a few calls before it. What stands around it tells how near to go.
  showBroken() {
    if (!this.data.broken) return;
    const { group, seq, time } = this.data.broken;
    const { start } = this.data.slices;
    const line = this.rows.lines.findIndex(({ lane }) => this.sliceOf(lane, group, seq) >= 0);
    if (line < 0) return;
    const { lane } = this.rows.lines[line];
    const slice = this.sliceOf(lane, group, seq);
    const before = start[Math.max(slice - 8, lane.first)];
    const span = Math.max(time - before, this.data.end / 1e6, 10);
    this.picture.show(time - span, time + span * 0.6);
    this.select({ line, slice });
  }

  sliceOf(lane, group, seq) {
    const { slices, calls } = this.data;
    for (let i = lane.last - 1; i >= lane.first; i--) {
      const [kind, , name] = calls[slices.call[i]];
      if (kind === COLLECTIVE && slices.seq[i] === seq && name === group) return i;
    }
    return -1;
  }

  find() {
    this.search.set(this.field.value);
    const count = this.search.count();
    this.status.textContent = this.search.isActive ? `${count} ${count === 1 ? "match" : "matches"}` : "";
  }

  nextMatch(sign) {
    if (!this.search.isActive) return;
    const { selected, view } = this.picture;
    const from = selected ? this.data.slices.start[selected.slice] : sign > 0 ? view.from : view.to;
    const found = this.search.next(this.rows.lines, from, sign) ??
                  this.search.next(this.rows.lines, sign > 0 ? -1 : Infinity, sign);
    if (found) this.select(found);
  }
}

// Two timelines of one page that show the same time: what the reader does to one happens to both.
class Pair {
  constructor(timelines) {
    this.timelines = timelines;
    this.own = timelines.map(({ picture }) => picture.all);  // what each shows by itself
    this.both = { from: Math.min(...this.own.map(({ from }) => from)), to: Math.max(...this.own.map(({ to }) => to)) };
    for (const timeline of timelines) {
      timeline.pair = this;
      timeline.linkButton = element("button", { type: "button" }, "Move together");
      timeline.linkButton.addEventListener("click", () => this.link(!this.isLinked, timeline));
      timeline.place.querySelector(".tools input").before(timeline.linkButton);
    }
    // A measured run takes other times than a simulated one.
    this.link(!timelines.some(({ data }) => data.measured), timelines[0]);
  }

  link(isLinked, leader) {
    this.isLinked = isLinked;
    this.timelines.forEach((timeline, index) => {
      const wasAll = timeline.showsAll();
      timeline.linkButton.setAttribute("aria-pressed", String(isLinked));
      timeline.picture.all = isLinked ? this.both : this.own[index];
      if (wasAll) timeline.showAll();
      timeline.picture.clamp();
      timeline.paint();
    });
    this.moved(leader);
  }

  moved(leader) {
    if (!this.isLinked) return;
    const { from, to } = leader.picture.view;
    for (const other of this.timelines) {
      const { view } = other.picture;
      if (other === leader || (view.from === from && view.to === to)) continue;
      other.picture.show(from, to);
      other.isFollowing = true;
      other.paint();
    }
  }
}

async function drawTimeline(place) {
  const data = document.getElementById(place.id.replace("timeline", "timeline-data"));
  if (!data) return null;
  try {
    return new Timeline(place, readTimeline(await unpack(data)));
  } catch (error) {
    place.replaceChildren(element("p", {}, `The timeline cannot be drawn here: ${error.message}`));
    throw error;
  }
}

async function main() {
  document.querySelectorAll("table.filtered").forEach(table => new Filter(table));
  const drawn = await Promise.all([...document.querySelectorAll("section.timeline")].map(drawTimeline));
  const timelines = drawn.filter(Boolean);
  if (timelines.length === 2) new Pair(timelines);
}

main();
