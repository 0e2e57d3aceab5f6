// The row that says what A is, which is pinned, and what is shown of A and of B, what is looked at.

import { segmented } from "./segmented.js";
import { frame, make, say } from "./shared.js";

const FRAME = `
  <div class="compare-row" hidden>
    <div class="faces"></div>
    <div class="seen"></div>
    <p class="says"></p>
    <button type="button" class="unpin" title="Look at one thing again"><i aria-hidden="true">×</i><span>Unpin A</span></button>
  </div>`;

/**
 * What a side's network was given, small, and what it took that for.
 * @param {{name: string, picture: string, classes: string[]}} side
 */
const seenBy = ({ name, picture, classes }) => {
  const part = document.createElement("span");
  part.append(make("b", {}, name));
  if (picture) {
    const image = document.createElement("img");
    image.src = picture;
    image.alt = say("What the network of {name} sees", { name });
    part.append(image);
  }
  const words = document.createElement("span");
  words.append(...classes.flatMap((each, at) => (at ? [document.createElement("br"), each] : [each])));
  part.append(words);
  return part;
};

/**
 * The row of a comparison; `change` is told what of the pair is shown, `unpin` that A goes.
 * @param {ParentNode & Node} parent
 * @param {{change: (choices: Record<string, string | null>) => void, unpin: () => void}} callbacks
 */
export const compareRow = (parent, { change, unpin }) => {
  const find = frame(parent, FRAME);
  const [row, says] = [".compare-row", ".says"].map(find);
  const faces = segmented(find(".faces"), (compare) => change({ compare }));
  find(".unpin").onclick = unpin;
  return {
    /**
     * Show the tiles' facts of the comparison; null where nothing is pinned.
     * @param {any} compare
     */
    show: (compare) => {
      row.hidden = !compare;
      if (!compare) return;
      const { warning, hint, options, chosen } = compare;
      row.classList.toggle("warns", Boolean(warning));
      find(".seen").replaceChildren(...(compare.seen ?? []).map(seenBy));
      if (warning) {
        says.setAttribute("role", "alert");
        says.textContent = warning;
      } else {
        says.removeAttribute("role");
        const { same, parts, a, b, more } = compare.says;
        if (same) says.replaceChildren(...parts.map(([text, , isBold]) => (isBold ? make("b", {}, text) : text)));
        else says.replaceChildren(make("b", {}, "A"), ` ${a} `, make("b", {}, "B"), ` ${b}`, more ? `. ${more}` : "");
      }
      faces.show(warning ? null : { label: say("What is shown of the two"), hint, options, chosen });
    },
  };
};
