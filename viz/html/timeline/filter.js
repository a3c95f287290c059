// A table that the reader can filter: by words, and by the rows' data-state.

class Filter {
  constructor(table) {
    this.rows = [...table.tBodies[0].rows].map(row => ({ row, text: row.textContent.toLowerCase() }));
    this.state = "";
    this.field = element("input", { type: "search", placeholder: "Filter", "aria-label": "Filter rows" });
    this.count = element("span", { class: "note", "aria-live": "polite" });
    this.buttons = ["", ...new Set(this.rows.map(({ row }) => row.dataset.state ?? ""))].filter(
        (state, index) => index === 0 || state !== "").map(state => this.button(state));
    const tools = element("div", { class: "tools" }, ...(this.buttons.length > 2 ? this.buttons : []), this.field,
                          this.count);
    (table.closest(".scroll") ?? table).before(tools);
    this.field.addEventListener("input", () => this.apply());
    this.apply();
  }

  button(state) {
    const count = this.rows.filter(({ row }) => state === "" || row.dataset.state === state).length;
    const result = element("button", { type: "button" }, `${state === "" ? "all" : state} ${count}`);
    result.addEventListener("click", () => { this.state = state; this.apply(); });
    result.dataset.state = state;
    return result;
  }

  apply() {
    const words = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text } of this.rows) {
      row.hidden = !words.every(word => text.includes(word)) || (this.state !== "" && row.dataset.state !== this.state);
      shown += row.hidden ? 0 : 1;
    }
    this.count.textContent = shown < this.rows.length ? `${shown} of ${this.rows.length}` : "";
    for (const each of this.buttons) each.setAttribute("aria-pressed", String(each.dataset.state === this.state));
  }
}
