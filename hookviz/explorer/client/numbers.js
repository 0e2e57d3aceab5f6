// A channel in numbers: its histogram, what it comes to as a whole, and its cell by row and column.

import { listed } from "./rich.js";
import { frame, make } from "./shared.js";
import { sign } from "./signs.js";

const FRAME = `
  <div class="in-numbers">
    <p class="dead" hidden></p>
    <p class="none small"></p>
    <div class="hv-histogram" role="img"></div>
    <div class="hv-ends"><span></span><span></span></div>
    <div class="hv-numbers"></div>
    <div class="row-of">
      <label>Row <input class="row-number" type="number" min="0" step="1" required></label>
      <label>Column <input class="column-number" type="number" min="0" step="1" required></label>
    </div>
  </div>`;

/**
 * @param {HTMLElement} parent
 * @param {{picked: (cell: [number, number]) => void}} heard the cell that a person names
 */
export function numbers(parent, heard) {
  const find = frame(parent, FRAME);
  const [row, column] = [find(".row-number"), find(".column-number")];
  const picked = () => {
    if (!row.checkValidity() || !column.checkValidity()) return; // the browser says what is wrong
    heard.picked([Number(row.value), Number(column.value)]);
  };
  row.onchange = picked;
  column.onchange = picked;

  /** @type {Facts | null} */
  let shown = null;
  return {
    /**
     * @param {[number, number]} cell the one that is looked at
     * @param {number} rows
     * @param {number} columns
     */
    at(cell, rows, columns) {
      [row.max, column.max] = [String(rows - 1), String(columns - 1)];
      [row.value, column.value] = cell.map(String);
    },
    /**
     * @param {Facts} data the answer to the question "channel"
     * @param {string} colours name of the colormap whose blue and red the bars have
     */
    show(data, colours) {
      if (data === shown) return;
      shown = data;
      const { numbers: rows, histogram, dead, deadHint, noFinite } = data;
      const badge = find(".dead");
      badge.hidden = !dead;
      badge.title = deadHint ?? "";
      badge.innerHTML = sign("dead");
      badge.append(dead ?? "");
      find(".none").textContent = noFinite;
      const bars = find(".hv-histogram");
      bars.hidden = find(".hv-ends").hidden = !histogram;
      if (histogram) {
        bars.setAttribute("aria-label", histogram.says);
        bars.replaceChildren(
          ...histogram.bars.map(([height, side]) =>
            make("span", { style: `height: ${height}%; background: var(--hv-${colours}-${side})` }),
          ),
        );
        const [low, high] = find(".hv-ends").children;
        [low.textContent, high.textContent] = [histogram.low, histogram.high];
      }
      listed(find(".hv-numbers"), rows, heard.picked);
    },
  };
}
