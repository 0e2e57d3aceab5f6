// The menu of the picked channel: where it leads, and its files, each made when it is asked for.

import { dropDown } from "./drop_down.js";
import { frame, make, say } from "./shared.js";

const FRAME = `
  <div class="keep drops">
    <button type="button" class="opens" aria-haspopup="true" aria-expanded="false">Ask or save<i aria-hidden="true">⌄</i></button>
    <div class="menu" role="group" hidden>
      <div class="questions"></div>
      <button type="button" class="across" title="This channel on the samples and on your images">Across images</button>
      <button type="button" class="among" title="Among which images, and an atlas of images of your own">Find what excites it…</button>
      <button type="button" data-kind="channel-png">Channel as PNG</button>
      <button type="button" data-kind="channel-pdf">Channel as PDF</button>
      <button type="button" data-kind="channel-csv">Numbers as CSV</button>
      <p class="small" role="status"></p>
    </div>
  </div>`;

/**
 * Hands a file to the person, as a download.
 * @param {BlobPart} data
 * @param {{name: string, mime: string}} of
 */
export const saved = (data, { name, mime }) => {
  const link = make("a", { href: URL.createObjectURL(new Blob([data], { type: mime })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // milliseconds, for a slow disk
};

/**
 * @param {HTMLElement} parent
 * @param {(kind: string) => Promise<{facts: Facts, data: Uint8Array<ArrayBuffer>}>} ask
 */
export function keepMenu(parent, ask) {
  const find = frame(parent, FRAME);
  const [root, opens, menu, status] = [find(".keep"), find(".opens"), find(".menu"), find("[role=status]")];
  opens.title = say("Questions about this channel, and the channel as a file");
  menu.setAttribute("aria-label", opens.title);
  const drop = dropDown(root, () => {
    status.textContent = "";
  });
  for (const button of menu.querySelectorAll("[data-kind]")) {
    button.onclick = async () => {
      if (button.getAttribute("aria-disabled") === "true") return;
      button.setAttribute("aria-disabled", "true"); // and it keeps the focus
      try {
        const { facts, data } = await ask(button.dataset.kind);
        saved(data, /** @type {any} */ (facts));
        status.textContent = "";
      } catch (error) {
        const { name, message } = /** @type {Error} */ (error);
        if (name !== "AbortError") status.textContent = message;
      }
      button.removeAttribute("aria-disabled");
    };
  }
  return drop;
}
