// The row that says which layer is looked at: the list of layers, its neighbours, and what followed it.

import { fill, leaveWhenPicked } from "./choice.js";
import { segmented } from "./segmented.js";
import { frame, say } from "./shared.js";

const FRAME = `
  <div class="layer-row">
    <button type="button" class="step previous" aria-keyshortcuts="P"><i aria-hidden="true">‹</i><span>Previous layer</span><kbd aria-hidden="true">P</kbd></button>
    <select class="layers" aria-label="Layer"></select>
    <button type="button" class="step next" aria-keyshortcuts="N"><span>Next layer</span><i aria-hidden="true">›</i><kbd aria-hidden="true">N</kbd></button>
    <div class="steps" hidden></div>
  </div>`;

const HELD = 350; // milliseconds a layer while N or P is held: a browser refuses more than 100 entries in 30 s

// A neighbour's button says by its name where it leads.
const SIDES = /** @type {const} */ ([
  [".previous", "Previous layer", -1],
  [".next", "Next layer", 1],
]);

const TYPED = "input:not([type='checkbox'], [type='radio'], [type='range']), textarea, select, [contenteditable]";

/**
 * N and P lead to the next layer and the one before from anywhere that nobody types.
 * @param {(by: number, isHeld?: boolean) => void} turn
 * @param {EventTarget} [place] where keys are heard
 */
export const stepKeys = (turn, place = document) => {
  const press = (/** @type {string} */ key, isHeld = false) => {
    const by = { n: 1, p: -1 }[key.toLowerCase()];
    if (by) turn(by, isHeld);
    return Boolean(by);
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = /** @type {Element} */ (event.composedPath()[0]);
    if (!target.closest?.(TYPED) && press(event.key, event.repeat)) event.preventDefault();
  };
  const heard = /** @type {EventListener} */ (pressed);
  place.addEventListener("keydown", heard);
  return { press, end: () => place.removeEventListener("keydown", heard) };
};

/**
 * The row of the layer; `change` is told what a person chooses, as words of a link.
 * @param {ParentNode & Node} parent
 * @param {{change: (choices: Record<string, string | null>, how?: "push" | "replace") => void}} callbacks
 */
export const layerRow = (parent, { change }) => {
  const find = frame(parent, FRAME);
  const [row, list, kinds] = [".layer-row", ".layers", ".steps"].map(find);
  /** @type {any} */
  let facts = null;
  leaveWhenPicked(row);
  let name = ""; // of the layer that is looked at, which may be on its way
  let word = "after";

  // The layer's own output is shown without a choice, and a link need not say so.
  const steps = segmented(kinds, (value) => change({ [word]: value === facts.steps.options[0].value ? null : value }));

  // Of the list that the layer is in; what is beyond conv layers is in the list of all maps.
  const go = (layer, how) => change({ layer, ...(facts.listed === "maps" ? { layers: "maps" } : {}) }, how);
  const at = () => facts?.options.findIndex((option) => option.name === name) ?? -1;
  const neighbour = (by) => facts?.options[at() + by]?.name;
  let turned = -Infinity;
  // A key that is held is one step of the history, however many layers it leads through.
  const turn = (/** @type {number} */ by, isHeld = false) => {
    const next = at() >= 0 ? neighbour(by) : undefined;
    const now = performance.now();
    if (!next || (isHeld && now - turned < HELD)) return;
    turned = now;
    go(next, isHeld ? "replace" : "push");
  };
  list.onchange = () => go(facts.options[list.selectedIndex].name);
  // Layers are numbered, so that a letter is no way to one of them.
  list.onkeydown = (event) => {
    const by = { n: 1, p: -1 }[event.key.toLowerCase()];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    turn(by, event.repeat);
  };

  const mark = (layer) => {
    name = layer;
    list.selectedIndex = at();
    for (const [selector, label, by] of SIDES) {
      const [button, there] = [find(selector), neighbour(by)];
      button.disabled = at() < 0 || !there;
      button.title = there ? say("{side}: {name}", { side: say(label), name: there }) : "";
      button.onclick = () => turn(by);
    }
  };
  for (const [selector] of SIDES) find(selector).disabled = true;

  return {
    /**
     * Show the server's answer about the layers.
     * @param {any} next
     */
    show: (next) => {
      facts = next;
      fill(
        list,
        facts.options.map((option) => {
          const says = `${option.number} · ${option.name}`;
          return { value: says, says };
        }),
        "",
      );
      mark(facts.layer);
      word = facts.steps?.word ?? word;
      steps.show(facts.steps);
      row.dataset.layer = facts.layer;
    },
    /**
     * Say at once which layer is asked for; the rest of the row comes with the answer.
     * @param {string} layer
     */
    mark: (layer) => {
      if (facts?.options.some((option) => option.name === layer)) mark(layer);
    },
    turn,
  };
};
