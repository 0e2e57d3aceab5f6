// Who attends to whom: a click on a patch of the photograph shows what it attends to in every head, small; the
// one that is picked up lies on the photograph. All is drawn here, so that no click waits for the server.

import { roomBelow, scrolledBy } from "../../explorer/client/place.js";
import { nearestCell } from "../../explorer/client/pointing.js";
import { floats, frame, make, number, penOf, say, unpacked } from "../../explorer/client/shared.js";
import { attentionMaps, CLASS_TOKEN, stepped, strongest, weightsOf } from "./attention_maps.js";

const FRAME = `
  <div class="attention">
    <div class="stage" tabindex="0" role="application"><img alt="What the network sees" draggable="false"><canvas></canvas></div>
    <div class="side">
      <output aria-live="polite"></output>
      <div class="maps" role="radiogroup" aria-label="Map on the photograph"></div>
      <p class="caption"></p>
    </div>
  </div>`;
const FOOT = 16; // pixels that stay free below
const LEAST = 220; // pixels of the photograph's shorter side
const OPACITY = 0.65;
const kept = new WeakMap(); // what a person has in hand, over the runs of the page

export default function ({ data: bytes, parentElement }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const [root, stage, image, canvas, output, list, caption] = [
    ...[".attention", ".stage", "img", "canvas"],
    ...["output", ".maps", ".caption"],
  ].map(find);
  const [rows, columns] = data.grid;
  const part = ([from, to]) => data.picture.slice(from, to);
  const { heads, queries, keys } = data;
  const maps = attentionMaps({ heads, queries, keys, weights: weightsOf(part(data.weights)), cells: rows * columns });
  const fixed = data.fixed.map((each) => ({ ...each, map: floats(each.map) }));
  const names = [...data.names, ...fixed.map((each) => each.name)];
  if (!kept.has(root)) kept.set(root, {});
  const hand = kept.get(root);
  if (hand.key !== data.key) Object.assign(hand, { key: data.key, cell: data.query, shown: data.head, at: null });

  const isFixed = (shown) => shown >= maps.heads;
  const mapOf = (shown) => (isFixed(shown) ? fixed[shown - maps.heads].map : maps.map(shown, hand.cell));
  const called = (cell) =>
    cell === CLASS_TOKEN
      ? say("the class token")
      : say("the patch at row {row}, column {column}", { row: Math.floor(cell / columns), column: cell % columns });

  // A map cell by cell: its own scale, from 0 to its largest number. Where there is no key it is dark.
  const colour = (map, cell, most) => {
    if (Number.isNaN(map[cell])) return null;
    const level = Math.round((Math.max(0, map[cell]) / most) * (data.ramp.length - 1));
    return data.ramp[level];
  };
  const paintCells = (pen, map, wide, high, opacity) => {
    const most = Math.max(strongest(map)[1], 0) || 1;
    for (let cell = 0; cell < map.length; cell += 1) {
      const [row, column] = [Math.floor(cell / columns), cell % columns];
      const [x, y] = [Math.floor((column * wide) / columns), Math.floor((row * high) / rows)];
      const shade = colour(map, cell, most);
      pen.globalAlpha = shade ? opacity : 0.7;
      pen.fillStyle = shade ?? "#000";
      pen.fillRect(x, y, Math.floor(((column + 1) * wide) / columns) - x, Math.floor(((row + 1) * high) / rows) - y);
    }
    pen.globalAlpha = 1;
  };
  const frameCell = (pen, cell, wide, high, width) => {
    const [row, column] = [Math.floor(cell / columns), cell % columns];
    /** @type {[string, number][]} */
    const strokes = [
      ["#000", 2 * width],
      ["#fff", width],
    ];
    for (const [stroke, line] of strokes) {
      pen.strokeStyle = stroke;
      pen.lineWidth = line;
      pen.strokeRect((column * wide) / columns, (row * high) / rows, wide / columns, high / rows);
    }
  };
  const paint = () => {
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [stage.clientWidth, stage.clientHeight].map((side) => Math.max(1, Math.round(side * ratio)));
    Object.assign(canvas, { width: wide, height: high });
    const pen = penOf(canvas);
    paintCells(pen, mapOf(hand.shown), wide, high, OPACITY);
    pen.strokeStyle = "rgba(255, 255, 255, 0.18)";
    pen.lineWidth = 1;
    for (let row = 1; row < rows; row += 1) pen.strokeRect(-1, (row * high) / rows, wide + 2, high);
    for (let column = 1; column < columns; column += 1) pen.strokeRect((column * wide) / columns, -1, wide, high + 2);
    if (!isFixed(hand.shown) && hand.cell !== CLASS_TOKEN) frameCell(pen, hand.cell, wide, high, 2 * ratio);
    if (hand.at !== null) frameCell(pen, hand.at, wide, high, ratio);
  };

  const button = (name, shown) =>
    make(
      "button",
      { type: "button", role: "radio", "data-map": String(shown) },
      make("canvas", { width: columns, height: rows, style: `aspect-ratio: ${data.size[0]} / ${data.size[1]}` }),
      make("span", { className: "name", textContent: name, title: name }),
      make("span", { className: "most" }),
    );
  if (hand.drawn !== data.key) {
    list.replaceChildren(...names.map(button));
    hand.drawn = data.key;
  }
  const buttons = [...list.children];
  const paintSmall = () => {
    buttons.forEach((each, shown) => {
      const map = mapOf(shown);
      const small = each.querySelector("canvas");
      const pen = penOf(small);
      pen.clearRect(0, 0, columns, rows);
      paintCells(pen, map, columns, rows, 1);
      each.querySelector(".most").textContent = say("to {value}", { value: number(strongest(map)[1]) });
      const isShown = shown === hand.shown;
      each.setAttribute("aria-checked", String(isShown));
      each.tabIndex = isShown ? 0 : -1;
    });
  };
  const words = () => {
    const map = mapOf(hand.shown);
    const [top, most] = strongest(map);
    const name = names[hand.shown];
    const cell = hand.at ?? top;
    if (cell < 0) return say("{map}: {query} asks nothing here.", { map: name, query: called(hand.cell) });
    const value = hand.at === null ? number(most) : Number.isNaN(map[cell]) ? say("no key") : number(map[cell]);
    const facts = { map: name, query: called(hand.cell), key: called(cell), value };
    if (isFixed(hand.shown)) {
      return hand.at === null ? say("{map}: most at {key}, {value}.", facts) : say("{map}: at {key} {value}.", facts);
    }
    return hand.at === null
      ? say("{map}: {query} attends most to {key}: {value}.", facts)
      : say("{map}: {query} attends to {key}: {value}.", facts);
  };
  const show = () => {
    const text = words();
    output.textContent = text;
    const keys = say("Arrow keys move the patch that asks, Escape leaves.");
    stage.setAttribute("aria-label", `${data.title}. ${text} ${keys}`);
    stage.dataset.cell = String(hand.cell);
    paint();
  };
  const ask = (cell) => {
    if (!maps.asks(cell)) return;
    hand.cell = cell;
    if (isFixed(hand.shown)) hand.shown = data.head;
    paintSmall();
    show();
  };

  const under = ({ clientX: x, clientY: y }) => {
    const [row, column] = nearestCell(stage.getBoundingClientRect(), { x, y }, rows, columns);
    return row * columns + column;
  };
  stage.onclick = (event) => {
    hand.at = null;
    ask(under(event));
  };
  stage.onpointermove = (event) => {
    if (event.pointerType === "touch") return;
    const cell = under(event);
    if (cell === hand.at) return;
    hand.at = cell;
    show();
  };
  stage.onpointerleave = () => {
    if (hand.at === null) return;
    hand.at = null;
    show();
  };
  stage.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") stage.blur();
    const cell = stepped(event.key, Math.max(0, hand.cell), data.grid);
    if (cell === null && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    hand.at = null;
    if (cell !== null) ask(cell);
  };
  const turn = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  buttons.forEach((each, shown) => {
    each.onclick = () => {
      hand.shown = shown;
      paintSmall();
      show();
    };
    each.onkeydown = (event) => {
      if (!turn[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      const next = buttons[(shown + turn[event.key] + buttons.length) % buttons.length];
      next.focus();
      next.click();
    };
  });

  // The photograph is as large as the window allows beside or above the maps.
  const fit = () => {
    const width = root.clientWidth;
    if (!width) return;
    const isNarrow = width < 560;
    const room = Math.max(LEAST, roomBelow(root) - FOOT);
    const [across, down] = data.size;
    const high = Math.min(isNarrow ? 0.55 * room : room, ((isNarrow ? 1 : 0.5) * width * down) / across, 640);
    root.classList.toggle("narrow", isNarrow);
    stage.style.width = `${Math.floor((high * across) / down)}px`;
    stage.style.height = `${Math.floor(high)}px`;
    paint();
  };
  hand.watch?.disconnect();
  hand.watch = new ResizeObserver(fit);
  hand.watch.observe(root);
  hand.watch.observe(scrolledBy(root).inside); // what stands above comes and goes
  window.addEventListener("resize", fit);

  if (image.getAttribute("src") !== data.image) image.src = data.image;
  caption.textContent = data.caption;
  fit();
  paintSmall();
  show();
  root.dataset.laid = "";
  return () => {
    hand.watch.disconnect();
    window.removeEventListener("resize", fit);
  };
}
