// The kernel that made a channel: its slices, in colour where they see colours, and its strongest
// inputs, each a button to that channel of the layer before.

import { explain, frame, make } from "./shared.js";

const FRAME = `
  <div class="kernel-view">
    <div class="slices">
      <figure><img class="drawn" alt=""><figcaption class="ends"></figcaption></figure>
      <figure class="coloured" hidden><img alt=""><figcaption></figcaption></figure>
    </div>
    <p class="says"></p>
    <div class="inputs"><div class="by-weight"></div><div class="by-contribution"></div></div>
    <p class="note small"></p>
  </div>`;

/**
 * @param {HTMLElement} parent
 * @param {(input: number, layer: string) => void} followed gets the input that a person goes to
 */
export function kernel(parent, followed) {
  const find = frame(parent, FRAME);
  /** @type {Facts | null} */
  let shown = null;

  const ranking = (place, { caption, rows }, upstream) => {
    const buttons = rows.map(({ input, says, hint }) =>
      make(
        "button",
        { type: "button", title: hint, disabled: !upstream, onclick: () => followed(input, upstream) },
        says,
      ),
    );
    place.replaceChildren(make("p", { className: "small" }, caption), make("div", { className: "row-of" }, ...buttons));
  };

  return {
    /** @param {Facts} data the answer to the question "kernel" */
    show(data) {
      if (data === shown) return;
      shown = data;
      explain(find(".says"), data.says);
      [find(".drawn").src, find(".drawn").alt] = [data.slices, data.slicesAlt];
      find(".ends").textContent = data.ends;
      find(".coloured").hidden = !data.colour;
      if (data.colour) {
        const picture = find(".coloured img");
        [picture.src, picture.alt] = [data.colour.picture, data.colour.alt];
        find(".coloured figcaption").textContent = data.colour.caption;
      }
      ranking(find(".by-weight"), data.byWeight, data.upstream);
      ranking(find(".by-contribution"), data.byContribution, data.upstream);
      find(".note").textContent = data.note;
    },
  };
}
