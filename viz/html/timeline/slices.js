// Draws one line's slices: wide ones with everything known about them, narrow ones by their density.

const COLUMN = 2;         // the width of a column of narrow slices, in pixels
const WIDE = 6;           // from this width on, a slice is drawn individually if the line is high enough
const HIGH = 9;           // the minimum height of the slices on such a line
const FAINTEST = 0.55;    // a column with anything in it is at least this dense

class SliceArtist {
  constructor(picture) {
    this.picture = picture;
    this.density = new Density(picture.data, picture.describer);
    this.raster = new Raster();
  }

  resize() {
    const { picture } = this;
    const { theme } = picture;
    this.raster.resize(picture.plot, picture.height - AXIS);
    const rgb = name => [1, 3, 5].map(at => parseInt(theme[name].slice(at, at + 2), 16));
    this.colors = ["compute", "busy", "waiting", "message", "stuck"].map(rgb);
    this.mark = rgb("mark");
  }

  begin() { this.raster.clear(); }

  // Draws the narrow slices of a line, and returns those that remain to be drawn one by one.
  drawNarrow(index, y, height) {
    const { picture } = this;
    const { lane } = picture.rows.lines[index];
    const { start, end } = picture.data.slices;
    const { from, to } = picture.view;
    const wide = height < HIGH ? Infinity : WIDE;
    const left = [];
    let drawn = -Infinity;  // everything up to here, in pixels
    for (let i = firstAbove(end, lane.first, lane.last, from); i < lane.last && start[i] < to;) {
      const x = picture.x(start[i]);
      if (picture.x(end[i]) - x >= wide) {
        left.push(i++);
        continue;
      }
      const column = Math.max(Math.floor((x - LABELS) / COLUMN) * COLUMN, drawn, 0);
      const same = this.drawRun(i, column, y, height);
      if (same > 0) {
        drawn = column + same;
        if (drawn > picture.plot) break;
        while (i < lane.last && picture.x(end[i]) <= drawn + LABELS) i++;
        continue;
      }
      const begin = picture.time(column + LABELS), limit = picture.time(column + COLUMN + LABELS);
      let next = Math.max(firstAbove(start, i, lane.last, limit), i + 1);
      if (next - 1 > i && picture.x(end[next - 1]) - picture.x(start[next - 1]) >= wide) next--;
      this.drawColumn(i, next, begin, limit, column, y, height);
      drawn = column + COLUMN;
      while (i < next && end[i] <= limit) i++;
      if (drawn > picture.plot) break;
    }
    return left;
  }

  // Draws the columns from `column` on that lie inside one part of slice i and have one color; returns their
  // width.
  drawRun(i, column, y, height) {
    const { picture, density } = this;
    if (picture.search.isActive) return 0;
    const { start, end } = picture.data.slices;
    const from = picture.time(column + LABELS);
    if (start[i] > from) return 0;
    const waited = picture.describer.waitedUntil(i);
    const until = end[i] < Infinity && from < waited ? waited : end[i];
    const last = Math.min(picture.x(until) - LABELS, picture.plot + COLUMN);
    const width = Math.floor((last - column) / COLUMN) * COLUMN;
    if (width < 2 * COLUMN) return 0;
    density.shares.fill(0);
    density.add(i, from, picture.time(column + COLUMN + LABELS));
    const look = density.shares.findIndex(share => share > 0);
    this.raster.fill(column, y - AXIS, width, height, ...this.colors[look], 1);
    return width;
  }

  drawColumn(first, last, from, to, x, y, height) {
    const { density: { shares }, colors, picture: { search } } = this;
    const isFound = search.isActive && search.any(first, last);
    if (isFound) return this.raster.fill(x, y - AXIS, COLUMN, height, ...this.mark, 1);
    this.density.cover(first, last, from, to);
    let red = 0, green = 0, blue = 0, sum = 0;
    for (let look = 0; look < LOOKS; look++) {
      const share = shares[look];
      if (share === 0) continue;
      const color = colors[look];
      red += color[0] * share;
      green += color[1] * share;
      blue += color[2] * share;
      sum += share;
    }
    if (sum === 0) return;
    const full = FAINTEST + (1 - FAINTEST) * Math.min(sum / (to - from), 1);
    this.raster.fill(x, y - AXIS, COLUMN, height, red / sum, green / sum, blue / sum, search.isActive ? full * 0.25 : full);
  }

  // Called when all lines' narrow slices are known.
  drawRaster() { this.raster.drawOn(this.picture.context, LABELS, AXIS); }

