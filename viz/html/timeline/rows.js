// Rows: one per rank, or one for all ranks that made the same calls and ended in the same state.

function statesByRank(data) {
  const states = new Array(data.world).fill(null);
  for (const state of data.states) {
    for (const [first, last] of state.ranks) states.fill(state, first, last + 1);
  }
  return states;
}

class Rows {
  constructor(data) {
    this.data = data;
    this.states = statesByRank(data);
    this.opened = new Set();  // folds whose ranks are shown one by one
    this.isFolded = data.world > 16;
    this.build();
  }

  keyOf(rank) {
    const state = this.states[rank];
    return `${this.data.stories[this.data.ranks[rank]].fold}:${state ? this.data.states.indexOf(state) : -1}`;
  }

  build() {
    const rows = new Map();
    for (let rank = 0; rank < this.data.world; rank++) {
      const fold = this.keyOf(rank);
      const key = this.isFolded && !this.opened.has(fold) ? fold : rank;
      if (!rows.has(key)) rows.set(key, this.rowOf(rank, fold));
      rows.get(key).ranks.push(rank);
    }
    this.list = [...rows.values()];
    this.lines = [];
    this.lineOfRank = new Int32Array(this.data.world);
    for (const row of this.list) {
      row.text = ranksText(row.ranks);
      for (const rank of row.ranks) this.lineOfRank[rank] = this.lines.length;
      row.story.lanes.forEach((lane, index) => this.lines.push({ row, lane, index }));
    }
  }

  rowOf(rank, fold) {
    const state = this.states[rank];
    return { ranks: [], fold, story: this.data.stories[this.data.ranks[rank]], isCulprit: !!state?.culprit,
             state: state?.text ?? "" };
  }

  toggleAll() { this.isFolded = !this.isFolded; this.opened.clear(); this.build(); }
  toggle(row) {
    if (!this.isFolded) return;
    if (!this.opened.delete(row.fold)) this.opened.add(row.fold);
    this.build();
  }
}
