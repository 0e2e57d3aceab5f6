// Where a person points, and which tile and which cell lie there. What is read under the pointer and what
// a click picks up come from the same functions.

import { GAP } from "./tiling.js";

/**
 * @typedef {{x: number, y: number}} Point in the window
 * @typedef {{left: number, top: number, width: number, height: number}} Box
 * @typedef {[number, number]} Cell
 */

/**
 * Follows the pointer over an element; returns what says where an event happened.
 *
 * A browser tells a click in whole pixels, and where a map is small the cell may be another one there. So a
 * click is where the pointer was last, if that is less than a pixel away.
 * @param {HTMLElement} element
 * @returns {(event: MouseEvent) => Point}
 */
export const pointing = (element) => {
  /** @type {Point | null} */
  let last = null;
  const note = (/** @type {PointerEvent} */ event) => {
    last = { x: event.clientX, y: event.clientY };
  };
  // before whoever else listens
  for (const kind of /** @type {const} */ (["pointermove", "pointerdown", "pointerup"])) {
    element.addEventListener(kind, note, { capture: true });
  }
  return ({ clientX: x, clientY: y }) =>
    last && Math.abs(last.x - x) < 1 && Math.abs(last.y - y) < 1 ? last : { x, y };
};

const place = (/** @type {number} */ share, /** @type {number} */ count) =>
  Math.min(count - 1, Math.max(0, Math.floor(share * count)));

/**
 * The cell of a map under a point, or the nearest to it.
 * @param {Box} box where the map is shown
 * @param {Point} point
 * @param {number} rows
 * @param {number} columns
 * @returns {Cell}
 */
export const nearestCell = ({ left, top, width, height }, { x, y }, rows, columns) => [
  place((y - top) / height, rows),
  place((x - left) / width, columns),
];

/**
 * The cell of a map under a point; null beside the map.
 * @param {Box} box
 * @param {Point} point
 * @param {number} rows
 * @param {number} columns
 * @returns {Cell | null}
 */
export const cellAt = (box, point, rows, columns) => {
  const [right, bottom] = [box.left + box.width, box.top + box.height];
  const isInside = point.x >= box.left && point.x < right && point.y >= box.top && point.y < bottom;
  return isInside ? nearestCell(box, point, rows, columns) : null;
};

/**
 * The position of the tile under a point of the board, of two the nearest; null where the last row is over.
 * @param {{columns: number, wide: number, high: number, first: number, last: number}} lie how the tiles lie
 * @param {Point} point from the board's upper left corner
 */
export const tileAt = ({ columns, wide, high, first, last }, { x, y }) => {
  const rows = Math.ceil((last - first) / columns);
  const [row, column] = nearestCell(
    { left: -GAP / 2, top: -GAP / 2, width: columns * (wide + GAP), height: rows * (high + GAP) },
    { x, y },
    rows,
    columns,
  );
  const at = first + row * columns + column;
  return at < last ? at : null;
};
