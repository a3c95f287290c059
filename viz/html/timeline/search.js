// Search: "all_reduce", "#12", "all_reduce #12", part of a label, of a group, or of a site.

class Search {
  constructor(data) { this.data = data; this.set(""); }

  set(text) {
    const number = text.match(/#(\d+)/);
    const words = text.replace(/#\d+/, "").toLowerCase().split(/\s+/).filter(Boolean);
    this.isActive = words.length > 0 || number !== null;
    this.seq = number ? Number(number[1]) : -1;
    this.calls = Uint8Array.from(this.data.calls, call => {
      const fields = call.slice(1, 7).join("\n").toLowerCase();
      return words.every(word => fields.includes(word)) && !(number && call[0] === COMPUTE) ? 1 : 0;
    });
    this.countBefore();
  }

  // Counts the matches before each slice, so that whether any of several slices matches is one
  // subtraction.
  countBefore() {
    if (!this.isActive) return;
    const { count } = this.data.slices;
    this.before ??= new Uint32Array(count + 1);
    for (let i = 0; i < count; i++) this.before[i + 1] = this.before[i] + (this.has(i) ? 1 : 0);
  }

  has(i) {
    const { call, seq } = this.data.slices;
    return this.calls[call[i]] === 1 && (this.seq < 0 || seq[i] === this.seq);
  }

  any(first, last) { return this.before[last] > this.before[first]; }

  // The matches of all ranks, whether they share a row or not.
  count() {
    if (!this.isActive) return 0;
    const ofStory = this.data.stories.map(({ lanes }) => this.onLines(lanes.map(lane => ({ lane }))));
    return this.data.ranks.reduce((sum, story) => sum + ofStory[story], 0);
  }

  // The matches on the visible rows.
  onLines(lines) { return lines.reduce((sum, { lane }) => sum + this.before[lane.last] - this.before[lane.first], 0); }

  // Matches are in order of time; at equal times, the upper line's is first. `from` is { time, line
  // }. Returns the next
  // match after it in the direction of `sign`, or null.
  next(lines, from, sign) {
    const { start } = this.data.slices;
    let best = null;
    lines.forEach(({ lane }, line) => {
      const slice = sign > 0 ? this.after(lane, from.time, line > from.line) : this.ahead(lane, from.time, line < from.line);
      if (slice < 0) return;
      const lead = best ? (start[slice] - start[best.slice]) * sign : -1;
      if (lead < 0 || (lead === 0 && sign < 0)) best = { line, slice };
    });
    return best;
  }

  // The position of a match among all matches on these lines, from 1.
  position(lines, { line, slice }) {
    const { start } = this.data.slices;
    return 1 + lines.reduce((sum, { lane }, index) => {
      const end = index === line ? slice : this.bound(lane, start[slice], index < line);
      return sum + this.before[end] - this.before[lane.first];
    }, 0);
  }

  // The first slice of a lane that starts at `time` or later or, with `isBehind`, only later.
  bound(lane, time, isBehind) {
    const { start } = this.data.slices;
    let low = lane.first, high = lane.last;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[middle] < time || (isBehind && start[middle] === time)) low = middle + 1; else high = middle;
    }
    return low;
  }

  after(lane, time, withTime) {
    const from = this.bound(lane, time, !withTime);
    return this.any(from, lane.last) ? this.nth(from, lane.last, this.before[from] + 1) : -1;
  }

  ahead(lane, time, withTime) {
    const end = this.bound(lane, time, withTime);
    return this.any(lane.first, end) ? this.nth(lane.first, end, this.before[end]) : -1;
  }

  // The slice in [low, high) at which the number of matches reaches `count`.
  nth(low, high, count) {
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.before[middle + 1] < count) low = middle + 1; else high = middle;
    }
    return low;
  }
}
