// The network as a tree: stages, or blocks, that open and close, and in them their layers, each with
// a small picture of its mean activation and its facts. A field above narrows it to what is typed.

import { frame, say, unpacked } from "./shared.js";

const FRAME = `
  <nav aria-label="Layers of the network">
    <input type="search" placeholder="Find a layer" aria-label="Find a layer">
    <div class="tree"></div>
    <p class="none" hidden>No layer of that name.</p>
  </nav>`;

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const [tree, search, none] = [".tree", "input", ".none"].map(find);

  // Built anew only for another network: a tree that is rebuilt would close and jump.
  if (tree.dataset.network !== data.network) {
    tree.dataset.network = data.network;
    search.value = "";
    tree.replaceChildren(...data.parts.map((part) => (part.stage ? stage(part) : branch(part))));
    tree.dataset.chosen = ""; // so that the way to it is opened again
  }

  function stage({ stage: name, parts }) {
    const part = document.createElement("details");
    const title = document.createElement("summary");
    title.textContent = name;
    const count = document.createElement("span");
    count.textContent = parts.length;
    title.append(count);
    part.append(title, ...parts.map(row));
    return part;
  }

  // A layer; a block with its parts below it, which a button of its own folds and unfolds.
  function branch(layer) {
    if (!layer.parts) return row(layer);
    const [part, head, fold, inner] = ["div", "div", "button", "div"].map((kind) => document.createElement(kind));
    [part.className, head.className, fold.className] = ["block", "head", "fold"];
    inner.className = "parts";
    fold.setAttribute("type", "button");
    fold.setAttribute("aria-label", say("Parts of {name}", { name: layer.name }));
    fold.onclick = () => unfold(part, inner.hidden);
    inner.append(...layer.parts.map(branch));
    head.append(fold, row(layer));
    part.append(head, inner);
    unfold(part, false);
    return part;
  }

  function unfold(part, open) {
    part.querySelector(":scope > .parts").hidden = !open;
    const fold = part.querySelector(":scope > .head > .fold");
    fold.setAttribute("aria-expanded", open);
    fold.textContent = open ? "▼" : "▶";
  }

  function row(layer) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.name = layer.name;
    button.dataset.number = layer.number;
    const picture = document.createElement("span");
    picture.className = "preview";
    const words = document.createElement("span");
    words.className = "words";
    const [name, shape, work] = ["b", "span", "span"].map((kind) => document.createElement(kind));
    name.textContent = layer.short;
    const number = document.createElement("i");
    number.textContent = layer.number;
    shape.textContent = layer.shape;
    work.textContent = layer.work;
    words.append(name, shape, work);
    button.title = layer.title;
    button.append(picture, words, number);
    return button;
  }

  const buttons = [...tree.querySelectorAll("button[data-name]")];
  for (const button of buttons) {
    const preview = button.firstElementChild;
    const corner = data.previews?.corners[button.dataset.name];
    preview.style.backgroundImage = corner ? `url(${data.previews.picture})` : "none";
    if (corner) {
      const [width, height] = data.previews.size;
      const zoom = 32 / data.previews.side;
      preview.style.backgroundSize = `${width * zoom}px ${height * zoom}px`;
      preview.style.backgroundPosition = `${-corner[0] * zoom}px ${-corner[1] * zoom}px`;
    }
    button.onclick = () => pick(button.dataset.name);
    button.onkeydown = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const seen = buttons.filter((other) => other.offsetParent);
      seen[seen.indexOf(button) + step]?.focus();
    };
  }

  // The grid leads to a layer while the rest of the page stands; without one the whole page runs.
  function pick(name) {
    const asked = new CustomEvent("hookviz:layer", { detail: name, cancelable: true });
    if (dispatchEvent(asked)) setTriggerValue("picked", name);
  }

  const open = (part) => (part.matches("details") ? (part.open = true) : unfold(part, true));

  const narrow = () => {
    const wanted = search.value.trim().toLowerCase();
    for (const button of buttons) {
      const { name, number } = button.dataset;
      button.hidden = number !== wanted && !name.toLowerCase().includes(wanted);
    }
    for (const part of tree.querySelectorAll("details, .block")) {
      const left = [...part.querySelectorAll("button[data-name]")].some((button) => !button.hidden);
      part.hidden = !left;
      if (wanted && left) open(part);
    }
    none.hidden = buttons.some((button) => !button.hidden);
  };
  search.oninput = narrow;
  search.onkeydown = (event) => event.stopPropagation(); // P and N are letters here
  narrow();

  // The link knows which layer is looked at, since the page may have gone on without this tree.
  const mark = () => {
    const asked = new URLSearchParams(location.search).get("layer");
    const listed = buttons.some((button) => button.dataset.name === asked);
    const name = listed ? asked : data.chosen;
    const moved = tree.dataset.chosen !== name;
    tree.dataset.chosen = name;
    for (const button of buttons) markIf(button, button.dataset.name === name, moved);
  };

  function markIf(button, chosen, moved) {
    button.setAttribute("aria-current", chosen);
    if (!chosen || !moved) return;
    for (let part = button; part && part !== tree; part = part.parentElement) {
      // A block that is chosen itself may stay folded.
      if (part.matches("details, .block") && !part.querySelector(":scope > .head")?.contains(button)) open(part);
    }
    const [box, view] = [button.getBoundingClientRect(), tree.getBoundingClientRect()];
    if (box.top < view.top || box.bottom > view.bottom) {
      tree.scrollTop += box.top - view.top - (view.height - box.height) / 2; // and not the page
    }
  }
  mark();
  window.addEventListener("hookviz:link", mark);
  return () => window.removeEventListener("hookviz:link", mark);
}
