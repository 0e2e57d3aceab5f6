// What a cell in the middle of a layer sees of the photograph: asked for, or as a saved page has it.

import { newest } from "./asking.js";
import { isKept, seenFrom } from "./kept_parts.js";

/**
 * @typedef {import("./map_parts.js").Placed} Placed
 * @typedef {{top: number, left: number, bottom: number, right: number}} Sees shares of the photograph
 */

const middle = (/** @type {any[]} */ list) => list[Math.floor(list.length / 2)];

/**
 * @param {(question: Facts, options: any) => Promise<import("./asking.js").Answered>} ask
 * @param {(part: Placed) => Facts} linkOf a layer as a view names it
 * @param {(sees: Sees | null) => void} show
 */
export const seenField = (ask, linkOf, show) => {
  const fields = newest(({ name, view }, options) => ask({ name }, { ...options, view }), 2e6);
  const answered = (/** @type {import("./asking.js").Answered} */ { facts: { rows, columns, boxes } }) => {
    if (rows && columns) {
      const [[top, bottom], [left, right]] = [middle(rows), middle(columns)];
      show({ top, left, bottom, right });
    } else if (boxes) {
      const [top, left, bottom, right] = middle(boxes.map(middle));
      show({ top, left, bottom, right });
    } else show(null);
  };
  return {
    /** @param {Placed | null} part @param {string} about the subject */
    of: (part, about) => {
      if (!part?.facts.layer) return;
      if (!isKept(part)) return show(seenFrom(part));
      fields.ask({ name: "field", view: linkOf(part) }, about, { answered, failed: () => {} });
    },
    forget: fields.forget,
    end: fields.end,
  };
};
