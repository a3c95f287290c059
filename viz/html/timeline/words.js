// The text about a slice.

function durationText(ns) {
  for (const [size, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) {
    if (Math.abs(ns) >= size) return `${+(ns / size).toPrecision(6)} ${name}`;
  }
  return `${Math.round(ns)} ns`;
}

function ranksText(ranks) {
  const ranges = [];
  for (const rank of ranks) {
    const last = ranges.at(-1);
    if (last && last[1] === rank - 1) last[1] = rank; else ranges.push([rank, rank]);
  }
  const text = ranges.slice(0, 6).map(([a, b]) => a === b ? `${a}` : `${a}-${b}`).join(",");
  return `${ranks.length === 1 ? "rank" : "ranks"} ${text}${ranges.length > 6 ? ",…" : ""}`;
}

class Describer {
  constructor(data) {
    this.data = data;
    this.arrivals = data.calls.map(([kind, , group]) => kind === COLLECTIVE ? data.groups.get(group) : undefined);
  }

  title(i, rank) {
    const { calls, slices } = this.data;
    const [kind, name, group] = calls[slices.call[i]];
    if (kind === COMPUTE) return name;
    const number = slices.seq[i] < 0 || kind === MESSAGE ? "" : ` #${slices.seq[i]}`;
    return `${name}${number}${kind === MESSAGE ? this.peer(i, rank, name) : ""}` +
           (group === "world" ? "" : ` on ${group}`);
  }

  peer(i, rank, name) {
    const offset = this.data.slices.peer[i];
    const word = name === "recv" ? "from" : "to";
    return offset === UNKNOWN_PEER ? ` ${word} anyone` : ` ${word} rank ${rank + offset}`;
  }

  // [key, value] in the order of importance to readers.
  facts(i, row) {
    const { calls, slices } = this.data;
    const [kind, , group, data, more, label, site, isAsync] = calls[slices.call[i]];
    const isOpen = slices.end[i] === Infinity;
    const facts = [["", this.title(i, row.ranks[0])], ["who", row.text + (row.ranks.length > 1 ? " alike" : "")]];
    if (kind !== COMPUTE) facts.push(["group", group]);
    if (kind === MESSAGE) facts.push(["number", `#${slices.seq[i]} of the rank's messages`]);
    facts.push(["data", [data, more].filter(Boolean).join(", ")], ["label", label], ["site", site]);
    facts.push(["from", durationText(slices.start[i])],
               ["took", isOpen ? "never returned" : durationText(slices.end[i] - slices.start[i])]);
    const last = this.lastArrival(i);
    if (last && last.time > slices.start[i]) {
      facts.push(["waited", `${durationText(last.time - slices.start[i])} for rank ${last.rank}`]);
    }
    if (isAsync) facts.push(["async", "yes"]);
    return facts.filter(([, value]) => value !== "");
  }

  // For a collective: the rank that arrived last, and when.
  lastArrival(i) {
    const arrivals = this.arrivals[this.data.slices.call[i]];
    const place = arrivals ? arrivals.find(this.data.slices.seq[i]) : -1;
    return place >= 0 ? { rank: arrivals.rank[place], time: arrivals.time[place] } : null;
  }

  // The time until which a slice waited for others; its start if it did not wait.
  waitedUntil(i) {
    const { start, end, call, seq } = this.data.slices;
    if (this.data.calls[call[i]][0] === HOST) return end[i];  // it does nothing else
    const arrivals = this.arrivals[call[i]];
    const time = arrivals ? arrivals.time[arrivals.find(seq[i])] : undefined;
    return time > start[i] ? Math.min(time, end[i]) : start[i];
  }
}
