// All channels of the layers that are near enough on the map: asked for as they are painted, and kept a while.

import { isKept } from "./kept_parts.js";
import { decoded } from "./pictures.js";

const KEPT = 24; // layers

/** @typedef {import("./map_painter.js").Tiles} Tiles */

/**
 * @param {(part: import("./map_parts.js").Placed) => Promise<import("./asking.js").Answered>} ask for tiles
 * @param {() => void} come some are there
 */
export const nearTiles = (ask, come) => {
  /** @type {Map<string, Tiles | null>} */
  let kept = new Map(); // null for those that are on their way
  return {
    /**
     * A layer's tiles; null until they are there, while its strongest channels are shown.
     * @param {import("./map_parts.js").Placed} part
     */
    of: (part) => {
      const { name } = part.facts;
      if (!isKept(part)) return null;
      const known = kept.get(name);
      if (known !== undefined) return known;
      const here = kept;
      here.set(name, null);
      ask(part).then(
        async ({ facts, data }) => {
          const url = URL.createObjectURL(new Blob([data], { type: "image/png" }));
          const picture = await decoded(url);
          URL.revokeObjectURL(url);
          here.set(name, { picture, geometry: facts.geometry, order: facts.order });
          for (const [each, there] of here) {
            if (here.size <= KEPT) break;
            if (there) here.delete(each);
          }
          if (here === kept) come();
        },
        () => here.delete(name),
      );
      return null;
    },
    /** What is there of a layer. @param {string} name */
    known: (name) => kept.get(name) ?? null,
    /** They were of another subject. */
    forget: () => {
      kept = new Map();
    },
  };
};
