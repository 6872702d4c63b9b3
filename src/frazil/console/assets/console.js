// What pages do beyond HTML: parts that come later, sorting and searching in place, keys, copying, the theme.
"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const one = (selector, within = document) => within.querySelector(selector);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Markup of our own server, made by the templates that made the page.
function fragment(html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  return made.content;
}

async function load(place) {
  for (let wait = 200; ; wait = Math.min(wait * 1.5, 1500)) {
    let answer;
    try {
      answer = await fetch(place.dataset.part, { headers: { accept: "text/html" } });
    } catch {
      one("p", place).textContent = "The console does not answer. Is it still running?";
      return;
    }
    if (answer.status !== 202) {
      const made = fragment(await answer.text());
      place.replaceWith(one("main", made) ?? made);
      return;
    }
    one("p", place).textContent = (await answer.json()).text;
    await pause(wait);
  }
}

async function follow(line) {
  let since = 0;
  for (;;) {
    let answer;
    try {
      answer = await fetch(`${line.dataset.figures}&since=${since}`);
      if (!answer.ok) return;
      answer = await answer.json();
    } catch {
      return;
    }
    since = answer.since;
    for (const [name, html] of Object.entries(answer.rows)) {
      const row = one(`#tables tr[data-name="${CSS.escape(name)}"]`);
      if (row) {
        const made = fragment(`<table><tbody>${html}</tbody></table>`).querySelector("tr");
        made.classList.toggle("current", row.classList.contains("current"));
        made.hidden = row.hidden;
        row.replaceWith(made);
      }
    }
    line.textContent = answer.ready < answer.of ? `Looking at tables: ${answer.ready.toLocaleString("en")} of ${answer.of.toLocaleString("en")}` : "";
    if (answer.ready >= answer.of) return;
    await pause(700);
  }
}

function sortBy(table, column, down) {
  const body = one("tbody", table);
  const key = (row) => {
    const cells = row.cells;
    return column === 0 ? row.dataset.name : (cells[column] ?? cells[cells.length - 1]).dataset.sort ?? "";
  };
  const rows = [...body.rows].map((row) => [key(row), row]);
  const numbers = rows.every(([value]) => value === "" || !Number.isNaN(Number(value)));
  rows.sort(([a], [b]) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const order = numbers ? Number(a) - Number(b) : a.localeCompare(b);
    return down ? -order : order;
  });
  body.append(...rows.map(([, row]) => row));
}

function setUpSorting(table) {
  all("thead a[data-key]", table).forEach((link, column) => {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const head = link.closest("th");
      const down = head.getAttribute("aria-sort") !== "descending";
      all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sortBy(table, column, down);
      const address = new URL(location);
      address.searchParams.set("sort", (down ? "-" : "") + link.dataset.key);
      history.replaceState(null, "", address);
    });
  });
}

function setUpFilter(field) {
  const table = document.getElementById(field.dataset.filters);
  const none = document.getElementById("none");
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    let shown = 0;
    for (const row of one("tbody", table).rows) {
      row.hidden = !(row.dataset.name ?? row.textContent).toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    if (none) none.hidden = shown > 0;
  });
}

function setUpCompare(form) {
  const button = one(".compare button", form);
  const told = one(".compare [role=status]", form);
  const boxes = () => all("input[name=snapshot]", form);
  let order = [];
  form.addEventListener("change", (event) => {
    if (event.target.name !== "snapshot") return;
    order = order.filter((box) => box !== event.target && box.checked);
    if (event.target.checked) order.push(event.target);
    while (order.length > 2) order.shift().checked = false;
    button.disabled = order.length !== 2;
    told.textContent = ["Choose two snapshots to compare.", "Choose one more.", "Two snapshots are chosen."][order.length];
  });
  order = boxes().filter((box) => box.checked);
  button.disabled = order.length !== 2;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // The older one is further down.
    const [newer, older] = boxes().filter((box) => box.checked).map((box) => box.value);
    const address = new URL(form.action);
    address.search = new URLSearchParams({ from: older, to: newer });
    location = address;
  });
}

// Keys

let rowAt = -1;
function moveRow(step) {
  const rows = all("[data-rows] tbody tr").filter((row) => !row.hidden);
  if (!rows.length) return;
  rows[rowAt]?.classList.remove("current");
  rowAt = Math.max(0, Math.min(rows.length - 1, rowAt + step));
  rows[rowAt].classList.add("current");
  (one("a", rows[rowAt]) ?? rows[rowAt]).focus({ preventScroll: true });
  rows[rowAt].scrollIntoView({ block: "nearest" });
}

function changeTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try { localStorage.setItem("frazil-theme", root.dataset.theme); } catch { /* not kept */ }
}

let isGoing = false;
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const field = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (field) {
    if (event.key === "Escape") field.blur();
    return;
  }
  if (isGoing) {
    isGoing = false;
    const tab = one(`.tabs a[data-letter="${CSS.escape(event.key)}"]`);
    if (tab) location = tab.href;
    else if (event.key === "l") location = "/";
    else if (event.key === "q") location = "/sql";
    return;
  }
  const search = one("#search, [data-search]");
  if (event.key === "/" && search) { search.focus(); search.select?.(); event.preventDefault(); }
  else if (event.key === "j") moveRow(1);
  else if (event.key === "k") moveRow(-1);
  else if (event.key === "x") one("[data-rows] tr.current input[type=checkbox]")?.click();
  else if (event.key === "t") changeTheme();
  else if (event.key === "g") isGoing = true;
  else if (event.key === "?") one("#help").showModal();
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    const field = document.createElement("textarea");
    field.value = button.dataset.copy;
    button.after(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1200);
}

document.addEventListener("keydown", onKey);
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.id === "theme") changeTheme();
  else if (button.id === "keys") one("#help").showModal();
  else if (button.dataset.copy !== undefined) copy(button);
  else if (button.dataset.confirm && !confirm(button.dataset.confirm)) event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  // A query is sent by ctrl-Enter, as in other consoles.
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.tagName === "TEXTAREA") event.target.form?.requestSubmit();
});
all("[data-part]").forEach(load);
all("[data-figures]").forEach(follow);
all("table.sortable").forEach(setUpSorting);
all("[data-filters]").forEach(setUpFilter);
all("form.compares").forEach(setUpCompare);
