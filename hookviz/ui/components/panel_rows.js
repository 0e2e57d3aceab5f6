// Where panels lie: side by side in rows that fill the width, as large as the free height allows. Those
// that would become too small to be read follow below, in rows of their own.

/**
 * What is known of a panel before it is laid out.
 * @typedef {{
 *   aspect: number,
 *   stretch: number,
 *   most: number,
 *   tallest?: number,
 *   least: [number, number],
 *   around: (wide: number) => number,
 *   fixed?: boolean,
 *   free?: boolean,
 * }} Shape
 * `aspect`: its width by its height, and `stretch` what that may become where there is room beside it;
 * `most`: pixels that it is wide at most, and `tallest` those that its picture is high; `least`: pixels
 * across and down below which it can't be read; `around`: pixels down that its words take at a width;
 * with `fixed` it is as large as `least` says, and with `free` it may be less high than its width asks
 * for, where its words leave it no more.
 * @typedef {{wide: number, high: number}} Size
 */

export const GAP = 16; // pixels between panels
const STEP = 4; // pixels between two heights that are tried

// Those that are compared stay of one size.
const isAlike = (/** @type {Shape} */ one, /** @type {Shape} */ other) =>
  one.aspect === other.aspect && one.stretch === other.stretch && one.most === other.most;

/**
 * The sizes of the panels of a row that is `room` pixels high at most; null where one gets too small.
 * @param {Shape[]} row
 * @param {number} width
 * @param {number} room
 * @returns {Size[] | null}
 */
const fitRow = (row, width, room) => {
  const free = width - (row.length - 1) * GAP;
  for (let high = room; high > 0; high -= STEP) {
    const sizes = row.map(({ aspect, most, tallest = Infinity, least, fixed }) => {
      if (fixed) return { wide: Math.min(free, least[0]), high: least[1] };
      const wide = Math.min(Math.min(high, tallest) * aspect, most);
      return { wide: Math.floor(wide), high: Math.floor(wide / aspect) };
    });
    let left = free - sizes.reduce((sum, { wide }) => sum + wide, 0);
    if (left < 0) continue;
    sizes.forEach((size, at) => {
      const { stretch, most, fixed } = row[at];
      if (fixed) return;
      const share = left / row.slice(at).filter((other) => isAlike(other, row[at])).length;
      const more = Math.max(0, Math.min(share, size.high * stretch - size.wide, most - size.wide));
      size.wide = Math.floor(size.wide + more);
      left -= more;
    });
    sizes.forEach((size, at) => {
      if (row[at].free) size.high = Math.min(size.high, room - row[at].around(size.wide));
    });
    if (sizes.some((size, at) => size.high + row[at].around(size.wide) > room)) continue;
    const seen = sizes.every(
      (size, at) =>
        row[at].fixed || (size.wide >= Math.min(row[at].least[0], row[at].most) && size.high >= row[at].least[1]),
    );
    return seen ? sizes : null;
  }
  return null;
};

/**
 * Whether a panel can be read within `room` pixels down.
 * @param {Shape} shape
 * @param {number} width
 * @param {number} room
 */
export const fits = (shape, width, room) => fitRow([shape], width, room) !== null;

const inRows = (items, count) =>
  Array.from({ length: Math.ceil(items.length / count) }, (_, at) => items.slice(at * count, (at + 1) * count));

/**
 * All of the panels within `height`, as large as they can be; null where one gets too small.
 * @param {Shape[]} shapes
 * @param {number} width
 * @param {number} height
 * @returns {Size[][] | null}
 */
const fitAll = (shapes, width, height) => {
  /** @type {Size[][] | null} */
  let best = null;
  let largest = 0;
  for (let across = 1; across <= shapes.length; across += 1) {
    const rows = inRows(shapes, across);
    const room = Math.floor((height - (rows.length - 1) * GAP) / rows.length);
    const sizes = rows.map((row) => fitRow(row, width, room)).filter((row) => row !== null);
    if (sizes.length !== rows.length) continue;
    const area = sizes.flat().reduce((sum, size) => sum + size.wide * size.high, 0);
    if (area > largest) [best, largest] = [sizes, area];
  }
  return best;
};

/**
 * The panels' sizes without their words, row by row: as many as can be within `first` pixels down, the
 * others within `height` each time.
 * @param {Shape[]} shapes
 * @param {number} width
 * @param {number} first
 * @param {number} height
 * @returns {Size[][]}
 */
export const arrange = (shapes, width, first, height) => {
  for (let count = shapes.length; count > 0; count -= 1) {
    const rows = fitAll(shapes.slice(0, count), width, first);
    if (rows) return [...rows, ...arrange(shapes.slice(count), width, height, height)];
  }
  if (!shapes.length) return [];
  const [one, ...others] = shapes; // too large for the window, whatever is done
  const wide = Math.floor(
    Math.min(width, one.most, one.fixed ? one.least[0] : Math.max(one.least[0], one.least[1] * one.aspect)),
  );
  const size = { wide, high: one.fixed ? one.least[1] : Math.max(1, Math.floor(wide / one.aspect)) };
  return [[size], ...arrange(others, width, height, height)];
};
