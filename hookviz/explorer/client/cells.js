// The cells of a map: which one a link means, which one is beside another.

/**
 * A cell's row and column.
 * @typedef {[number, number]} Cell
 */

/**
 * The cell that a link names, on a map of this size: the same place where the map that it was picked
 * on had another one. A link that names none means the strongest.
 * @param {string | null | undefined} text
 * @param {number} rows
 * @param {number} columns
 * @param {number} strongest the place of that cell, row by row
 * @returns {Cell}
 */
export const cellOf = (text, rows, columns, strongest) => {
  const found = /^(\d{1,6}),(\d{1,6})(?:,(\d{1,6}),(\d{1,6}))?$/.exec(text ?? "");
  if (!found) return [Math.floor(strongest / columns), strongest % columns];
  let [row, column] = [Number(found[1]), Number(found[2])];
  if (found[3] !== undefined) {
    row = Math.floor(((row + 0.5) * rows) / Math.max(1, Number(found[3])));
    column = Math.floor(((column + 0.5) * columns) / Math.max(1, Number(found[4])));
  }
  return [Math.min(row, rows - 1), Math.min(column, columns - 1)];
};

/**
 * A cell as a link has it, with the size of its map.
 * @param {Cell} cell
 * @param {number} rows
 * @param {number} columns
 */
export const inLink = ([row, column], rows, columns) => `${row},${column},${rows},${columns}`;

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/**
 * The cell that an arrow key leads to; null for any other key.
 * @param {Cell} cell
 * @param {string} key
 * @param {number} rows
 * @param {number} columns
 * @returns {Cell | null}
 */
export const stepped = ([row, column], key, rows, columns) => {
  if (!Object.hasOwn(STEPS, key)) return null;
  const [down, across] = STEPS[key];
  return [Math.min(rows - 1, Math.max(0, row + down)), Math.min(columns - 1, Math.max(0, column + across))];
};
