// The channels as an instrument: tiles laid out by the free width and height of the window, a line
// that reads out what is under the pointer, the colour bar.

import { keysOf, scrolledBy } from "./place.js";
import { pointing } from "./pointing.js";
import { colourBar, frame, penOf, say } from "./shared.js";
import { leaveSprite, loadSprite } from "./sprite.js";
import { swiped } from "./swipe.js";
import { tileBoard } from "./tile_board.js";
import { twoFaces } from "./tile_faces.js";
import { gridKeys } from "./tile_keys.js";
import { colourReader, described, inSprite, nearly } from "./tiles.js";
import { onPhone } from "./tiling.js";

const MOST_ZOOM = 16;

const FRAME = `
  <figure>
    <div class="head">
      <div class="scale"><img alt=""><div class="ticks"></div></div>
      <output></output>
      <span class="zoom" role="group" aria-label="Zoom">
        <button type="button" class="out" title="Zoom out (−)" aria-label="Zoom out">−</button>
        <button type="button" class="in" title="Zoom in (+)" aria-label="Zoom in">+</button>
      </span>
      <label class="jump" hidden>channel <input type="text" inputmode="numeric" size="5"></label>
      <label class="split" hidden>A <input type="range" aria-label="Where A ends and B begins"> B</label>
      <button type="button" class="flip" title="Hold to see the other one (F)" aria-pressed="false" hidden>Flip</button>
    </div>
    <div class="window">
      <div class="stage" tabindex="0" role="slider" aria-label="Channel" aria-valuemin="0">
        <canvas></canvas>
      </div>
    </div>
    <div class="pages" role="group" aria-label="Pages of channels" hidden>
      <button type="button" class="earlier" aria-label="Previous page">‹</button>
      <span></span>
      <button type="button" class="later" aria-label="Next page">›</button>
      <small>swipe: next layer</small>
    </div>
    <img class="picture" hidden>
  </figure>`;

/**
 * The grid of a layer's channels.
 *
 * `pick(channel, cell)` is told what a person picks, `cell` as [row, column] where it was by pointer.
 * `room(element)` says how many pixels down the tiles may take from that element's upper edge. With
 * `turn(by)`, a swipe leads to the layer before, −1, or after, 1; it is for the one grid of a page, to
 * which keys that are pressed elsewhere go too. `painted()` is told when the picture of new tiles is there,
 * `failed(words)` that it can't be shown. `sizes` are those of `tileBoard`.
 * @param {ParentNode & Node} parent
 * @param {{
 *   pick: (channel: number, cell: number[] | null) => void,
 *   room: (element: Element) => number,
 *   turn?: (by: number) => void,
 *   painted?: () => void,
 *   failed?: (words: string) => void,
 *   sizes?: {numbered: number, smallest?: number, fewest?: number},
 * }} callbacks
 */
