// The arithmetic of attention on the page: numbers of 16 bits, and maps laid out by cells.

import { stepped as steppedCell } from "../../explorer/client/cells.js";
import { half } from "../../standalone/client/halves.js";

export const CLASS_TOKEN = -1; // stands for it among the cells that can ask
const UNIT = 1024; // what a weight of 1 was multiplied with, so that small ones keep their digits

/**
 * The numbers that 16 bits each stand for (IEEE 754's binary16, the lowest byte first).
 * @param {Uint8Array} bytes
 * @returns {Float32Array}
 */
export const weightsOf = (bytes) => {
  const bits = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const numbers = new Float32Array(bytes.byteLength / 2);
  for (let at = 0; at < numbers.length; at += 1) {
    numbers[at] = half(bits.getUint16(2 * at, true)) / UNIT;
  }
  return numbers;
};

/**
 * What every cell attends to, by head: `weights` of `heads` × windows × queries × keys, and the cells of queries
 * and keys, window by window, below 0 for those that lie nowhere.
 * @param {{weights: Float32Array, heads: number, queries: number[][], keys: number[][], cells: number}} facts
 */
export const attentionMaps = ({ weights, heads, queries, keys, cells }) => {
  const [windows, count, each] = [queries.length, queries[0].length, keys[0].length];
  /** @type {Map<number, [number, number]>} */
  const places = new Map([[CLASS_TOKEN, [0, 0]]]);
  queries.forEach((row, window) => {
    row.forEach((cell, number) => {
      if (cell >= 0) places.set(cell, [window, number]);
    });
  });
  return {
    heads,
    /** @param {number} cell */
    asks: (cell) => places.has(cell),
    /**
     * What a head's query attends to, `cells` numbers, NaN where there is no key; all of them for one that is not there.
     * @param {number} head
     * @param {number} cell
     */
    map: (head, cell) => {
      const laid = new Float32Array(cells).fill(Number.NaN);
      const place = places.get(cell);
      if (!place) return laid;
      const [window, number] = place;
      const begin = ((head * windows + window) * count + number) * each;
      keys[window].forEach((key, at) => {
        if (key >= 0) laid[key] = weights[begin + at];
      });
      return laid;
    },
  };
};

/**
 * The cell with the largest number and that number; -1 where there is none.
 * @param {ArrayLike<number>} map
 * @returns {[number, number]}
 */
export const strongest = (map) => {
  let top = -1;
  for (let at = 0; at < map.length; at += 1) if (map[at] > (top < 0 ? -Infinity : map[top])) top = at;
  return [top, top < 0 ? Number.NaN : map[top]];
};

/**
 * The cell that an arrow key leads to, at an edge the same one; null for another key.
 * @param {string} key
 * @param {number} cell
 * @param {[number, number]} grid
 */
export const stepped = (key, cell, [rows, columns]) => {
  const next = steppedCell([Math.floor(cell / columns), cell % columns], key, rows, columns);
  return next && next[0] * columns + next[1];
};
