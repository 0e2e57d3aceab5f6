// A network's map as a list, for those who hear it: each block with its parts in it, in order.

import { described } from "./map_parts.js";
import { make } from "./shared.js";

/**
 * @param {import("./map_parts.js").Placed} root
 * @returns {HTMLUListElement}
 */
export const mapList = (root) => {
  const items = root.parts.map((part) => {
    const item = make("li", {}, described(part));
    if (part.parts.length) item.append(mapList(part));
    return item;
  });
  return make("ul", {}, ...items);
};
