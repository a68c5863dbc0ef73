// The scoreboard: what is chosen and sorted stands in the address, so that a view can be shared.
for (const filters of document.querySelectorAll(".filters")) {
  const chosen = [...filters.querySelectorAll("select")];
  const tables = [...document.querySelectorAll("table.scoreboard:has(button)")];
  const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
  const state = new URLSearchParams(location.hash.slice(1));

  const show = () => {
    for (const row of rows) row.hidden = chosen.some((one) => one.value && row.dataset[one.name] !== one.value);
    filters.querySelector("[role=status]").textContent = `${rows.filter((row) => !row.hidden).length} rows`;
    const folded = tables[1]?.closest("details");
    if (folded && chosen.some((one) => one.value) && ![...tables[0].tBodies[0].rows].some((row) => !row.hidden)) folded.open = true;
  };
  const keep = (name, value) => {
    value ? state.set(name, value) : state.delete(name);
    history.replaceState(null, "", `#${state}`);
  };
  const value = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = parseFloat(text.replace("−", "-"));
    return Number.isNaN(number) ? text : number;
  };
  const sort = (column, down) => {
    for (const table of tables) {
      const sorted = [...table.tBodies[0].rows].sort((a, b) => {
        const [x, y] = [value(a, column), value(b, column)];
        if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1; // what was not run stays below
        return (x > y ? 1 : x < y ? -1 : 0) * (down ? -1 : 1);
      });
      table.tBodies[0].append(...sorted);
      [...table.tHead.rows[0].cells].forEach((head, place) =>
        place === column ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
    }
  };

  for (const one of chosen) {
    if (state.has(one.name)) one.value = state.get(one.name);
    one.addEventListener("change", () => { keep(one.name, one.value); show(); });
  }
  tables.forEach((table) => [...table.tHead.rows[0].cells].forEach((head, place) =>
    head.querySelector("button").addEventListener("click", () => {
      const column = place === 4 ? 3 : place; // a picture is sorted by its number
      const down = table.tHead.rows[0].cells[column].getAttribute("aria-sort") === "ascending";
      sort(column, down);
      keep("sort", `${column}${down ? "-" : ""}`);
    })));
  if (state.has("sort")) sort(parseInt(state.get("sort")), state.get("sort").endsWith("-"));
  addEventListener("hashchange", () => location.reload());
  show();
}
