// The network as a tree: stages, or blocks, that open and close, and in them their layers, each with
// a small picture of its mean activation and its facts. A field above narrows it to what is typed.

import { frame, make, say } from "./shared.js";

const FRAME = `
  <nav aria-label="Layers of the network">
    <input type="search" placeholder="Find a layer" aria-label="Find a layer">
    <div class="tree"></div>
    <p class="none" hidden>No such layer.</p>
  </nav>`;

const SIDE = 32; // pixels of a small picture

// What a person looks for, with sizes as rows have them: 3x3 is 3×3.
const typed = (/** @type {string} */ text) =>
  text
    .trim()
    .toLowerCase()
    .replace(/(?<=\d)\s*[x*]\s*(?=\d)/g, "×");

/**
 * Whether a layer's row has what a person looks for; a whole number is the layer's own, or of its name.
 * @param {Record<string, string | undefined>} row its name, number and facts
 * @param {string} text
 */
export const isFound = ({ name = "", number, facts = "" }, text) => {
  const wanted = typed(text);
  const words = /^\d+$/.test(wanted) ? name : `${name} ${facts}`;
  return number === wanted || words.toLowerCase().includes(wanted);
};

/**
 * The tree of layers; `pick(name)` is told which one a person picks.
 * @param {ParentNode & Node} parent
 * @param {{pick: (name: string) => void}} callbacks
 */
export const layerTree = (parent, { pick }) => {
  const find = frame(parent, FRAME);
  const [nav, tree, search, none] = ["nav", ".tree", "input", ".none"].map(find);
  /** @type {any[]} */
  let buttons = [];
  let [network, marked] = ["", ""];

  const stage = ({ stage: name, parts }) => {
    const title = make("summary", {}, name, make("span", {}, String(parts.length)));
    return make("details", {}, title, ...parts.map(row));
  };

  // A layer; a block with its parts below it, which a button of its own folds and unfolds.
  const branch = (layer) => {
    if (!layer.parts) return row(layer);
    const says = say("Parts of {name}", { name: layer.name });
    const fold = make("button", { className: "fold", type: "button", "aria-label": says });
    const inner = make("div", { className: "parts" }, ...layer.parts.map(branch));
    const part = make("div", { className: "block" }, make("div", { className: "head" }, fold, row(layer)), inner);
    fold.onclick = () => unfold(part, inner.hidden);
    unfold(part, false);
    return part;
  };

  const unfold = (part, open) => {
    part.querySelector(":scope > .parts").hidden = !open;
    const fold = part.querySelector(":scope > .head > .fold");
    fold.setAttribute("aria-expanded", open);
    fold.textContent = open ? "▼" : "▶";
  };

  const row = (layer) => {
    const lines = [make("b", {}, layer.short), ...[layer.shape, layer.work].map((text) => make("span", {}, text))];
    const button = make(
      "button",
      {
        type: "button",
        title: layer.title,
        "data-name": layer.name,
        "data-number": layer.number,
        "data-facts": `${layer.shape} ${layer.work}`,
      },
      make("span", { className: "preview" }),
      make("span", { className: "words" }, ...lines),
      make("i", {}, String(layer.number)),
    );
    button.onclick = () => pick(layer.name);
    button.onkeydown = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const seen = buttons.filter((other) => other.offsetParent);
      seen[seen.indexOf(button) + step]?.focus();
    };
    return button;
  };

  const paint = (previews) => {
    for (const button of buttons) {
      const look = button.firstElementChild.style;
      const corner = previews?.corners[button.dataset.name];
      look.backgroundImage = corner ? `url(${previews.picture})` : "none";
      if (!corner) continue;
      const zoom = SIDE / previews.side;
      look.backgroundSize = previews.size.map((side) => `${side * zoom}px`).join(" ");
      look.backgroundPosition = corner.map((side) => `${-side * zoom}px`).join(" ");
    }
  };

  const open = (part) => (part.matches("details") ? (part.open = true) : unfold(part, true));

  const narrow = () => {
    const wanted = search.value.trim();
    for (const button of buttons) button.hidden = !isFound(button.dataset, wanted);
    for (const part of tree.querySelectorAll("details, .block")) {
      const left = [...part.querySelectorAll("button[data-name]")].some((button) => !button.hidden);
      part.hidden = !left;
      if (wanted && left) open(part);
    }
    none.hidden = buttons.some((button) => !button.hidden);
  };
  search.oninput = narrow;
  search.onkeydown = (event) => event.stopPropagation(); // P and N are letters here

  const show = (button) => {
    for (let part = button; part && part !== tree; part = part.parentElement) {
      // A block that is chosen itself may stay folded.
      if (part.matches("details, .block") && !part.querySelector(":scope > .head")?.contains(button)) open(part);
    }
    const [box, view] = [button.getBoundingClientRect(), tree.getBoundingClientRect()];
    if (box.top < view.top || box.bottom > view.bottom) {
      tree.scrollTop += box.top - view.top - (view.height - box.height) / 2; // and not the page
    }
  };

  const mark = (name) => {
    const moved = marked !== name;
    marked = name;
    for (const button of buttons) {
      const here = button.dataset.name === name;
      button.setAttribute("aria-current", here);
      if (here && moved) show(button);
    }
  };

  return {
    /**
     * Show the layers as `layer_tree` of the server describes them, and mark the one looked at.
     * @param {any} facts
     */
    show: (facts) => {
      // Built anew only for another network: a tree that is rebuilt would close and jump.
      if (network !== facts.network) {
        network = facts.network;
        search.value = "";
        tree.replaceChildren(...facts.parts.map((part) => (part.stage ? stage(part) : branch(part))));
        buttons = [...tree.querySelectorAll("button[data-name]")];
        marked = ""; // so that the way to it is opened again
      }
      paint(facts.previews);
      narrow();
      mark(facts.chosen);
    },
    /**
     * Mark the layer that is looked at; the tree may not have come yet, or be of another list.
     * @param {string} name
     */
    mark,
    has: (/** @type {string | null} */ name) => buttons.some((button) => button.dataset.name === name),
    end: () => nav.remove(),
  };
};
