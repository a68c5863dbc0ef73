// The scoreboard's rows that agree with every chosen filter, and how many these are.
for (const filters of document.querySelectorAll(".filters")) {
  const chosen = filters.querySelectorAll("select");
  const rows = [...filters.nextElementSibling.querySelectorAll("tbody tr")];
  filters.addEventListener("change", () => {
    for (const row of rows) row.hidden = [...chosen].some((one) => one.value && row.dataset[one.name] !== one.value);
    filters.querySelector("[role=status]").textContent = `${rows.filter((row) => !row.hidden).length} claims`;
  });
}
