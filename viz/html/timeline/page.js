// The page around the picture: buttons, keys, pointer, and details.

function element(tag, attributes = {}, ...children) {
  const result = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) result.setAttribute(name, value);
  result.append(...children);
  return result;
}

const HELP = "Ctrl and wheel: zoom. Shift and wheel, or Shift and drag: pan. Drag: sums of an area. Keys: W S zoom, A D pan, " +
             "0 shows all, F fold, G first divergence, / search, N next match, . and , next and previous slice. " +
             "Click a label to unfold it. The page's address leads to the chosen call.";

const LEGEND = [["compute", "computing"], ["busy", "collective"], ["message", "message"],
                ["waiting", "waiting for the last rank"], ["stuck", "never returned (hatched)"],
                ["culprit", "the culprit's wrong call, or where one is missing"]];

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
    this.status = element("span", { class: "note found", "aria-live": "polite" });
    this.list = new CallList(this);
    this.field = element("input", { type: "search", placeholder: "Search: all_reduce #5, a label, a group",
                                    "aria-label": "Search calls" });
    this.buttons = {
      all: element("button", { type: "button" }, "All"),
      nearer: element("button", { type: "button", "aria-label": "Zoom in" }, "+"),
      farther: element("button", { type: "button", "aria-label": "Zoom out" }, "−"),
      fold: element("button", { type: "button" }, "Fold equal ranks"),
      broken: element("button", { type: "button" }, "First divergence"),
    };
    this.buttons.broken.disabled = !this.data.broken?.found;
    const legend = element("p", { class: "legend" });
    for (const [look, words] of LEGEND) {
      legend.append(element("span", {}, element("i", { class: `swatch ${look}` }), words));
    }
    this.place.replaceChildren(
        element("div", { class: "tools" }, ...Object.values(this.buttons), this.field, this.status),
        element("div", { class: "plot" }, this.canvas, this.hair, this.tip), legend, this.details, this.list.root,
        element("p", { class: "note" }, HELP));
  }

  // Draws in the next frame, once for all changes until then.
  paint() {
    if (this.isPending) return;
    this.isPending = true;
    requestAnimationFrame(() => {
      this.isPending = false;
      const took = this.picture.draw();
      if (!this.isFollowing) this.pair?.moved(this);
      this.isFollowing = false;
      this.list.update();
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
    buttons.nearer.addEventListener("click", act(() => this.zoom(0.5)));
    buttons.farther.addEventListener("click", act(() => this.zoom(2)));
    buttons.fold.addEventListener("click", act(() => this.fold()));
    buttons.broken.addEventListener("click", act(() => this.showBroken()));
    this.field.addEventListener("input", act(() => this.find()));
    this.field.addEventListener("keydown", event => {
      if (event.key === "Enter") { this.nextMatch(event.shiftKey ? -1 : 1); this.paint(); }
      if (event.key === "Escape") { this.field.value = ""; this.find(); canvas.focus(); this.paint(); }
    });
    canvas.addEventListener("keydown", event => this.onKey(event));
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
    canvas.addEventListener("wheel", event => this.onWheel(event), { passive: false });
    this.listenToPointer();
    new ResizeObserver(act(() => picture.resize())).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", act(() => picture.resize()));
  }

  listenToPointer() {
    const { canvas, picture } = this;
    let drag = null;
    const point = event => ({ time: picture.time(event.offsetX), line: picture.lineNear(event.offsetY) });
    canvas.addEventListener("pointerdown", event => {
      drag = { x: event.offsetX, y: event.offsetY, moved: false, begin: point(event), pans: event.shiftKey };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      this.pointer = event.offsetX;
      this.showHair(event);
      if (!drag) return this.hover(event);
      const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      if (drag.pans) {
        picture.pan(-dx, -dy);
        Object.assign(drag, { x: event.offsetX, y: event.offsetY });
      } else {
        this.selectArea(new Area(drag.begin, point(event), this.rows.lines));
      }
      drag.moved = true;
      this.tip.hidden = true;
      this.paint();
    });
    canvas.addEventListener("pointerup", event => {
      if (drag && !drag.moved) this.onClick(event);
      drag = null;
    });
    canvas.addEventListener("pointercancel", () => { drag = null; });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = this.hair.hidden = true; this.pointer = undefined; });
  }

  onClick(event) {
    const line = this.picture.lineAt(event.offsetY);
    if (event.offsetX < LABELS && line >= 0) {
      this.rows.toggle(this.rows.lines[line].row);
      this.select(null);
      this.picture.resize();
    } else {
      this.select(this.picture.hit(event.offsetX, event.offsetY));
    }
    this.paint();
  }

  // The plain wheel scrolls the page.
  onWheel(event) {
    const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const zooms = event.ctrlKey || event.metaKey;
    if (!zooms && !isSideways) return;
    event.preventDefault();
    const scale = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (zooms) {
      this.picture.zoom(1.0015 ** (event.deltaY * scale), Math.max(event.offsetX, LABELS));
    } else {
      this.picture.pan((event.deltaX || event.deltaY) * scale);
    }
    this.tip.hidden = true;
    this.paint();
  }

  // These keys belong to the picture only while it has the focus; elsewhere they scroll the page.
  movingKeys() {
    const { picture } = this;
    return { ArrowLeft: () => this.pan(-1), ArrowRight: () => this.pan(1), Home: () => this.showAll(),
             ArrowUp: () => picture.pan(0, -picture.lineHeight * 2), ArrowDown: () => picture.pan(0, picture.lineHeight * 2),
             Escape: () => this.select(null) };
  }

  keys() {
    return { w: () => this.zoom(0.7), "+": () => this.zoom(0.7), "=": () => this.zoom(0.7), s: () => this.zoom(1 / 0.7),
             "-": () => this.zoom(1 / 0.7), a: () => this.pan(-1), d: () => this.pan(1), 0: () => this.showAll(),
             f: () => this.fold(), g: () => this.showBroken(), n: () => this.nextMatch(1), N: () => this.nextMatch(-1),
             "/": () => this.field.focus(), ".": () => this.step(1), ",": () => this.step(-1) };
  }

  // `isOnPicture`: otherwise the key was pressed somewhere on the page.
  onKey(event, isOnPicture = true) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    const action = this.keys()[event.key] ?? (isOnPicture ? this.movingKeys()[event.key] : undefined);
    if (!action) return;
    event.preventDefault();
    if (!isOnPicture) this.place.scrollIntoView({ block: "nearest" });
    action();
    this.paint();
  }

  pan(sign) { this.picture.pan(sign * this.picture.plot / 8); }

  // Zooms around the start of the chosen call, or around the pointer.
  zoom(factor) {
    const { picture } = this;
    if (!picture.selected) return picture.zoom(factor, this.pointer > LABELS ? this.pointer : undefined);
    picture.reveal(picture.selected);
    picture.zoom(factor, Math.max(picture.x(this.data.slices.start[picture.selected.slice]), LABELS));
  }

  // Prints the whole timeline, in dark letters.
  print(begins) {
    const { picture } = this;
    document.documentElement.classList.toggle("printing", begins);
    if (begins) this.viewBefore = { ...picture.view };
    picture.resize();
    if (begins) this.showAll(); else Object.assign(picture.view, this.viewBefore);
    picture.draw();  // now: nothing else runs before the page is printed
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

  // Shows a line through all ranks under the pointer, with its time.
  showHair(event) {
    this.hair.hidden = event.offsetX < LABELS;
    this.hair.style.left = `${event.offsetX}px`;
    const isRight = event.offsetX > this.picture.width - 110;
    this.hair.firstChild.textContent = durationText(Math.max(this.picture.time(event.offsetX), 0));
    this.hair.firstChild.className = isRight ? "before" : "";
  }

  factLines({ line, slice }) { return this.linesOf(this.describer.facts(slice, this.rows.lines[line].row)); }

  linesOf(facts) {
    return facts.map(([key, value]) =>
        key === "" ? element("strong", {}, value) : element("div", {}, element("span", {}, key), ` ${value}`));
  }

  select(hit) {
    this.picture.selected = hit;
    this.picture.area = null;
    this.details.replaceChildren(...(hit ? this.factLines(hit) : []));
    if (hit) this.picture.reveal(hit);
    history.replaceState(null, "", hit ? `#${this.address(hit)}` : location.href.split("#")[0]);
  }

  selectArea(area) {
    this.picture.area = area;
    this.picture.selected = null;
    this.details.replaceChildren(...this.linesOf(area.facts(this.data, this.rows.lines, this.picture.artist.density)));
  }

  // "timeline.2.1.14": the 14th slice, from 0, of the second row of rank 2.
  address({ line, slice }) {
    const { row, lane, index } = this.rows.lines[line];
    return `${this.place.id}.${row.ranks[0]}.${index}.${slice - lane.first}`;
  }

  // Chooses the call with this address. Returns whether it is one of this timeline's calls.
  follow(address) {
    const numbers = address.startsWith(`${this.place.id}.`) ? address.slice(this.place.id.length + 1).split(".").map(Number) : [];
    const [rank, index, number] = numbers;
    const line = this.rows.lineOfRank[rank] + index;
    const lane = this.data.stories[this.data.ranks[rank]]?.lanes[index];
    if (!lane || !(number >= 0 && number < lane.last - lane.first)) return false;
    if (this.rows.lines[line].row.ranks.length > 1) this.rows.toggle(this.rows.lines[line].row);
    this.picture.resize();
    const found = this.rows.lineOfRank[rank] + index;
    this.select({ line: found, slice: this.rows.lines[found].lane.first + number });
    this.place.scrollIntoView({ block: "nearest" });
    this.paint();
    return true;
  }

  // Chooses the next slice on the chosen line, or the first visible one.
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
    this.select(null);
    this.picture.resize();
  }

  // Shows the broken call with a few calls before it. The distance to them determines the zoom level.
  showBroken() {
    if (!this.data.broken?.found) return;
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
    this.sayFound(null);
  }

  // Says how many calls match, and which of them is chosen. A row that stands for several ranks counts as one stop.
  sayFound(match) {
    const count = this.search.count();
    const isVain = this.search.isActive && count === 0;
    const matches = `${count} ${count === 1 ? "match" : "matches"}`;
    const stops = this.search.isActive ? this.search.onLines(this.rows.lines) : 0;
    const place = match ? `${this.search.position(this.rows.lines, match)} of ${stops}` : "";
    this.status.textContent = !this.search.isActive ? "" : !place ? matches : stops === count ? place : `${place} in rows, ${matches}`;
    this.status.classList.toggle("vain", isVain);
    this.field.setAttribute("aria-invalid", String(isVain));
  }

  nextMatch(sign) {
    if (!this.search.isActive) return;
    const { selected, view } = this.picture;
    const end = { time: sign > 0 ? -Infinity : Infinity, line: sign > 0 ? -1 : Infinity };
    const here = selected ? { time: this.data.slices.start[selected.slice], line: selected.line }
                          : { ...end, time: sign > 0 ? view.from : view.to };
    const found = this.search.next(this.rows.lines, here, sign) ?? this.search.next(this.rows.lines, end, sign);
    if (!found) return;
    this.select(found);
    this.sayFound(found);
  }
}

