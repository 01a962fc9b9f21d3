// Every table is sorted by a click on the title of a column: upwards, downwards, and as it was.
const collator = new Intl.Collator("en", { numeric: true });
const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

function compare(one, other) {
  if (!("value" in one.dataset && "value" in other.dataset)) return collator.compare(one.textContent, other.textContent);
  const values = [one, other].map((cell) => Number(cell.dataset.value.replace("inf", "Infinity")));
  return values[0] === values[1] ? 0 : values[0] - values[1];
}

function isEmpty(cell) {
  return cell.textContent === "-";
}

function sort(body, rows, place, order) {
  const turn = order === "descending" ? -1 : 1;
  const sorted = order === "none" ? rows : [...rows].sort((first, second) => {
    const one = first.cells[place], other = second.cells[place];
    return isEmpty(one) - isEmpty(other) || turn * compare(one, other);
  });
  body.append(...sorted);
}

for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], rows = [...body.rows];
  for (const [place, head] of heads.entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const order = NEXT[head.getAttribute("aria-sort") ?? "none"];
      for (const one of heads) one.removeAttribute("aria-sort");
      if (order !== "none") head.setAttribute("aria-sort", order);
      sort(body, rows, place, order);
    });
  }
}

// What a link leads to is shown, also where it is folded.
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  const folded = target?.closest("details");
  if (!folded || folded.open) return;
  folded.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", unfold);
document.addEventListener("click", (event) => {
  if (event.target.closest("a[href^='#']")) setTimeout(unfold);
});
unfold();