export const tileGrid = (parent, { pick, room, turn, painted, failed = () => {}, sizes = { numbered: 40 } }) => {
  const find = frame(parent, FRAME);
  const [figure, scroller, stage, canvas, picture, output, pages] = [
    "figure",
    ".window",
    ".stage",
    "canvas",
    ".picture",
    "output",
    ".pages",
  ].map(find);
  /** @type {any} */
  let facts = null;
  /** @type {Function} */
  let readValue = () => null;
  let position = 0; // of the cursor among the tiles
  let chosen = -1; // position of the channel that is picked
  /** @type {number | null} */
  let wanted = null; // the channel that is picked, be it among the tiles or not
  let pointed = false;
  let zoom = 1;

  const faces = twoFaces(find, () => paint());
  const board = tileBoard(find, faces, sizes);
  const { lie, corner } = board;
  const paint = () => facts && board.paint(pointed || stage.matches(":focus-visible") ? position : -1, chosen);

  const layOut = () => {
    const across = Math.floor(Math.min(scroller.clientWidth, scroller.getBoundingClientRect().width));
    if (!across || !board.isThere()) return;
    board.layOut(across, room(scroller), position, zoom);
    const count = facts.order.length;
    scroller.classList.toggle("zoomed", zoom > 1);
    find(".out").disabled = zoom <= 1;
    find(".in").disabled = zoom >= MOST_ZOOM;
    pages.hidden = !onPhone();
    for (const part of pages.querySelectorAll("button, span")) part.hidden = lie.page >= count;
    find(".earlier").disabled = lie.first === 0;
    find(".later").disabled = lie.last === count;
    const said = { first: lie.first + 1, last: lie.last, count };
    pages.querySelector("span").textContent = say("{first}–{last} of {count}", said);
    paint();
  };

  const read = (value = "") => {
    const text = described(facts, position);
    output.textContent = value ? say("channel {channel} · {value}", { channel: facts.order[position], value }) : text;
    stage.setAttribute("aria-valuemax", facts.order.length - 1);
    stage.setAttribute("aria-valuenow", position);
    stage.setAttribute("aria-valuetext", chosen === position ? say("{tile}, selected", { tile: text }) : text);
    if (position < lie.first || position >= lie.last)
      layOut(); // on another page
    else paint();
  };

  const goTo = (at) => {
    position = Math.min(facts.order.length - 1, Math.max(0, at));
    read();
  };

  // Zoom: the tiles grow in a window that scrolls, about the pointer or the cursor.
  const zoomBy = (factor, event) => {
    const view = scroller.getBoundingClientRect();
    const before = canvas.getBoundingClientRect();
    const [x, y] = corner(position);
    const at = event ? [event.clientX, event.clientY] : [before.left + x + lie.wide / 2, before.top + y + lie.high / 2];
    const share = [(at[0] - before.left) / before.width, (at[1] - before.top) / before.height];
    zoom = Math.min(MOST_ZOOM, Math.max(1, zoom * factor));
    layOut();
    const grown = canvas.getBoundingClientRect();
    const middle = event ? at : [view.left + view.width / 2, view.top + view.height / 2];
    scroller.scrollLeft += grown.left + share[0] * grown.width - middle[0];
    scroller.scrollTop += grown.top + share[1] * grown.height - middle[1];
  };
  find(".in").onclick = () => zoomBy(2);
  find(".out").onclick = () => zoomBy(0.5);
  stage.onwheel = (event) => {
    if (!event.ctrlKey) return; // without it the page scrolls, as everywhere
    event.preventDefault();
    zoomBy(event.deltaY < 0 ? 1.25 : 0.8, event);
  };

  const select = (/** @type {number[] | null} */ cell = null) => pick(facts.order[position], cell);

  const where = pointing(stage);
  stage.onpointermove = (event) => {
    const hit = board.under(where(event));
    if (!hit) return;
    [position, pointed] = [hit.at, true];
    const of = (below) => nearly(readValue(hit.at, hit.cell, below));
    const value = facts.pair ? `A ${of(faces.below())} · B ${of(0)}` : of(0);
    const [row, column] = hit.cell;
    read(value ? say("{value} at row {row}, column {column}", { value, row, column }) : "");
  };
  stage.onpointerleave = () => {
    pointed = false;
    if (chosen >= 0) position = chosen;
    if (facts) read();
  };
  stage.onclick = (event) => {
    const hit = board.under(where(event));
    if (!hit) return;
    position = hit.at;
    read();
    select(hit.cell);
  };
  swiped(stage, { isFree: () => zoom <= 1, turn: (by) => turn?.(by) }); // of a zoomed grid it moves the tiles
  find(".pages small").hidden = !turn;
  find(".earlier").onclick = () => goTo(lie.first - lie.page);
  find(".later").onclick = () => goTo(lie.first + lie.page);

  const heard = keysOf(stage);
  const keys = gridKeys(find, {
    columns: () => lie.columns,
    count: () => facts?.order.length ?? 0,
    at: () => position,
    goTo,
    select,
    zoomBy,
    positionOf: (channel) => facts.order.indexOf(channel),
  });
  stage.onfocus = stage.onblur = () => paint();

  const observer = new ResizeObserver(layOut);
  let listens = false;
  const listen = () => {
    if (listens) return;
    listens = true;
    observer.observe(scroller);
    // What stands above the tiles comes and goes on a phone, and with it the room for a page.
    if (turn && onPhone()) observer.observe(scrolledBy(figure).inside);
    window.addEventListener("resize", layOut);
    if (turn) heard.addEventListener("keydown", keys.anywhere); // and not where there are several
  };

  const mark = () => {
    chosen = wanted === null ? -1 : facts.order.indexOf(wanted);
  };

  const atOf = (channel) => (board.isThere() && facts.palette.length ? facts.order.indexOf(channel) : -1);

  return {
    /**
     * Show tiles: `tile_facts` of the server and the sprite, with the channel that is picked.
     * @param {any} next
     * @param {Uint8Array<ArrayBuffer>} sprite
     * @param {number | null} channel
     */
    show: (next, sprite, channel) => {
      const isOrdered = String(next.order) === String(facts?.order);
      facts = next;
      position = isOrdered ? Math.min(position, facts.order.length - 1) : 0;
      if (channel !== wanted) wanted = channel;
      const before = chosen;
      mark();
      if (chosen >= 0 && (chosen !== before || !isOrdered)) position = chosen;
      faces.show(facts);
      board.show(facts);
      readValue = colourReader(picture, facts);
      picture.alt = facts.alt;
      colourBar(find, facts.bar, facts.ticks);
      listen();
      loadSprite(picture, facts.key, sprite, {
        there: () => {
          layOut();
          painted?.();
        },
        failed,
      });
      layOut(); // first, for what is painted lies where it says
      read();
    },
    /**
     * Frame the channel that is picked, or none.
     * @param {number | null} channel
     */
    choose: (channel) => {
      if (channel === wanted) return;
      wanted = channel;
      if (!facts) return;
      mark();
      if (chosen >= 0) position = chosen;
      read();
    },
    /**
     * The map of a channel as the tile shows it, a pixel for a cell; null where it is not there.
     * @param {number} channel
     * @param {"a" | "b"} [of] which of a pair
     */
    tileOf: (channel, of = "b") => {
      const at = atOf(channel);
      if (at < 0) return null;
      const [rows, columns] = facts.geometry.tile;
      const [left, top] = inSprite(facts.geometry, at);
      const pen = penOf(document.createElement("canvas"));
      [pen.canvas.width, pen.canvas.height] = [columns, rows];
      const from = top + (of === "a" ? faces.below() : 0);
      pen.drawImage(picture, left, from, columns, rows, 0, 0, columns, rows);
      return pen.canvas;
    },
    /**
     * A cell's value as its colour says it, to one step of the colour bar; null where nothing does.
     * @param {number} channel
     * @param {number} row
     * @param {number} column
     * @param {"a" | "b"} [of] which of a pair
     * @returns {number | null}
     */
    valueAt: (channel, row, column, of = "b") => {
      const at = atOf(channel);
      return at < 0 ? null : readValue(at, [row, column], of === "a" ? faces.below() : 0);
    },
    turn: (/** @type {string} */ face) => {
      facts = { ...facts, pair: { ...facts.pair, face } };
      faces.show(facts);
      paint();
    },
    fit: () => facts && layOut(),
    press: keys.press,
    focus: () => stage.focus({ preventScroll: true }),
    end: () => {
      listens = false;
      leaveSprite(picture);
      observer.disconnect();
      window.removeEventListener("resize", layOut);
      heard.removeEventListener("keydown", keys.anywhere);
      faces.end();
    },
  };
};
