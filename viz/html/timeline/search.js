// Search: "all_reduce", "#12", "all_reduce #12", part of a label, of a group or of a site.

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

  // Before each slice, how many match: whether any of several does is then one subtraction.
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
  count() { return this.isActive ? this.before[this.data.slices.count] : 0; }

  // The match next to `time` among the lines, in the direction of `sign`; or null.
  next(lines, time, sign) {
    const { start } = this.data.slices;
    let best = null;
    lines.forEach((line, index) => {
      for (let i = line.lane.first; i < line.lane.last; i++) {
        const ahead = (start[i] - time) * sign;
        if (ahead > 0 && (!best || ahead < best.ahead) && this.has(i)) best = { ahead, line: index, slice: i };
      }
    });
    return best;
  }
}
