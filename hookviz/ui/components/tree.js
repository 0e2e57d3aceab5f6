// Rows that fold: a click or Enter opens and closes one; ↑ ↓ go through those that are seen, → opens
// or steps inside, ← closes or goes out, as in the tree grids of ARIA's authoring practices.

import { frame, make } from "../../explorer/client/shared.js";

export default function ({ data, parentElement }) {
  const find = frame(
    parentElement,
    `<div><div class="all"><button type="button">Unfold all</button><button type="button">Fold all</button></div>
     <div class="hv-tree"><table role="treegrid"><thead></thead><tbody></tbody></table></div></div>`,
  );
  const table = find("table");
  const told = JSON.stringify(data);
  if (table.told === told) return; // what a person has folded stays so
  table.told = told;
  table.setAttribute("aria-label", data.title);

  const cells = (kind, texts) =>
    texts.map((text, at) =>
      make(kind, { className: data.numbers[at] ? "number" : "", ...(kind === "th" ? { scope: "col" } : {}) }, text),
    );
  const row = (kind, texts) => make("tr", {}, ...cells(kind, texts));
  const { depths } = data;
  const has = depths.map((depth, at) => depths[at + 1] > depth);
  const open = depths.map((depth, at) => has[at] && depth < data.shown);
  const lines = data.rows.map((texts, at) => {
    const line = row("td", texts);
    line.setAttribute("aria-level", depths[at] + 1);
    line.style.setProperty("--depth", depths[at]);
    line.firstElementChild?.prepend(make("span", { className: "sign" }));
    return line;
  });
  find("thead").replaceChildren(row("th", data.columns));
  find("tbody").replaceChildren(...lines);

  const parentOf = (at) => depths.slice(0, at).findLastIndex((depth) => depth < depths[at]);
  let current = 0;
  const enter = (at, focus = true) => {
    lines[current]?.setAttribute("tabindex", -1);
    current = at;
    lines[at]?.setAttribute("tabindex", 0);
    if (focus) lines[at].focus();
  };
  const show = () => {
    let folded = Infinity; // the depth of a folded row; what follows and is deeper is not seen
    lines.forEach((line, at) => {
      if (depths[at] <= folded) folded = Infinity;
      line.hidden = depths[at] > folded;
      if (has[at]) line.setAttribute("aria-expanded", open[at]);
      if (has[at] && !open[at] && !line.hidden) folded = depths[at];
    });
  };
  const fold = (at, opened) => {
    open[at] = opened;
    show();
  };
  const seen = (at, step) => {
    let next = at + step;
    while (lines[next]?.hidden) next += step;
    return lines[next] ? next : at;
  };
  const keys = {
    ArrowDown: (at) => enter(seen(at, 1)),
    ArrowUp: (at) => enter(seen(at, -1)),
    Home: () => enter(0),
    End: () => enter(seen(lines.length, -1)),
    ArrowRight: (at) => (has[at] && !open[at] ? fold(at, true) : has[at] && enter(at + 1)),
    ArrowLeft: (at) => (open[at] ? fold(at, false) : parentOf(at) >= 0 && enter(parentOf(at))),
    Enter: (at) => has[at] && fold(at, !open[at]),
    " ": (at) => has[at] && fold(at, !open[at]),
  };
  lines.forEach((line, at) => {
    line.tabIndex = -1;
    line.onclick = () => {
      if (!getSelection()?.isCollapsed) return; // a text was marked, to be copied
      enter(at);
      if (has[at]) fold(at, !open[at]);
    };
    line.onkeydown = (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation(); // the page has keys of its own
      keys[event.key](at);
    };
  });
  const [unfold, close] = parentElement.querySelectorAll(".all button");
  const all = (opened) => () => {
    open.forEach((_, at) => (open[at] = has[at] && opened));
    show();
    if (lines[current]?.hidden) enter(0, false);
  };
  unfold.onclick = all(true);
  close.onclick = all(false);
  find(".all").hidden = !has.some(Boolean);
  show();
  enter(0, false);
}
