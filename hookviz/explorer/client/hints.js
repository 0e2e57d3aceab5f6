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

/** Whether a finger does what is said here, and no keys and no pointer. */
const isTouched = () => matchMedia("(hover: none)").matches;

/** A tile was picked up: from now on the hints of the first visit are known. */
export const picked = () => {
  try {
    localStorage.setItem(SEEN, "yes");
  } catch {
    /* who keeps nothing sees the hints again */
  }
};

/**
 * What the channel answers to on which the page opens, and what to do next.
 * @param {HTMLElement} place
 * @param {string} part of the image
 */
export const ofOpening = (place, part) => {
  const says = isTouched()
    ? say("**This channel answers to {part}.** Every tile is another one: tap it to see what it answers to.", { part })
    : say(
        "**This channel answers to {part}.** Every tile is another one: click it. **N** and **P** change the layer.",
        {
          part,
        },
      );
  rich(place, [[says, ""]]);
};

/**
 * @param {HTMLElement} parent
 * @param {(isFirst: boolean) => void} heard gets whether the hints of the first visit are shown
 */
export function hints(parent, heard) {
  const find = frame(parent, FRAME);
  const [what, first, steps, table] = [".what", ".hv-first", "ol", "table"].map(find);
  const [click, turn] = isTouched()
    ? [
        say("**Tap a tile** to see it large, on the photograph, and why a cell has its value."),
        say("**A swipe over the tiles** leads through the layers, from edges to whole things."),
      ]
    : [
        say("**Click a tile** to see it large, on the photograph, and why a cell has its value."),
        say("**N** and **P** lead through the layers, from edges to whole things."),
      ];
  const own = say(
    "**Your own photograph** or another network: in the sidebar, behind the arrows where that is closed.",
  );
  steps.replaceChildren(
    ...[click, turn, own].map((line) => {
      const step = make("li");
      rich(step, [[line, ""]]);
      return step;
    }),
  );
  find(".hv-first .small").hidden = isTouched();
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
      const line = isTouched()
        ? say("**Tap a tile** for the channel's map in A.")
        : say("**Click a tile** for the channel's map in A.");
      rich(what, [[line, ""]]);
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
