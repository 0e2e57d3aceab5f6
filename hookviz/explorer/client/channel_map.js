// One map, large: every cell a sharp square with its value under the pointer; a click, or arrow keys
// and Enter, look at one of its cells.

import { stepped } from "./cells.js";
import { cellAt, pointing } from "./pointing.js";
import { colourBar, frame, inSigns, number, penOf, say } from "./shared.js";

const DIGITS = 6; // of float32

const FRAME = `
  <div class="single">
    <div class="stage" tabindex="0" role="application">
      <canvas class="picture"></canvas><div class="frame selected"></div><div class="frame cursor"></div>
    </div>
    <div class="line"><output></output></div>
    <div class="scale"><img alt=""><div class="ticks"></div></div>
  </div>`;

/**
 * A map to look at.
 * @typedef {object} Shown
 * @property {number} rows
 * @property {number} columns
 * @property {CanvasImageSource | null} picture a pixel for each cell; null leaves what is painted
 * @property {Float32Array | null} values exact ones, where they are there
 * @property {((row: number, column: number) => number | null)} [about] a value read from its colour
 * @property {[number, number]} cell the one that is looked at
 * @property {number} [digits] that the values have, where they are not exact
 * @property {string} says what the map is, for who can't see it
 * @property {string} bar
 * @property {[number, string][]} ticks
 */

/**
 * @param {HTMLElement | ShadowRoot} parent
 * @param {(cell: [number, number]) => void} picked gets the cell that a person looks at
 */
export function channelMap(parent, picked) {
  const find = frame(parent, FRAME);
  const [stage, picture, cursor, selected, output] = [".stage", ".picture", ".cursor", ".selected", "output"].map(find);
  /** @type {Shown | null} */
  let now = null;
  /** @type {[number, number]} */
  let at = [0, 0];

  const put = (box, [row, column], { rows, columns }) => {
    box.style.left = `${(100 * column) / columns}%`;
    box.style.top = `${(100 * row) / rows}%`;
    box.style.width = `${100 / columns}%`;
    box.style.height = `${100 / rows}%`;
  };
  const written = (/** @type {Shown} */ { values, columns, about, digits }, [row, column]) => {
    if (values) {
      const near = digits ? "≈ " : "";
      return ` · ${near}${inSigns(values[row * columns + column].toPrecision(digits ?? DIGITS))}`;
    }
    const near = about?.(row, column) ?? null;
    return near === null ? "" : ` · ≈ ${number(near)}`;
  };
  const read = () => {
    if (!now) return;
    put(cursor, at, now);
    put(selected, now.cell, now);
    output.textContent = say("row {row}, column {column}", { row: at[0], column: at[1] }) + written(now, at);
  };
  const pick = () => {
    if (!now) return;
    now.cell = at; // framed at once, whatever follows
    read();
    picked(at);
  };
  const pointed = pointing(stage);
  const point = (event) => {
    const cell = now && cellAt(picture.getBoundingClientRect(), pointed(event), now.rows, now.columns);
    if (!cell) return false;
    at = cell;
    read();
    return true;
  };
  stage.onpointermove = point;
  stage.onpointerleave = () => {
    if (now) at = now.cell;
    read();
  };
  stage.onclick = (event) => point(event) && pick();
  stage.onkeydown = (event) => {
    if (!now || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = stepped(at, event.key, now.rows, now.columns);
    if (next) at = next;
    else if (event.key === "Enter" || event.key === " ") pick();
    else return;
    event.preventDefault();
    event.stopPropagation();
    read();
  };

  return {
    /** @param {Shown} facts */
    show(facts) {
      const isElsewhere = !now || String(now.cell) !== String(facts.cell) || now.says !== facts.says;
      const wasPointed = stage.matches(":hover");
      if (isElsewhere && !(wasPointed && now?.says === facts.says)) at = facts.cell;
      at = [Math.min(at[0], facts.rows - 1), Math.min(at[1], facts.columns - 1)];
      now = { ...facts };
      stage.setAttribute("aria-label", facts.says);
      if (picture.width !== facts.columns || picture.height !== facts.rows) {
        [picture.width, picture.height] = [facts.columns, facts.rows];
      }
      if (facts.picture) {
        const pen = penOf(picture);
        pen.clearRect(0, 0, facts.columns, facts.rows);
        pen.drawImage(facts.picture, 0, 0, facts.columns, facts.rows);
      }
      colourBar(find, facts.bar, facts.ticks);
      read();
    },
  };
}
