// The map as a file for a paper: a button for each kind, made when it is asked for.

import { saved } from "./keep.js";
import { frame } from "./shared.js";

const FRAME = `
  <span class="map-files" role="group" aria-label="The map as a file, for a paper">
    <button type="button" data-kind="map-png" title="The map as PNG, for a paper">PNG</button>
    <button type="button" data-kind="map-svg" title="The map as SVG, for a paper: text stays text">SVG</button>
  </span>`;

/**
 * @param {ParentNode & Node} parent
 * @param {{
 *   ask: (question: Facts, options: any) => Promise<import("./asking.js").Answered>,
 *   tell: (words: string) => void,
 * }} map
 */
export const mapFiles = (parent, { ask, tell }) => {
  const find = frame(parent, FRAME);
  for (const button of find(".map-files").querySelectorAll("button")) {
    button.onclick = async () => {
      if (button.getAttribute("aria-disabled") === "true") return;
      button.setAttribute("aria-disabled", "true"); // and it keeps the focus
      try {
        const { facts, data } = await ask({ name: "file", kind: button.dataset.kind }, {});
        saved(data, /** @type {any} */ (facts));
      } catch (error) {
        const { name, message } = /** @type {Error} */ (error);
        if (name !== "AbortError") tell(message);
      }
      button.removeAttribute("aria-disabled");
    };
  }
};