// The longest stretch that is still readable next to the shortest one, as a multiple of its length.
const LENGTHS_MOST = 4;

// Two timelines on one page that show the same time range: what the reader does to one happens to both.
class Pair {
  constructor(timelines) {
    this.timelines = timelines;
    this.own = timelines.map(({ picture }) => picture.all);  // the range of each on its own
    this.both = { from: Math.min(...this.own.map(({ from }) => from)), to: Math.max(...this.own.map(({ to }) => to)) };
    for (const timeline of timelines) {
      timeline.pair = this;
      timeline.linkButton = element("button", { type: "button" }, "Move together");
      timeline.linkButton.addEventListener("click", () => this.link(!this.isLinked, timeline));
      timeline.place.querySelector(".tools input").before(timeline.linkButton);
    }
    // A measured run takes other times than a simulated one, and a short run would be a stripe next to a long one.
    const lengths = this.own.map(({ from, to }) => to - from);
    const isAlike = Math.max(...lengths) <= LENGTHS_MOST * Math.min(...lengths);
    this.link(isAlike && !timelines.some(({ data }) => data.measured), timelines[0]);
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

// Keys work anywhere on the page, unless the reader is typing: in the timeline that was used last.
function listenToPage(timelines) {
  let used = timelines[0];
  for (const timeline of timelines) {
    for (const type of ["pointerenter", "focusin"]) timeline.place.addEventListener(type, () => { used = timeline; });
  }
  const follow = () => timelines.some(timeline => timeline.follow(location.hash.slice(1)));
  addEventListener("hashchange", follow);
  addEventListener("keydown", event => {
    if (!event.target.closest?.("input, textarea, select, canvas")) used.onKey(event, false);
  });
  follow();
}

async function main() {
  document.querySelectorAll("table.filtered").forEach(table => new Filter(table));
  addCopyButtons();
  const drawn = await Promise.all([...document.querySelectorAll("section.timeline")].map(drawTimeline));
  const timelines = drawn.filter(Boolean);
  if (timelines.length === 2) new Pair(timelines);
  if (timelines.length > 0) listenToPage(timelines);
}

main();
