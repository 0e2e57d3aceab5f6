// The rows of the layer and of how channels are drawn, and the tree of layers, where other than the
// explorer's tiles stand below: a stream, or a lens.

import { layerRow, stepKeys } from "./layer_row.js";
import { changed, isSame } from "./link.js";
import { frame } from "./shared.js";
import { treePlace } from "./tree_place.js";
import { viewRow } from "./view_row.js";

const FRAME = `<div class="rows"><div class="layer-place"></div><div class="view-place"></div></div>`;

/**
 * Put the rows into an element.
 * @param {ParentNode & Node} element
 * @param {Omit<import("./explorer.js").Surroundings, "opened"> & {layers: any, hasLook: boolean}} surroundings
 *   `layers` is the answer about the layers; `hasLook`: whether channels are drawn
 */
export const rows = (element, { view, fields, subject, layers, hasLook, ask, changed: tell, treeElement, early }) => {
  const find = frame(element, FRAME);
  const over = new AbortController(); // of all that is asked
  const change = (
    /** @type {Record<string, string | null>} */ choices,
    /** @type {"push" | "replace"} */ how = "push",
  ) => {
    const next = changed(view, choices, fields);
    if (isSame(next, view)) return;
    view = next;
    draw();
    tell(view, how, Object.keys(choices));
  };
  const row = layerRow(find(".layer-place"), { change });
  const look = hasLook ? viewRow(find(".view-place"), { change }) : null;
  const tree = treePlace({
    ask: (question, options) => ask(question, { signal: over.signal, on: () => {}, ...options }),
    change,
    about: () => JSON.stringify([subject, view]),
  });
  const keys = stepKeys(row.turn);

  // A layer that is on its way is marked at once, and while facts of an earlier one arrive.
  const draw = () => {
    const isListed = layers.options.some((option) => option.name === view.layer);
    if (isListed) layers = { ...layers, layer: view.layer };
    row.show(layers);
    look?.show(layers, view);
    tree.show(layers, view, subject);
  };
  tree.stand(treeElement ?? null);
  draw();
  for (const key of early?.() ?? []) keys.press(key);

  return {
    /**
     * Show another view, of which the page says what it means or will say so.
     * @param {Record<string, string>} next
     * @param {{layers: any, subject: string}} [facts]
     */
    show: (next, facts) => {
      view = next;
      if (facts) ({ layers, subject } = facts);
      draw();
    },
    tree: tree.stand,
    end: () => {
      keys.end();
      look?.end();
      over.abort();
      tree.end();
      find(".rows").remove();
    },
  };
};
