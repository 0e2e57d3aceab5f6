// What a lens has drawn: pictures, grids of channels, charts and small tables, side by side and as large
// as the rest of the window allows.

import { roomBelow, scrolledBy } from "../../explorer/client/place.js";
import { frame, say, unpacked } from "../../explorer/client/shared.js";
import { kept, scrollUp } from "./page.js";
import { panelOf } from "./panel.js";
import { arrange, fits, GAP } from "./panel_rows.js";

const FRAME = `<div class="panels"></div>`;
const FOOT = 12; // pixels that stay free below
const LEAST = 0.5; // of the window, where what stands above leaves no panel room

/** @param {ParentNode & Node} parent @param {(name: string, value: unknown) => void} tell */
const board = (parent, tell) => {
  const root = /** @type {HTMLElement} */ (frame(parent, FRAME)(".panels"));
  /** @type {ReturnType<typeof panelOf>[]} */
  let panels = [];
  let laid = "";

  const layOut = () => {
    const width = root.clientWidth - 1; // it may be a part of a pixel less
    if (!width || !panels.length) return;
    const window_ = roomBelow(document.documentElement) - FOOT; // without the presenter's bar
    const below = Math.floor(roomBelow(root) - FOOT);
    const shapes = panels.map((panel) => panel.shape(width));
    const room = fits(shapes[0], width, below) ? below : Math.max(below, Math.floor(LEAST * window_));
    const rows = arrange(shapes, width, room, Math.floor(window_));
    const sizes = rows.flat();
    const now = JSON.stringify([sizes, width]);
    if (now === laid) return;
    laid = now;
    // A row ends where it ends, be there room beside it for the first of the next.
    const ends = rows.flatMap((row) => {
      const left = row.reduce((free, { wide }) => free - wide - GAP, width + GAP);
      return row.map((_, at) => (at === row.length - 1 ? left : 0));
    });
    panels.forEach((panel, at) => panel.fit(sizes[at], ends[at]));
    root.dataset.laid = String(rows[0].length);
  };
  const observer = new ResizeObserver(layOut);
  observer.observe(root);
  observer.observe(scrolledBy(root).inside); // what stands above comes and goes
  window.addEventListener("resize", layOut);
  root.style.gap = `${GAP}px`;

  return {
    show: (data) => {
      const same =
        panels.length === data.panels.length && panels.every(({ kind }, at) => kind === data.panels[at].panel);
      if (!same) {
        for (const panel of panels) panel.end();
        panels = data.panels.map(({ panel }, at) =>
          panelOf(panel, root, {
            pick: (picked) => {
              scrollUp();
              tell("picked", { panel: at, ...picked });
            },
            faded: (share) => {
              for (const each of panels) each.fade(share);
            },
            refit: () => {
              laid = "";
              layOut();
            },
          }),
        );
      }
      const part = ([from, to]) => data.picture.subarray(from, to);
      panels.forEach((panel, at) => panel.show(data.panels[at], part));
      root.setAttribute("role", "group");
      root.setAttribute("aria-label", say("What the lens has found"));
      laid = "";
      layOut();
    },
    end: () => {
      observer.disconnect();
      window.removeEventListener("resize", layOut);
      for (const panel of panels) panel.end();
    },
  };
};

export default function (component) {
  const held = kept(component, (made) => board(component.parentElement, (name, value) => made.tell(name, value)));
  held.show(unpacked(component.data));
  return held.leave;
}
