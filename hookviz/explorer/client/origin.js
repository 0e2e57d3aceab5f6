// Where a channel's map comes from, one way of looking at it at a time and in one place, so that what is
// chosen is seen where it is chosen: the sum that made the chosen cell, the kernel, its walk, or numbers.

import { cellSum } from "./cell_sum.js";
import { fill } from "./choice.js";
import { kernel } from "./kernel.js";
import { numbers } from "./numbers.js";
import { frame } from "./shared.js";
import { walk } from "./walk.js";

const [SUM, KERNEL, WALK, NUMBERS] = ["Sum", "Kernel", "Walk", "Numbers"]; // as a link has them
const PLACES = { why: SUM, kernel: KERNEL, walk: WALK, numbers: NUMBERS };
const FRAME = `
  <div class="origin">
    <div class="choice" role="radiogroup" aria-label="More about this channel"
      title="The sum that made this cell, the kernel, its walk over the input, or the map in numbers.">
      <label><input type="radio" name="origin" value="Sum"><span>Sum</span></label>
      <label><input type="radio" name="origin" value="Kernel"><span>Kernel</span></label>
      <label><input type="radio" name="origin" value="Walk" aria-label="Step through the convolution"
        ><span>Step through</span></label>
      <label><input type="radio" name="origin" value="Numbers"><span>Numbers</span></label>
    </div>
    <p class="error small" role="status"></p>
    <div class="why-place"></div>
    <div class="kernel-place" hidden></div>
    <div class="walk-place" hidden><div></div><select aria-label="Input channel"></select></div>
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
 * @property {unknown} about what the answers depend on: the image, the network, the layer
 */

/**
 * @param {HTMLElement} parent
 * @param {{
 *   questions: ReturnType<typeof import("./asking.js").newest>,
 *   followed: (input: number, layer: string) => void,
 *   went: (input: number, layer: string) => void,
 *   picked: (cell: [number, number]) => void,
 *   change: (origin: string | null) => void,
 * }} heard who asks; what follows an input upstream with a way back, or goes there without one; the
 * cell that a person wants; and what writes the link's word, and shows what it says
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
  let can = { hasSum: false, hasKernel: false, canWalk: false };
  let chosen = SUM; // of the four, where all can be had
  let [kept, ofInput] = ["", ""]; // what the walk's input was chosen for, and the input

  const offered = () => [SUM, can.hasKernel && KERNEL, can.canWalk && WALK, NUMBERS];
  const shown = () => (offered().includes(chosen) ? chosen : SUM);
  const offer = () => {
    choice.hidden = !can.hasSum;
    for (const radio of radios) {
      radio.checked = radio.value === shown();
      /** @type {HTMLElement} */ (radio.parentElement).hidden = !offered().includes(radio.value);
    }
    for (const [name, word] of Object.entries(PLACES)) {
      // in place of a sum there is a sentence, and the numbers below it
      const isSeen = can.hasSum ? shown() === word : word === SUM || word === NUMBERS;
      find(`.${name}-place`).hidden = !isSeen;
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
    radio.onchange = () => heard.change(radio.value === SUM ? null : radio.value);
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
      const { channel, cell, rows, columns, about, isConv } = looked;
      if (isElsewhere) can = { hasSum: isConv, hasKernel: isConv, canWalk: isConv };
      find(".why-place").classList.toggle("sums", can.hasSum);
      chosen = looked.origin ?? SUM;
      inNumbers.at(cell, rows, columns);
      const question = { name: "cell", channel, row: cell[0], column: cell[1] };
      if (!questions.known(question, about)) sum.stale();
      questions.ask(question, about, {
        answered: ({ facts }) => {
          sum.show(facts);
          const hasSum = !facts.info;
          can = { hasSum, hasKernel: hasSum && facts.hasKernel, canWalk: hasSum && facts.canWalk };
          find(".why-place").classList.toggle("sums", hasSum);
          detail();
        },
        failed: (words) => {
          sum.inform(words);
          can = { hasSum: false, hasKernel: false, canWalk: false };
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
