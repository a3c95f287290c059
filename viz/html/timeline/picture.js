// The picture: the visible part of the timeline, and how it is drawn.

const AXIS = 24;                       // the height of the axis, in pixels
let LABELS = 150;                      // the width of labels; less in a narrow window
const LINE_LEAST = 3, LINE_MOST = 20;  // the height of a line
const LABEL_GAP = 14;                  // between labels, if lines are lower than text
const ARROWS_MOST = 400;

// The first index in [from, to) where `values` is above `limit`; searches near `from` first.
function firstAbove(values, from, to, limit) {
  let step = 1, low = from;
  while (low + step < to && values[low + step] <= limit) { low += step; step *= 2; }
  let high = Math.min(low + step, to);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1; else high = middle;
  }
  return low;
}

function themeOf(element) {
  const style = getComputedStyle(element);
  const color = name => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(["text", "muted", "line", "head", "page", "culprit", "culprit-pale", "compute", "busy",
                             "waiting", "stuck", "message", "mark"].map(name => [name, color(name)]));
}

// For calls that never returned: readable without color.
function hatching(context, color) {
  const tile = new OffscreenCanvas(8, 8);
  const pen = tile.getContext("2d");
  pen.strokeStyle = color;
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (const shift of [-8, 0, 8]) { pen.moveTo(shift, 8); pen.lineTo(shift + 8, 0); }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

class Picture {
  constructor(canvas, data, rows, search, describer) {
    Object.assign(this, { canvas, data, rows, search, describer });
    this.context = canvas.getContext("2d");
    const end = data.end || 10;
    this.all = { from: -end * 0.02, to: end * (data.isStuck ? 1.15 : 1.02) };  // a hang continues forever
    this.view = { ...this.all, top: 0 };
    this.selected = null;  // { line, slice }
    this.area = null;
    this.artist = new SliceArtist(this);
    this.resize();
  }

  get plot() { return this.width - LABELS; }
  x(time) { return LABELS + (time - this.view.from) / (this.view.to - this.view.from) * this.plot; }
  time(x) { return this.view.from + (x - LABELS) / this.plot * (this.view.to - this.view.from); }

  resize() {
    this.width = Math.max(this.canvas.parentElement.clientWidth, 200);
    LABELS = this.width < 560 ? 90 : 150;
    const room = Math.max(window.innerHeight * 0.7, 240) - AXIS;
    const count = this.rows.lines.length;
    this.lineHeight = Math.max(LINE_LEAST, Math.min(LINE_MOST, Math.floor(room / count)));
    this.height = AXIS + Math.min(room, count * this.lineHeight) + 4;
    this.theme = themeOf(this.canvas);
    this.hatch = hatching(this.context, this.theme.text);
    this.artist.resize();
    this.clamp();
  }

  // Called only right before drawing, because it empties the canvas.
  fitCanvas() {
    const { canvas, context } = this;
    const scale = window.devicePixelRatio || 1;
    const width = Math.round(this.width * scale), height = Math.round(this.height * scale);
    if (canvas.width !== width || canvas.height !== height) {
      Object.assign(canvas, { width, height });
      canvas.style.height = `${this.height}px`;
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
  }

  clamp() {
    const { view, all } = this;
    const span = Math.min(Math.max(view.to - view.from, 10), all.to - all.from);
    view.from = Math.min(Math.max(view.from, all.from), all.to - span);
    view.to = view.from + span;
    const most = this.rows.lines.length * this.lineHeight - (this.height - AXIS - 4);
    view.top = Math.min(Math.max(view.top, 0), Math.max(most, 0));
  }

  zoom(factor, x = LABELS + this.plot / 2) {
    const fixed = this.time(x);
    const { view } = this;
    const span = Math.min(Math.max((view.to - view.from) * factor, 10), this.all.to - this.all.from);
    const part = (fixed - view.from) / (view.to - view.from);
    view.from = fixed - span * part;
    view.to = view.from + span;
    this.clamp();
  }

  pan(pixels, lines = 0) {
    const shift = pixels / this.plot * (this.view.to - this.view.from);
    this.view.from += shift;
    this.view.to += shift;
    this.view.top += lines;
    this.clamp();
  }

  show(from, to) { Object.assign(this.view, { from, to }); this.clamp(); }

  // Brings a slice into view, and changes no more than necessary.
  reveal({ line, slice }) {
    const { start, end } = this.data.slices;
    const { view } = this;
    const span = view.to - view.from;
    if (start[slice] < view.from || start[slice] > view.to) this.show(start[slice] - span / 3, start[slice] + span * 2 / 3);
    const width = Math.min(end[slice], this.all.to) - start[slice];
    if (width > 0 && width / (view.to - view.from) * this.plot < 4) {
      this.show(start[slice] - width * 20, start[slice] + width * 30);
    }
    const y = line * this.lineHeight, room = this.height - AXIS - this.lineHeight - 4;
    if (y < view.top || y > view.top + room) view.top = y - room / 2;
    this.clamp();
  }

  lineAt(y) {
    const index = Math.floor((y - AXIS + this.view.top) / this.lineHeight);
    return y >= AXIS && index < this.rows.lines.length ? index : -1;
  }

  // The same, or the line that would be there if there were more lines.
  lineNear(y) { return Math.floor((y - AXIS + this.view.top) / this.lineHeight); }

  // The slice under the pointer, or one within a few pixels of it.
  hit(x, y) {
    const line = this.lineAt(y);
    if (line < 0 || x < LABELS) return null;
    const { start, end } = this.data.slices;
    const { lane } = this.rows.lines[line];
    const slack = this.time(x + 3) - this.time(x), time = this.time(x);
    const slice = firstAbove(end, lane.first, lane.last, time - slack);
    return slice < lane.last && start[slice] <= time + slack ? { line, slice } : null;
  }

  draw() {
    const began = performance.now();
    const { context: pen, theme } = this;
    this.fitCanvas();
    pen.fillStyle = theme.page;
    pen.fillRect(0, 0, this.width, this.height);
    this.labeled = -LABEL_GAP;  // the position of the last label
    this.arrivals = [];  // of visible slices that waited: { group, seq, time, rank, line }
    const first = Math.floor(this.view.top / this.lineHeight);
    const last = Math.min(first + Math.ceil((this.height - AXIS) / this.lineHeight), this.rows.lines.length);
    pen.save();
    pen.beginPath();
    pen.rect(0, AXIS, this.width, this.height - AXIS);
    pen.clip();
    this.artist.begin();
    const lines = [];  // each with the slices that are drawn one by one
    for (let line = first; line < last; line++) lines.push(this.drawBackground(line));
    this.drawGrid();
    this.artist.drawRaster();
    for (const each of lines) this.drawLine(each);
    this.drawArrows(first, last);
    this.drawArea();
    pen.restore();
    this.drawAxis();
    this.drawBroken();
    return performance.now() - began;
  }

  y(line) { return AXIS + line * this.lineHeight - this.view.top; }

  sliceTop(y) { return y + (this.lineHeight > 8 ? 2 : 0.5); }
  get sliceHeight() { return this.lineHeight - (this.lineHeight > 8 ? 4 : 1); }

  drawBackground(index) {
    const { context: pen, theme, rows, lineHeight } = this;
    const { row, index: number } = rows.lines[index];
    const y = this.y(index);
    if (row.isCulprit) {
      pen.fillStyle = theme["culprit-pale"];
      pen.fillRect(0, y, this.width, lineHeight);
    }
    if (number === 0 && lineHeight > 6) {
      pen.fillStyle = theme.line;
      pen.fillRect(0, y, this.width, 0.5);
    }
    return { index, y, wide: this.artist.drawNarrow(index, this.sliceTop(y), this.sliceHeight) };
  }

  drawLine({ index, y, wide }) {
    const { context: pen, theme, rows, lineHeight } = this;
    const { row, index: number } = rows.lines[index];
    pen.save();
    pen.beginPath();
    pen.rect(LABELS, y, this.plot, lineHeight);
    pen.clip();
    for (const slice of wide) this.artist.drawWide(index, slice, this.sliceTop(y), this.sliceHeight);
    this.drawFault(index, y);
    if (number === 0) this.drawStatements(row, y);
    if (this.selected?.line === index) this.artist.drawChosen(this.sliceTop(y), this.sliceHeight);
    const end = this.endOf(row);
    if (row.isCulprit && number === 0 && lineHeight >= 10 && end < Infinity && this.data.faults.length === 0) {
      this.text(row.state, Math.max(this.x(end) + 6, LABELS + 6), y, theme.culprit, "bold");
    }
    pen.restore();
    this.drawLabel(index, y);
  }

  // Draws the call where the run failed, on the rank that caused it: its wrong call, or the place where it is missing.
  drawFault(index, y) {
    const { rows, data: { broken } } = this;
    const { row, lane } = rows.lines[index];
    if (!broken || !row.isCulprit) return;
    const wrong = this.wrongIn(lane);
    if (wrong >= 0) return this.artist.drawWrong(wrong, this.sliceTop(y), this.sliceHeight);
    const isMissing = broken.missing.some(([first, last]) => row.ranks[0] >= first && row.ranks[0] <= last);
    const lanes = row.story.lanes;
    if (!isMissing || lane !== (lanes.find(({ name }) => name === broken.group) ?? lanes.at(-1))) return;
    const end = lane.last > lane.first ? this.data.slices.end[lane.last - 1] : 0;
    if (end === Infinity) return;
    this.artist.drawMissing(broken.text, Math.max(this.x(Math.max(end, broken.time)), LABELS), this.sliceTop(y), this.sliceHeight);
  }

  // Draws harmful statements that are not calls: a mark, and words if there is room.
  drawStatements(row, y) {
    const { context: pen, theme, lineHeight } = this;
    for (const { ranks, time, text } of this.data.faults) {
      if (!ranks.some(([first, last]) => row.ranks[0] >= first && row.ranks[0] <= last)) continue;
      const x = this.x(time);
      pen.fillStyle = theme.culprit;
      pen.fillRect(x - 1, y, 2, lineHeight);
      pen.beginPath();
      pen.moveTo(x - 5, y);
      pen.lineTo(x + 5, y);
      pen.lineTo(x, y + 7);
      pen.fill();
      if (lineHeight < 10) continue;
      const words = this.fit(text, Math.max(this.width - x - 12, x - LABELS - 12) * 0.9);  // bold is wider
      pen.font = "bold 11px system-ui, sans-serif";
      const width = pen.measureText(words).width;
      this.text(words, x + 8 + width < this.width ? x + 8 : x - width - 8, y, theme.culprit, "bold");
    }
  }

  // The slice of a lane that is in the broken slot, or -1.
  wrongIn(lane) {
    const { slices, calls, broken } = this.data;
    this.wrong ??= new Map();
    if (!this.wrong.has(lane)) {
      let found = -1;
      for (let i = lane.first; i < lane.last && found < 0; i++) {
        const [kind, , group] = calls[slices.call[i]];
        if (kind === COLLECTIVE && slices.seq[i] === broken.seq && group === broken.group) found = i;
      }
      this.wrong.set(lane, found);
    }
    return this.wrong.get(lane);
  }

  isWrong(line, i) {
    const { row, lane } = this.rows.lines[line];
    return row.isCulprit && !!this.data.broken && this.wrongIn(lane) === i;
  }

  drawLabel(index, y) {
    const { theme, rows, lineHeight } = this;
    const { row, lane, index: number } = rows.lines[index];
    const isLow = lineHeight < 10;
    if (isLow && (number > 0 || y < this.labeled + (row.isCulprit ? 10 : LABEL_GAP))) return;
    this.labeled = y;
    const mark = row.isCulprit ? "✗ " : rows.isFolded && row.ranks.length > 1 ? "▸ " : "";
    const label = number === 0 ? mark + row.text : `   ${lane.name}`;
    const color = row.isCulprit ? theme.culprit : number === 0 ? theme.text : theme.muted;
    this.text(this.fit(label, LABELS - 12), 6, y, color, row.isCulprit ? "bold" : "");
  }

  // When the last slice on the row's first line ends, or Infinity if a slice on any of its lines never does.
  endOf(row) {
    const ends = row.story.lanes.map(lane => lane.last > lane.first ? this.data.slices.end[lane.last - 1] : 0);
    return ends.includes(Infinity) ? Infinity : ends[0];
  }

  noteArrival(slice, line) {
    const last = this.describer.lastArrival(slice);
    if (!last) return;  // a host call: the rank that served it is not in the timeline
    const [, , group] = this.data.calls[this.data.slices.call[slice]];
    this.arrivals.push({ group, seq: this.data.slices.seq[slice], time: last.time, from: last.rank, line });
  }

  isOfChosenSlot(i) {
    if (!this.selected) return false;
    const { call, seq } = this.data.slices, { calls } = this.data;
    const chosen = this.selected.slice;
    const [kind, , group] = calls[call[chosen]];
    return kind === COLLECTIVE && seq[i] === seq[chosen] && calls[call[i]][0] === COLLECTIVE && calls[call[i]][2] === group;
  }

  // Draws arrows from the last rank to each rank that waited for it. If there are many, only those of the chosen slot.
  drawArrows(first, last) {
    const { theme, rows, view } = this;
    const many = this.arrivals.length > ARROWS_MOST;
    const chosen = this.selected && this.data.calls[this.data.slices.call[this.selected.slice]];
    for (const arrival of this.arrivals) {
      const isChosen = chosen && chosen[0] === COLLECTIVE && chosen[2] === arrival.group &&
                       this.data.slices.seq[this.selected.slice] === arrival.seq;
      if (!many || isChosen) {
        this.arrow(rows.lineOfRank[arrival.from], arrival.line, arrival.time, isChosen ? theme.text : theme.muted);
      }
    }
    const visible = this.data.arrows.filter(({ time }) => time >= view.from && time <= view.to);
    if (visible.length > ARROWS_MOST) return;
    for (const { from, to, time } of visible) {
      const a = rows.lineOfRank[from], b = rows.lineOfRank[to];
      if (Math.max(a, b) >= first && Math.min(a, b) < last) this.arrow(a, b, time, theme.muted);
    }
  }

  arrow(from, to, time, color) {
    if (from === to || this.lineHeight < 6) return;
    const { context: pen } = this;
    const x = this.x(time), middle = this.lineHeight / 2;
    const begin = this.y(from) + middle, sign = to > from ? -1 : 1, end = this.y(to) + middle + sign * (middle - 2);
    pen.strokeStyle = pen.fillStyle = color;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, begin);
    pen.lineTo(x, end);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x, end);
    pen.lineTo(x - 3, end + sign * 5);
    pen.lineTo(x + 3, end + sign * 5);
    pen.fill();
  }

  // Round times about 110 pixels apart.
  ticks() {
    const { view } = this;
    const rough = (view.to - view.from) / Math.max(this.plot / 110, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max([1, 2, 5, 10].find(each => each * power >= rough) * power, 1);
    const times = [];
    for (let time = Math.ceil(Math.max(view.from, 0) / step) * step; time <= view.to; time += step) times.push(time);
    return times;
  }

  // Draws the area that the reader has selected.
  drawArea() {
    if (!this.area) return;
    const { context: pen, theme, area } = this;
    const left = Math.max(this.x(area.from), LABELS), right = Math.min(this.x(area.to), this.width);
    const top = this.y(area.first), height = this.y(area.last + 1) - top;
    if (right < left) return;
    pen.fillStyle = theme.busy;
    pen.globalAlpha = 0.15;
    pen.fillRect(left, top, right - left, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = theme.busy;
    pen.lineWidth = 1;
    pen.strokeRect(left + 0.5, top + 0.5, Math.max(right - left - 1, 1), height - 1);
  }

  drawGrid() {
    const { context: pen, theme } = this;
    pen.fillStyle = theme.line;
    pen.globalAlpha = 0.6;
    for (const time of this.ticks()) pen.fillRect(Math.round(this.x(time)), AXIS, 1, this.height - AXIS);
    pen.globalAlpha = 1;
  }

  drawAxis() {
    const { context: pen, theme } = this;
    pen.fillStyle = theme.head;
    pen.fillRect(0, 0, this.width, AXIS);
    for (const time of this.ticks()) {
      const x = Math.round(this.x(time));
      pen.fillStyle = theme.line;
      pen.fillRect(x, AXIS - 6, 1, 6);
      this.text(durationText(time), x + 4, 0, theme.muted);
    }
    pen.fillStyle = theme.line;
    pen.fillRect(0, AXIS - 1, this.width, 1);
    pen.fillRect(LABELS - 1, 0, 1, this.height);
  }

  drawBroken() {
    if (!this.data.broken) return;
    const x = this.x(this.data.broken.time);
    if (x < LABELS || x > this.width) return;
    const { context: pen, theme } = this;
    pen.strokeStyle = theme.culprit;
    pen.lineWidth = 1.5;
    pen.setLineDash([5, 4]);
    pen.beginPath();
    pen.moveTo(x, AXIS - 8);
    pen.lineTo(x, this.height);
    pen.stroke();
    pen.setLineDash([]);
  }

  text(words, x, y, color, weight = "") {
    const { context: pen } = this;
    pen.font = `${weight} 11px system-ui, sans-serif`;
    pen.fillStyle = color;
    pen.textBaseline = "middle";
    pen.fillText(words, x, y + Math.min(this.lineHeight, LINE_MOST) / 2 + (y === 0 ? 2 : 0.5));
  }

  // As much of the text as fits; about six pixels per character, measured if it is close.
  fit(words, room) {
    if (room < 14) return "";
    const { context: pen } = this;
    pen.font = "11px system-ui, sans-serif";
    let length = Math.min(words.length, Math.floor(room / 3));
    while (length > 1 && pen.measureText(words.slice(0, length)).width > room) length = Math.floor(length * 0.85);
    return length < words.length ? `${words.slice(0, Math.max(length - 1, 1))}…` : words;
  }
}
