// A stretch of time on some lines, which the reader has selected, and the sums over all ranks in it.

const AREA_WORDS = ["computing", "in collectives", "waiting for others", "sending and receiving", "in calls that never returned"];

class Area {
  // Between two points, each { time, line }; lines may lie outside the picture.
  constructor(a, b, lines) {
    this.from = Math.min(a.time, b.time);
    this.to = Math.max(a.time, b.time);
    const inside = line => Math.min(Math.max(line, 0), lines.length - 1);
    this.first = inside(Math.min(a.line, b.line));
    this.last = inside(Math.max(a.line, b.line));
  }

  // How long each look took, how many calls began, and on which ranks. A row stands for several ranks, whose times may
  // differ.
  sums(data, lines, density) {
    const { start, end } = data.slices;
    const times = new Float64Array(LOOKS);
    const ranks = new Set();
    let calls = 0;
    for (const { row, index } of lines.slice(this.first, this.last + 1)) {
      for (const rank of row.ranks) {
        ranks.add(rank);
        const lane = data.stories[data.ranks[rank]].lanes[index];
        const first = firstAbove(end, lane.first, lane.last, this.from);
        const last = firstAbove(start, first, lane.last, this.to);
        if (last <= first) continue;
        density.cover(first, last, this.from, this.to);
        density.shares.forEach((share, look) => { times[look] += share; });
        for (let i = first; i < last; i++) calls += data.calls[data.slices.call[i]][0] !== COMPUTE && start[i] >= this.from ? 1 : 0;
      }
    }
    return { times, calls, ranks: [...ranks].sort((a, b) => a - b) };
  }

  // [key, value] as facts of a slice.
  facts(data, lines, density) {
    const { times, calls, ranks } = this.sums(data, lines, density);
    const whole = (this.to - this.from) * ranks.length;
    const share = time => `${durationText(time)} (${(time / whole * 100).toFixed(1)} %)`;
    return [["", ranksText(ranks)], ["from", durationText(this.from)], ["to", durationText(this.to)],
            ["lasts", durationText(this.to - this.from)], ["calls", String(calls)],
            ...AREA_WORDS.map((words, look) => [words, times[look] > 0 ? share(times[look]) : ""])].filter(([, value]) => value !== "");
  }
}