  drawWide(line, i, y, height) {
    const { picture } = this;
    const { theme, data, search, describer } = picture;
    const isWrong = picture.isWrong(line, i);
    const x = picture.x(data.slices.start[i]);
    const isOpen = data.slices.end[i] === Infinity;
    const right = isOpen ? picture.width + 4 : picture.x(data.slices.end[i]);
    const matches = search.isActive && search.has(i);
    const alpha = search.isActive && !matches ? 0.25 : 1;
    const until = isOpen ? x : picture.x(describer.waitedUntil(i));  // pale up to here
    const seam = right - until > 3 ? 1 : 0;  // separates slices that touch
    this.fill(until, y, right - until - seam, height, isOpen ? theme.stuck : this.color(i, isWrong), alpha);
    if (isOpen) this.fill(x, y, right - x, height, picture.hatch, alpha * 0.35);
    if (isOpen && isWrong) this.frame(x, y, right, height, theme.culprit, 2.5);
    if (until > x) this.drawWaiting(line, i, x, y, until, height, alpha);
    if (matches || picture.selected) this.drawFrame(line, i, x, y, right, height, matches);
    if (right - x > 34 && height >= HIGH && alpha === 1) this.drawTitle(line, i, x, y, right, until);
  }

  color(i, isWrong) {
    const { data, theme } = this.picture;
    const kind = data.calls[data.slices.call[i]][0];
    if (kind === COMPUTE) return theme.compute;
    return isWrong ? theme.culprit : kind === MESSAGE ? theme.message : theme.busy;
  }

  fill(x, y, width, height, color, alpha = 1) {
    const { context: pen, width: edge } = this.picture;
    const left = Math.max(x, LABELS - 1), right = Math.min(x + width, edge + 1);
    pen.globalAlpha = alpha;
    pen.fillStyle = color;
    pen.fillRect(left, y, right - left, height);
    pen.globalAlpha = 1;
  }

  // Draws the title in the wider of the slice's two parts.
  drawTitle(line, i, x, y, right, until) {
    const { picture } = this;
    const { theme, data } = picture;
    const isWaiting = until - x > right - until;
    const left = Math.max(isWaiting ? x : until, LABELS);
    const room = Math.min(isWaiting ? until : right, picture.width) - left;
    const isPale = isWaiting || data.slices.end[i] === Infinity || data.calls[data.slices.call[i]][0] === COMPUTE;
    const title = picture.describer.title(i, picture.rows.lines[line].row.ranks[0]);
    picture.text(picture.fit(title, room - 6), left + 3, y - 2, isPale ? theme.text : theme.page);
  }

  // Draws the part of a collective before its last member arrived: pale, with an outline.
  drawWaiting(line, i, x, y, until, height, alpha) {
    const { picture } = this;
    this.fill(x, y, until - x, height, picture.theme.waiting, alpha);
    if (until - x <= 4) return;
    picture.context.strokeStyle = picture.theme.busy;
    picture.context.lineWidth = 1;
    picture.context.strokeRect(x + 0.5, y + 0.5, until - x - 1, Math.max(height - 1, 0.5));
    picture.noteArrival(i, line);
  }

  // Frames the chosen slice, the others of its slot, and search results.
  drawFrame(line, i, x, y, right, height, matches) {
    const { picture } = this;
    const isChosen = picture.selected?.slice === i && picture.selected.line === line;
    if (!isChosen && !matches && !picture.isOfChosenSlot(i)) return;
    const { theme } = picture;
    this.frame(x, y, right, height, matches && !isChosen ? theme.mark : theme.text, isChosen ? 3 : 1.5);
  }

  frame(x, y, right, height, color, width) {
    const { context: pen } = this.picture;
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.strokeRect(x, y, Math.max(right - x, 2), height);
  }

  // Draws the culprit's wrong call if it is not drawn individually.
  drawWrong(i, y, height) {
    const { picture } = this;
    const { start, end } = picture.data.slices;
    const x = picture.x(start[i]), right = picture.x(end[i]);
    if (right - x < WIDE || height < HIGH) this.fill(x - 1, y, Math.max(right - x, 3), height, picture.theme.culprit);
  }

  // Draws an empty frame from `x` on where a call of the culprit is missing.
  drawMissing(text, x, y, height) {
    const { picture } = this;
    const { context: pen, theme, width } = picture;
    pen.fillStyle = theme.page;
    pen.fillRect(x, y, width - x, height);
    pen.setLineDash([4, 3]);
    this.frame(x + 1, y, width + 4, height, theme.culprit, 1.5);
    pen.setLineDash([]);
    if (height >= HIGH) picture.text(picture.fit(text, width - x - 10), x + 6, y - 2, theme.culprit, "bold");
  }

  // Draws the chosen slice if it is not drawn individually.
  drawChosen(y, height) {
    const { picture } = this;
    const { start, end } = picture.data.slices;
    const { slice } = picture.selected;
    const x = picture.x(start[slice]), right = Math.min(picture.x(end[slice]), picture.width + 4);
    if (right - x < WIDE || height < HIGH) this.frame(x, y, right, height, picture.theme.text, 3);
  }
}
