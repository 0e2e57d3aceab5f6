// What excites a channel most among the images of an atlas: parts of them, each a way to its image,
// and a button for other images.

import { patches } from "./patches.js";
import { rich } from "./rich.js";
import { frame, say } from "./shared.js";

const FRAME = `
  <div class="excites">
    <div class="row-of"><span class="says"></span><span class="of"></span><button type="button" class="plain among"
      title="Among which images, and an atlas of images of your own">among your images…</button></div>
    <p class="error small"></p>
    <p class="small note"></p>
    <div class="found"></div>
  </div>`;

/**
 * @param {HTMLElement} parent
 * @param {{led: (leads: Facts) => void, asked: () => void}} heard where the patch that is clicked
 * leads, and that a person wants other images
 */
export function excites(parent, heard) {
  const find = frame(parent, FRAME);
  /** @type {Facts[]} */
  let found = [];
  /** @type {Facts | null} */
  let shown = null;
  const row = patches(find(".found"), (rank) => found[rank] && heard.led(found[rank].leads));
  rich(find(".says"), [[say("**What excites the channel**"), ""]]);
  find(".among").onclick = heard.asked;
  return {
    /** Room for the patches, as long as they are on their way. */
    waits(isKnown) {
      [found, shown] = [[], null];
      find(".found").hidden = !isKnown;
      find(".note").textContent = "";
      find(".excites").classList.toggle("known", isKnown);
      find(".found").firstElementChild.classList.add("stale");
    },
    /** @param {Facts} data the answer to the question "excites" */
    show(data) {
      if (data === shown) return;
      shown = data;
      find(".of").textContent = data.among ?? "";
      find(".among").hidden = Boolean(data.among);
      find(".error").textContent = data.error ?? "";
      find(".note").textContent = data.note ?? "";
      found = data.patches ?? [];
      find(".found").hidden = !found.length;
      find(".excites").classList.toggle("known", found.length > 0);
      row.show(data.label ?? "", /** @type {any} */ (found), data.columns ?? 1);
      find(".found").firstElementChild.classList.remove("stale");
    },
  };
}
