// A channel in A beside the same one in B, the chosen cell in both, and how far the two agree.

import { channelMap } from "./channel_map.js";
import { listed } from "./rich.js";
import { floats, number } from "./shared.js";

/** @type {WeakMap<Facts, Float32Array>} */
const read = new WeakMap();

/**
 * The exact values of an answer; null where its map is too large to be sent.
 * @param {Facts | null | undefined} map
 * @returns {Float32Array | null}
 */
export const valuesOf = (map) => {
  if (!map?.values) return null;
  const values = read.get(map) ?? floats(map.values);
  read.set(map, values);
  return values;
};

/**
 * How far B is above A in each cell; null where one of them is not known exactly.
 * @param {Float32Array | null} a
 * @param {Float32Array | null} b
 */
export const changed = (a, b) => (a && b ? b.map((value, at) => value - a[at]) : null);

/**
 * What is written beside a pair's maps.
 * @param {Facts} pair of the answer to the question "channel"
 * @param {Float32Array | null} b values of B
 * @param {number} at the cell's place among the values
 * @returns {[string, string][]}
 */
export const inCommon = (pair, b, at) => {
  const { labels } = pair;
  const a = valuesOf(pair.a);
  return [
    [labels.aHere, a ? number(a[at]) : "…"],
    [labels.bHere, b ? number(b[at]) : "…"],
    [labels.meanDifference, pair.meanDifference],
    [labels.correlation, pair.correlation],
    [labels.cosine, pair.cosine],
  ];
};

/**
 * @param {HTMLElement} place of A's map
 * @param {HTMLElement} numbers beside the photograph
 * @param {(cell: [number, number]) => void} picked
 */
export function pairOfMaps(place, numbers, picked) {
  const map = channelMap(place, picked);
  numbers.innerHTML = `<div class="hv-numbers"></div>`;
  const line = /** @type {Element} */ (numbers.firstElementChild);
  return {
    /**
     * @param {import("./channel_map.js").Shown} shown A's map as far as it is known
     * @param {Facts | null} data the answer to the question "channel"
     */
    show(shown, data) {
      const a = data?.pair?.a;
      map.show({ ...shown, values: valuesOf(a), bar: a?.bar ?? shown.bar, ticks: a?.ticks ?? shown.ticks });
      const at = shown.cell[0] * shown.columns + shown.cell[1];
      listed(line, data?.pair ? inCommon(data.pair, valuesOf(data), at) : []);
    },
    /** There is no pair any more. */
    end() {
      place.replaceChildren();
      numbers.replaceChildren();
    },
  };
}
