// The scoreboard's rows that agree with every chosen filter.
for (const filters of document.querySelectorAll(".filters")) {
  const chosen = filters.querySelectorAll("select");
  const rows = filters.nextElementSibling.querySelectorAll("tbody tr");
  filters.addEventListener("change", () => rows.forEach((row) => {
    row.hidden = [...chosen].some((one) => one.value && row.dataset[one.name] !== one.value);
  }));
}
