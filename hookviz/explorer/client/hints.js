// What stands in the channel's place as long as none is picked up: what a tile is and three things to
// do, of which the browser remembers that they are known; or, of a pair, which channels changed most.

import { rich } from "./rich.js";
import { explain, frame, make, say } from "./shared.js";

const SEEN = "hookviz-picked"; // in the browser's storage, once a tile was picked up
const FRAME = `
  <div class="hv-hints">
    <p class="what"></p>
    <div class="hv-first"><ol></ol>
      <p class="small">Arrow keys move between tiles, Enter picks one up, / jumps to a number.</p></div>
    <p class="changed small"></p>
    <table class="hv-changes" hidden></table>
  </div>`;

/** Whether a tile was picked up in this browser before. */
const isKnown = () => {
  try {
    return localStorage.getItem(SEEN) !== null;
  } catch {
    return false;
  }
};

/** A tile was picked up: from now on the hints of the first visit are known. */
export const picked = () => {
  try {
    localStorage.setItem(SEEN, "yes");
  } catch {
    /* who keeps nothing sees the hints again */
  }
};

/**
 * @param {HTMLElement} parent
 * @param {(isFirst: boolean) => void} heard gets whether the hints of the first visit are shown
 */
export function hints(parent, heard) {
  const find = frame(parent, FRAME);
  const [what, first, steps, table] = [".what", ".hv-first", "ol", "table"].map(find);
  const lines = say(
    "1. **Click a tile** to see it large, on the photograph, and why a cell has " +
      "its value.\n2. **N** and **P**, on a phone a swipe over the tiles, lead " +
      "through the layers, from edges to whole things.\n3. **Your own photograph** " +
      "or another network: in the sidebar at the left.",
  );
  steps.replaceChildren(
    ...lines.split("\n").map((line) => {
      const step = make("li");
      rich(step, [[line.replace(/^\d+\.\s*/, ""), ""]]);
      return step;
    }),
  );
  const only = (/** @type {boolean} */ isFirst, /** @type {Facts | null} */ changes) => {
    first.hidden = !isFirst;
    find(".changed").textContent = changes?.caption ?? "";
    table.hidden = !changes?.rows.length;
    heard(isFirst);
  };

  return {
    /** What a tile is, of `count` channels, and on the first visit what to do with it. */
    ofTiles(/** @type {number} */ count) {
      const [before, after] = say(
        "**Each tile is a {term}**: the answer of one of this layer's {shape:,} " +
          "detectors at every place of the image.",
        { shape: count },
      ).split("{term}");
      const meaning = say(
        "One of a layer's detectors; its feature map says where in the image it answers, and how strongly.",
      );
      rich(what, [
        [before, ""],
        [say("channel"), meaning],
        [after, ""],
      ]);
      only(!isKnown(), null);
    },
    ofA() {
      rich(what, [[say("**Click a tile** for the channel's map in A."), ""]]);
      only(false, null);
    },
    /** @param {Facts} data the answer to the question "changes" */
    ofPair(data) {
      rich(what, data.says);
      only(false, data);
      const line = (/** @type {unknown[]} */ texts, /** @type {"th" | "td"} */ kind) =>
        make("tr", {}, ...texts.map((text) => make(kind, {}, String(text))));
      table.replaceChildren(line(data.heads, "th"), ...data.rows.map((row) => line(row, "td")));
    },
    fails: (/** @type {string} */ words) => {
      explain(what, [[words, ""]]);
      only(false, null);
    },
  };
}
