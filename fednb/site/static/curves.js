// Curves that answer to the pointer: each stands in the place of a figure of the cell before, which is kept for print.
for (const told of document.querySelectorAll("script.curves")) {
  const figures = told.previousElementSibling.querySelectorAll(".cell_output img");
  for (const [place, spec] of Object.entries(JSON.parse(told.textContent))) {
    const still = figures[place];
    const drawing = document.createElement("div");
    drawing.className = "curves";
    still.after(drawing);
    spec.config.legend.columns = Math.max(1, Math.min(3, Math.floor(drawing.clientWidth / 230)));
    const page = { description: still.alt, width: "container", background: "transparent", $schema: undefined };
    const fit = { autosize: { type: "fit-x", contains: "padding" } };
    vegaEmbed(drawing, { ...spec, ...page, ...fit }, { mode: "vega-lite", renderer: "svg", actions: false }).then(
      () => still.classList.add("still"),
      (error) => { drawing.remove(); console.error(error); },
    );
  }
}
