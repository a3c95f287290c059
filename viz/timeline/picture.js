// The picture: what of the timeline is in view, and drawing it.

const LABELS = 150, AXIS = 24;         // the room for labels and for the axis, in pixels
const LINE_LEAST = 3, LINE_MOST = 20;  // the height of a line
const LABEL_GAP = 14;                  // between labels, where lines are lower than text
const ARROWS_MOST = 400;

// The first index in [from, to) of which `values` is above `limit`, searched near `from` first.
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
  return Object.fromEntries(["text", "muted", "line", "page", "culprit", "culprit-pale", "compute", "busy",
                             "waiting", "stuck", "message", "mark"].map(name => [name, color(name)]));
}

// For calls that never returned: readable without colour.
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
    this.all = { from: -end * 0.02, to: end * (data.isStuck ? 1.15 : 1.02) };  // a hang goes on for ever
    this.view = { ...this.all, top: 0 };
    this.selected = null;  // { line, slice }
    this.resize();
  }

  get plot() { return this.width - LABELS; }
  x(time) { return LABELS + (time - this.view.from) / (this.view.to - this.view.from) * this.plot; }
  time(x) { return this.view.from + (x - LABELS) / this.plot * (this.view.to - this.view.from); }

  resize() {
    this.width = Math.max(this.canvas.parentElement.clientWidth, LABELS + 50);
    const room = Math.max(window.innerHeight * 0.7, 240) - AXIS;
    const count = this.rows.lines.length;
    this.lineHeight = Math.max(LINE_LEAST, Math.min(LINE_MOST, Math.floor(room / count)));
    this.visible = this.lineHeight < 6 ? 3 : 1.5;  // a slice narrower than this is drawn with its neighbours
    this.height = AXIS + Math.min(room, count * this.lineHeight) + 4;
    this.theme = themeOf(this.canvas);
    this.hatch = hatching(this.context, this.theme.text);
    this.clamp();
  }

  // Only right before drawing, because it empties the canvas.
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

  // Brings a slice into view without changing more than is needed.
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

  // The slice under the pointer, or one a few pixels beside it.
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
    this.labelled = -LABEL_GAP;  // where the last label is
    this.arrivals = [];  // of visible slices that waited: { group, seq, time, rank, line }
    const first = Math.floor(this.view.top / this.lineHeight);
    const last = Math.min(first + Math.ceil((this.height - AXIS) / this.lineHeight), this.rows.lines.length);
    pen.save();
    pen.beginPath();
    pen.rect(0, AXIS, this.width, this.height - AXIS);
    pen.clip();
    for (let line = first; line < last; line++) this.drawLine(line);
    this.drawArrows(first, last);
    pen.restore();
    this.drawAxis();
    this.drawBroken();
    return performance.now() - began;
  }

  y(line) { return AXIS + line * this.lineHeight - this.view.top; }

  drawLine(index) {
    const { context: pen, theme, rows, lineHeight } = this;
    const { row, lane, index: number } = rows.lines[index];
    const y = this.y(index);
    const isFirst = number === 0;
    if (row.isCulprit) {
      pen.fillStyle = theme["culprit-pale"];
      pen.fillRect(0, y, this.width, lineHeight);
    }
    if (isFirst && lineHeight > 6) {
      pen.fillStyle = theme.line;
      pen.fillRect(0, y, this.width, 0.5);
    }
    pen.save();
    pen.beginPath();
    pen.rect(LABELS, y, this.plot, lineHeight);
    pen.clip();
    this.drawSlices(index, y + (lineHeight > 8 ? 2 : 0.5), lineHeight - (lineHeight > 8 ? 4 : 1));
    const end = this.endOf(row);
    if (row.isCulprit && isFirst && lineHeight >= 10 && end < Infinity) {
      this.text(row.state, Math.max(this.x(end) + 6, LABELS + 6), y, theme.culprit, "bold");
    }
    pen.restore();
    this.drawLabel(index, y);
  }

  drawLabel(index, y) {
    const { theme, rows, lineHeight } = this;
    const { row, lane, index: number } = rows.lines[index];
    const isLow = lineHeight < 10;
    if (isLow && !row.isCulprit && (number > 0 || y < this.labelled + LABEL_GAP)) return;
    this.labelled = y;
    const mark = row.isCulprit ? "✗ " : rows.isFolded && row.ranks.length > 1 ? "▸ " : "";
    const label = number === 0 ? mark + row.text : `   ${lane.name}`;
    const color = row.isCulprit ? theme.culprit : number === 0 ? theme.text : theme.muted;
    this.text(this.fit(label, LABELS - 12), 6, y, color, row.isCulprit ? "bold" : "");
  }

  // When the last slice of the row's first line ends, or any other that never does.
  endOf(row) {
    const ends = row.story.lanes.map(lane => lane.last > lane.first ? this.data.slices.end[lane.last - 1] : 0);
    return ends.includes(Infinity) ? Infinity : ends[0];
  }

  drawSlices(index, y, height) {
    const { lane, row } = this.rows.lines[index];
    const { start, end } = this.data.slices;
    const { from, to } = this.view;
    let band = null;  // of slices too narrow to be seen, as far as they look alike
    const flush = () => {
      if (band) this.fill(band.x, y, Math.max(band.end - band.x, 1), height, band.color, band.alpha);
      band = null;
    };
    for (let i = firstAbove(end, lane.first, lane.last, from); i < lane.last && start[i] < to;) {
      const x = this.x(start[i]);
      if (this.x(end[i]) - x >= this.visible) {
        flush();
        this.drawSlice(index, i, x, y, height);
        i++;
        continue;
      }
      const limit = this.time(x + this.visible);
      let next = firstAbove(start, i, lane.last, limit);
      if (next - 1 > i && end[next - 1] > limit) next--;  // that one is wide enough, or the next band's
      const { color, alpha } = this.bandLook(i, next, row.isCulprit);
      if (!band || band.color !== color || band.alpha !== alpha || x - band.end > 1) {
        flush();
        band = { x, end: x, color, alpha };
      }
      band.end = Math.max(x + this.visible, this.x(end[next - 1]));
      i = next;
    }
    flush();
  }

  bandLook(first, last, isCulprit) {
    if (!this.search.isActive) return { color: this.color((first + last) >> 1, isCulprit), alpha: 1 };
    for (let i = first; i < last; i++) {
      if (this.search.has(i)) return { color: this.theme.mark, alpha: 1 };
    }
    return { color: this.color((first + last) >> 1, isCulprit), alpha: 0.25 };
  }

  color(i, isCulprit) {
    const kind = this.data.calls[this.data.slices.call[i]][0];
    if (kind === COMPUTE) return this.theme.compute;
    return isCulprit ? this.theme.culprit : kind === MESSAGE ? this.theme.message : this.theme.busy;
  }

  fill(x, y, width, height, color, alpha = 1) {
    const left = Math.max(x, LABELS - 1), right = Math.min(x + width, this.width + 1);
    const { context: pen } = this;
    pen.globalAlpha = alpha;
    pen.fillStyle = color;
    pen.fillRect(left, y, right - left, height);
    pen.globalAlpha = 1;
  }

  drawSlice(line, i, x, y, height) {
    const { theme, data, search, describer } = this;
    const { row } = this.rows.lines[line];
    const isOpen = data.slices.end[i] === Infinity;
    const right = isOpen ? this.width + 4 : this.x(data.slices.end[i]);
    const matches = search.isActive && search.has(i);
    const alpha = search.isActive && !matches ? 0.25 : 1;
    const until = isOpen ? x : this.x(describer.waitedUntil(i));  // up to there it is pale
    this.fill(until, y, right - until, height, isOpen ? theme.stuck : this.color(i, row.isCulprit), alpha);
    if (isOpen) this.fill(x, y, right - x, height, this.hatch, alpha * 0.35);
    if (until > x) this.drawWaiting(line, i, x, y, until, height, alpha);
    if (matches || this.selected) this.drawFrame(line, i, x, y, right, height, matches);
    if (right - x > 34 && height >= 9 && alpha === 1) this.drawTitle(line, i, x, y, right, until);
  }

  // In the wider of the slice's two parts.
  drawTitle(line, i, x, y, right, until) {
    const { theme, data } = this;
    const isWaiting = until - x > right - until;
    const left = Math.max(isWaiting ? x : until, LABELS), room = Math.min(isWaiting ? until : right, this.width) - left;
    const isPale = isWaiting || data.slices.end[i] === Infinity || data.calls[data.slices.call[i]][0] === COMPUTE;
    const title = this.describer.title(i, this.rows.lines[line].row.ranks[0]);
    this.text(this.fit(title, room - 6), left + 3, y - 2, isPale ? theme.text : theme.page);
  }

  // The part of a collective before its last member came is pale, and has an outline.
  drawWaiting(line, i, x, y, until, height, alpha) {
    this.fill(x, y, until - x, height, this.theme.waiting, alpha);
    if (until - x <= 4 || height < 4) return;
    this.context.strokeStyle = this.theme.busy;
    this.context.lineWidth = 1;
    this.context.strokeRect(x + 0.5, y + 0.5, until - x - 1, Math.max(height - 1, 0.5));
    const last = this.describer.lastArrival(i);
    const [, , group] = this.data.calls[this.data.slices.call[i]];
    this.arrivals.push({ group, seq: this.data.slices.seq[i], time: last.time, from: last.rank, line });
  }

  // The chosen slice, the others of its slot, and what the search found.
  drawFrame(line, i, x, y, right, height, matches) {
    const isChosen = this.selected?.slice === i && this.selected.line === line;
    if (!isChosen && !matches && !this.isOfChosenSlot(i)) return;
    const { context: pen, theme } = this;
    pen.strokeStyle = matches && !isChosen ? theme.mark : theme.text;
    pen.lineWidth = isChosen ? 3 : 1.5;
    pen.strokeRect(x, y, Math.max(right - x, 2), height);
  }

  isOfChosenSlot(i) {
    if (!this.selected) return false;
    const { call, seq } = this.data.slices, { calls } = this.data;
    const chosen = this.selected.slice;
    const [kind, , group] = calls[call[chosen]];
    return kind === COLLECTIVE && seq[i] === seq[chosen] && calls[call[i]][0] === COLLECTIVE && calls[call[i]][2] === group;
  }

  // From the rank that came last to each that waited for it. With many, only those of the chosen slot.
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

  drawAxis() {
    const { context: pen, theme, view } = this;
    pen.fillStyle = theme.page;
    pen.fillRect(0, 0, this.width, AXIS);
    const rough = (view.to - view.from) / Math.max(this.plot / 110, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max([1, 2, 5, 10].find(each => each * power >= rough) * power, 1);
    for (let time = Math.ceil(Math.max(view.from, 0) / step) * step; time <= view.to; time += step) {
      const x = this.x(time);
      pen.fillStyle = theme.line;
      pen.fillRect(x, AXIS - 6, 1, 6);
      this.text(durationText(time), x + 3, 0, theme.muted);
    }
    pen.fillStyle = theme.line;
    pen.fillRect(0, AXIS - 1, this.width, 1);
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

  // As much of the text as has room; about six pixels a character, measured where it is close.
  fit(words, room) {
    if (room < 14) return "";
    const { context: pen } = this;
    pen.font = "11px system-ui, sans-serif";
    let length = Math.min(words.length, Math.floor(room / 3));
    while (length > 1 && pen.measureText(words.slice(0, length)).width > room) length = Math.floor(length * 0.85);
    return length < words.length ? `${words.slice(0, Math.max(length - 1, 1))}…` : words;
  }
}
