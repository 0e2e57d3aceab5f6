// On a phone, and in a narrow notebook, the channel that is picked up lies over the tiles in a sheet from
// below: its tile is scrolled to where it is seen above that, unless it is.

import { scrolledBy } from "./place.js";

const EDGE = 8; // pixels between the tiles and what bounds them
const BY_HAND = ["pointerdown", "wheel", "keydown"]; // what a person does who looks at something else

/**
 * @param {HTMLElement} stage of the tiles, which says how they lie
 * @param {HTMLElement} sheet
 * @param {number} at position of the tile among all
 */
const reveal = (stage, sheet, at) => {
  const { columns, high, gap, first } = JSON.parse(stage.dataset.layout ?? "{}");
  const row = Math.floor((at - first) / columns);
  if (!(row >= 0)) return; // on another page, or not laid out yet
  const [{ top }, { top: end }] = [stage.getBoundingClientRect(), sheet.getBoundingClientRect()];
  const [from, to] = [top + row * (high + gap), top + (row + 1) * (high + gap)];
  const { scroller } = scrolledBy(stage);
  const edge = Math.max(0, scroller?.getBoundingClientRect().top ?? 0);
  if (from >= edge && to <= end) return;
  (scroller ?? document.documentElement).scrollTop += Math.max(top - EDGE - edge, to + EDGE - end);
};

/**
 * Reveal a tile, and again where what stands above it comes later, as on a page that is opened by its link;
 * until a person touches the page.
 * @param {HTMLElement} stage
 * @param {HTMLElement} sheet
 * @param {() => number} at position of the tile among all, negative where it is none of them any more
 * @returns {() => void} leaves the page as it lies
 */
export const keepRevealed = (stage, sheet, at) => {
  const over = new AbortController();
  const moved = new ResizeObserver(() => reveal(stage, sheet, at()));
  const leave = () => {
    moved.disconnect();
    over.abort();
  };
  moved.observe(scrolledBy(stage).inside);
  for (const name of BY_HAND) {
    window.addEventListener(name, leave, { signal: over.signal, capture: true, passive: true });
  }
  return leave;
};
