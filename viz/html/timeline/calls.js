// The visible calls as a table: for screen readers, and for copying.

const LISTED_MOST = 300;

class CallList {
  constructor(timeline) {
    this.timeline = timeline;
    this.body = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Calls in sight" });
    this.root = element("details", { class: "calls" }, element("summary", {}, "Visible calls as a table"), this.body);
    this.root.addEventListener("toggle", () => this.update());
  }

  update() {
    if (!this.root.open) return;
    const { rows, describer, picture, data } = this.timeline;
    const { start, end } = data.slices;
    const found = [];
    let count = 0;
    rows.lines.forEach(({ lane, row }) => {
      const first = firstAbove(end, lane.first, lane.last, picture.view.from);
      const last = firstAbove(start, first, lane.last, picture.view.to);
      for (let i = first; i < last; i++) {
        if (data.calls[data.slices.call[i]][0] === COMPUTE) continue;
        if (++count <= LISTED_MOST) found.push(Object.fromEntries(describer.facts(i, row)));
      }
    });
    const titles = ["who", "call", "label", "site", "from", "took", "waited"];
    const line = (cells, tag) => element("tr", {}, ...cells.map(cell => element(tag, {}, cell)));
    this.body.replaceChildren(
        element("table", {}, element("thead", {}, line(titles, "th")),
                element("tbody", {}, ...found.map(facts => line(titles.map(title => facts[title === "call" ? "" : title] ?? ""), "td")))),
        ...(count > LISTED_MOST ? [element("p", {}, `... and ${count - LISTED_MOST} more; zoom in to see them`)] : []));
  }
}
