// How the channels are drawn: order, how many, what the colours span, which they are. All of it stands
// behind one button, and beside it what was chosen, each with its way back.

import { fill, leaveWhenPicked } from "./choice.js";
import { dropDown } from "./drop_down.js";
import { frame, make, say } from "./shared.js";

const FRAME = `
  <div class="view-row">
    <label class="frame" hidden><span>frame:</span><input data-word="frame" type="range" min="0" step="1"
      aria-label="Frame"><output></output></label>
    <div class="chips"></div>
    <div class="drops">
      <button type="button" class="opens" aria-haspopup="true" aria-expanded="false"
        title="How the channels are drawn">View<i aria-hidden="true">⌄</i></button>
      <div class="menu" role="group" hidden>
        <label><span>sort:</span><select data-word="sort" aria-label="Sort by"></select></label>
        <label><span>show:</span><select data-word="top" aria-label="Channels"></select></label>
        <label><span>scale:</span><select data-word="scale" aria-label="Scale"></select></label>
        <label><span>colours:</span><select data-word="colours" aria-label="Colours"></select></label>
        <label class="switch" hidden><input type="checkbox" role="switch"><span>What excites each</span></label>
        <label class="of-answers" hidden><select class="answers" aria-label="Which channels"></select></label>
      </div>
    </div>
  </div>`;

const CHOICES = /** @type {const} */ ([
  ["sort", "sorts"],
  ["top", "tops"],
  ["scale", "scales"],
  ["colours", "colourMaps"],
]);

/**
 * The row of how channels are drawn; `change` is told what a person chooses, as words of a link.
 * @param {ParentNode & Node} parent
 * @param {{change: (choices: Record<string, string | null>) => void}} callbacks
 */
export const viewRow = (parent, { change }) => {
  const find = frame(parent, FRAME);
  leaveWhenPicked(find(".view-row"));
  find(".menu").setAttribute("aria-label", find(".opens").title);
  const drop = dropDown(find(".drops"));
  const lists = CHOICES.map(([word, among]) => {
    const list = find(`[data-word="${word}"]`);
    list.onchange = () => change({ [word]: list.value });
    const name = list.previousElementSibling.textContent;
    return { word, among, list, name };
  });
  const [toggle, on, answers] = [".switch", ".switch input", ".answers"].map(find);
  toggle.title = say("In each tile the part of an image that excites its channel most");
  answers.title = say("Only channels that have this image, or images of a class, among their strongest");
  on.onchange = () => change({ patches: String(on.checked) });
  answers.onchange = () => change({ answers: answers.value });
  const frames = find(".frame");
  const slider = find('[data-word="frame"]');
  const place = frames.querySelector("output");
  const tell = () => {
    place.textContent = `${slider.value} / ${slider.max}`; // from 0, as channels are counted
  };
  slider.oninput = tell; // the layer is asked for once the slider is left, or a key let go
  slider.onchange = () => change({ frame: slider.value });

  // What differs from what is shown without a choice; a click takes it back.
  const chip = (says, usual, choices) => {
    const onclick = () => {
      change(choices);
      find(".opens").focus(); // the chip is gone
    };
    const cross = make("i", { ariaHidden: "true" }, "×");
    return make("button", { type: "button", title: say("Back to {usual}", { usual }), onclick }, says, cross);
  };
  const chipOf = ({ word, list, name }) =>
    chip(`${name} ${list.selectedOptions[0].text}`, list.options[0].text, { [word]: null });
  const patches = ({ patches: facts }, view) => {
    const isOn = view.patches === "true";
    toggle.hidden = !facts;
    on.checked = isOn;
    answers.parentElement.hidden = !facts || !isOn;
    if (!facts) return [];
    if (!fill(answers, facts.answers, view.answers ?? facts.answers[0].value)) answers.selectedIndex = 0;
    return isOn ? [chip(say("What excites each"), say("All channels"), { patches: "false" })] : [];
  };

  return {
    /**
     * Show what can be chosen, from the server's answer about the layers, and what is.
     * @param {any} layers
     * @param {Record<string, string>} view
     */
    show: (layers, view) => {
      frames.hidden = !layers.frames;
      slider.max = String(Math.max(0, (layers.frames ?? 0) - 1));
      slider.value = String(layers.frame ?? 0);
      tell();
      for (const { word, among, list } of lists) {
        // What a link asks for may not be there, such as the order of a pair: then it is the first.
        if (!fill(list, layers[among], view[word] ?? layers[among][0].value)) list.selectedIndex = 0;
      }
      const chosen = lists.filter(({ list }) => list.selectedIndex > 0);
      find(".chips").replaceChildren(...patches(layers, view), ...chosen.map(chipOf));
    },
    end: drop.end,
  };
};
