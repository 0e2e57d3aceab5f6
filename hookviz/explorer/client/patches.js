// Patches of images in a row, each a way to its image.

import { frame, make } from "./shared.js";

/**
 * @param {HTMLElement | ShadowRoot} parent
 * @param {(rank: number) => void} picked gets the place of the patch that is clicked, from 0
 */
export function patches(parent, picked) {
  const group = frame(parent, `<div class="patches" role="group"></div>`)("[role=group]");
  return {
    /**
     * @param {string} label what the group is called to those who do not see it
     * @param {{title: string, picture: string, leads?: Facts | null}[]} items
     * @param {number} columns
     */
    show(label, items, columns) {
      group.setAttribute("aria-label", label);
      group.style.setProperty("--columns", String(columns));
      group.replaceChildren(
        ...items.map(({ title, picture, leads }, rank) => {
          const source = picture ? { src: picture } : {};
          if (leads === null) return make("img", { alt: title, title, ...source }); // where nothing else is to be seen
          return make(
            "button",
            { type: "button", title, "aria-label": title, onclick: () => picked(rank) },
            make("img", { alt: "", ...source }),
          );
        }),
      );
    },
  };
}
