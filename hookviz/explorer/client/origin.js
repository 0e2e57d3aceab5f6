// Where a channel's map comes from: the sum that made the chosen cell, and one more way of looking at
// the channel: its kernel, its kernel's walk, or its numbers.

import { cellSum } from "./cell_sum.js";
import { fill } from "./choice.js";
import { kernel } from "./kernel.js";
import { numbers } from "./numbers.js";
import { frame } from "./shared.js";
import { walk } from "./walk.js";

const [KERNEL, WALK, NUMBERS] = ["Kernel", "Walk", "Numbers"]; // as a link has them
const FRAME = `
  <div class="origin">
    <div class="choice" role="radiogroup" aria-label="More about this channel"
      title="The kernel that made this map, its walk over the input, or the map in numbers.">
      <label><input type="radio" name="origin" value="Kernel"><span>Kernel</span></label>
      <label><input type="radio" name="origin" value="Walk"><span>Step through the convolution</span></label>
      <label><input type="radio" name="origin" value="Numbers"><span>Numbers</span></label>
    </div>
    <p class="error small" role="status"></p>
    <div class="kernel-place" hidden></div>
    <div class="walk-place" hidden><select aria-label="Input channel"></select><div></div></div>
    <div class="why-place"></div>
    <div class="numbers-place" hidden></div>
  </div>`;

/**
 * What is looked at.
 * @typedef {object} Looked
 * @property {number} channel
 * @property {[number, number]} cell
 * @property {number} rows of the map
 * @property {number} columns
 * @property {boolean} isConv whether the layer is a convolution
 * @property {string | undefined} origin what the link says
 * @property {number} opacity percent
 * @property {unknown} about what the answers depend on: the image, the network, the layer
 */

/**
 * @param {HTMLElement} parent
 * @param {{
 *   questions: ReturnType<typeof import("./asking.js").newest>,
 *   followed: (input: number, layer: string) => void,
 *   went: (input: number, layer: string) => void,
 *   picked: (cell: [number, number]) => void,
 *   faded: (percent: number) => void,
 *   change: (origin: string | null) => void,
 * }} heard who asks; what follows an input upstream with a way back, or goes there without one; the
 * cell and the opacity that a person wants; and what writes the link's word
 */
export function origin(parent, heard) {
  const find = frame(parent, FRAME);
  const { questions } = heard;
  const [choice, error, select] = [find(".choice"), find(".error"), find("select")];
  const sum = cellSum(find(".why-place"), heard.followed);
  const ofKernel = kernel(find(".kernel-place"), heard.went);
  const ofWalk = walk(find(".walk-place > div"));
  const inNumbers = numbers(find(".numbers-place"), heard);
  const radios = /** @type {HTMLInputElement[]} */ ([...choice.querySelectorAll("input")]);
  /** @type {Looked | null} */
  let now = null;
  let can = { hasKernel: false, canWalk: false };
  let chosen = NUMBERS; // of the three, where all can be had
  let [kept, ofInput] = ["", ""]; // what the walk's input was chosen for, and the input

  const shown = () => ((can.canWalk && chosen === WALK) || (can.hasKernel && chosen === KERNEL) ? chosen : NUMBERS);
  const offer = () => {
    choice.hidden = !can.hasKernel && !can.canWalk;
    radios.forEach((radio) => {
      radio.checked = radio.value === shown();
      const label = /** @type {HTMLElement} */ (radio.parentElement);
      label.hidden = (radio.value === KERNEL && !can.hasKernel) || (radio.value === WALK && !can.canWalk);
    });
    for (const [name, word] of [
      ["kernel", KERNEL],
      ["walk", WALK],
      ["numbers", NUMBERS],
    ]) {
      find(`.${name}-place`).hidden = shown() !== word;
    }
  };
  const failed = (/** @type {HTMLElement} */ place) => (/** @type {string} */ words) => {
    error.textContent = words;
    place.classList.remove("stale");
  };
  const ask = (/** @type {HTMLElement} */ place, /** @type {Facts} */ question, then) => {
    if (!now) return;
    if (!questions.known(question, now.about)) place.classList.add("stale");
    questions.ask(question, now.about, {
      answered: ({ facts }) => {
        place.classList.remove("stale");
        then(facts);
      },
      failed: failed(place),
    });
  };
  const detail = () => {
    offer();
    if (!now) return;
    error.textContent = "";
    const { channel, cell, about } = now;
    const [row, column] = cell;
    if (shown() === KERNEL) ask(find(".kernel-place"), { name: "kernel", channel }, ofKernel.show);
    else questions.leave("kernel");
    if (shown() === WALK) {
      const key = JSON.stringify([about, channel]);
      if (kept !== key) [kept, ofInput] = [key, ""]; // of another channel it is the strongest
      const input = ofInput === "" ? {} : { input: Number(ofInput) };
      ask(find(".walk-place"), { name: "walk", channel, row, column, ...input }, (facts) => {
        fill(select, facts.inputs, String(facts.chosen));
        ofWalk.show(facts);
      });
    } else {
      questions.leave("walk");
      ofWalk.end();
    }
  };

  for (const radio of radios) {
    radio.onchange = () => {
      chosen = radio.value;
      detail();
      heard.change(chosen === NUMBERS ? null : chosen);
    };
  }
  select.onchange = () => {
    ofInput = select.value;
    detail();
  };

  return {
    /** @param {Looked} looked */
    show(looked) {
      const isElsewhere = JSON.stringify(now?.about) !== JSON.stringify(looked.about);
      now = looked;
      const { channel, cell, rows, columns, about } = looked;
      if (isElsewhere) can = { hasKernel: looked.isConv, canWalk: looked.isConv };
      find(".why-place").classList.toggle("sums", can.hasKernel);
      chosen = looked.origin ?? NUMBERS;
      inNumbers.at(cell, rows, columns, looked.opacity);
      const question = { name: "cell", channel, row: cell[0], column: cell[1] };
      if (!questions.known(question, about)) sum.stale();
      questions.ask(question, about, {
        answered: ({ facts }) => {
          sum.show(facts);
          can = { hasKernel: Boolean(facts.hasKernel), canWalk: Boolean(facts.canWalk) };
          find(".why-place").classList.toggle("sums", !facts.info);
          detail();
        },
        failed: (words) => {
          sum.inform(words);
          can = { hasKernel: false, canWalk: false };
          detail();
        },
      });
      detail();
    },
    /** What the channel comes to in numbers, and in whose colours. */
    numbers: inNumbers.show,
    end: ofWalk.end,
  };
}
