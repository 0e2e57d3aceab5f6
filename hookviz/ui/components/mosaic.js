// The channels as an instrument: tiles laid out by the free width and height of the window, a line
// that reads out what is under the pointer, the colour bar. The server's picture is a sprite that
// holds every tile once, a pixel for a cell; it is cut up and painted here.
// A little long: all of it is about one state, the cursor and where the tiles lie.

import { changeLayer, FRAME, twoFaces } from "./mosaic_parts.js";
import { colourBar, frame, number, say, scrollUp, typeSize, unpacked } from "./shared.js";
import { inSprite, tilePainter, valueReader } from "./tiles.js";
import { fit, GAP, onPhone } from "./tiling.js";

const NUMBERED = 40; // pixels from which a tile has room for its number
const SWIPE = 50; // pixels that a finger goes sideways to change the layer
const PAGER = 52; // pixels for what turns the pages
const MOST_PIXELS = 24e6; // of the canvas, however far one zooms in

const watched = new WeakMap(); // figures and what watches their size
const boards = new WeakMap(); // figures and their tiles as painted, without frames
const latest = new WeakMap(); // figures and what lays them out, of the newest run

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const [figure, scroller, stage, canvas, picture, output, label, jump, pages] = [
    "figure",
    ".window",
    ".stage",
    "canvas",
    ".picture",
    "output",
    "label",
    "input",
    ".pages",
  ].map(find);
  const sprite = data.geometry;
  const count = data.order.length;
  const aspect = sprite.tile[0] / sprite.tile[1];
  const pen = canvas.getContext("2d");
  const paintTile = tilePainter(picture, sprite);
  const style = getComputedStyle(stage);
  let columns = 1,
    wide = 1,
    high = 1;
  let page = count,
    first = 0,
    last = count; // tiles on a page, and those of the one in view

  // Where the cursor is, as a position among the tiles; kept on the element over the runs.
  let position = Math.min(Number(stage.dataset.position ?? 0), count - 1);
  let pointed = false;
  // The link says which channel is picked, so that a pick need not send the tiles again; of a grid
  // among others it is told.
  let chosen = -1;
  const readLink = () => {
    const linked = () => new URLSearchParams(location.search).get("channel");
    const channel = data.height ? data.chosen : linked();
    chosen = channel === null ? -1 : data.order.indexOf(Number(channel));
    if (chosen >= 0 && stage.dataset.chosen !== channel) position = chosen;
    stage.dataset.chosen = chosen >= 0 ? channel : "";
  };
  readLink();

  const corner = (at) => [((at - first) % columns) * (wide + GAP), Math.floor((at - first) / columns) * (high + GAP)];

  const box = (at, outer, inner) => {
    const [x, y] = corner(at);
    pen.lineWidth = 3;
    pen.strokeStyle = outer;
    pen.strokeRect(x + 1.5, y + 1.5, wide - 3, high - 3);
    pen.lineWidth = 1.5;
    pen.strokeStyle = inner;
    pen.strokeRect(x + 3.5, y + 3.5, wide - 7, high - 7);
  };

  const write = (pen, at, inset) => {
    const size = typeSize(stage, Math.max(9, Math.min(12, wide / 8)));
    if (wide < Math.max(NUMBERED, 4 * size) || count === 1) return;
    pen.font = `${size}px ${style.fontFamily}`;
    const [x, y] = corner(at).map((side) => side + inset);
    const text = String(data.order[at]);
    pen.fillStyle = "rgba(0, 0, 0, 0.6)";
    pen.fillRect(x, y, pen.measureText(text).width + 6, Math.max(14, size + 2));
    pen.fillStyle = "#fff";
    pen.fillText(text, x + 3, y + Math.max(11, size - 1));
  };

  // The tiles with their numbers; painted again only where they are others, or lie elsewhere.
  const faces = twoFaces(data, find, stage, () => paint());
  const painted = () => {
    const key = `${data.key} ${data.order} ${stage.dataset.layout} ${devicePixelRatio} ${typeSize(stage, 9)} ${faces.is()}`;
    let board = boards.get(figure);
    if (board?.key === key) return board.canvas;
    board = { key, canvas: document.createElement("canvas") };
    [board.canvas.width, board.canvas.height] = [canvas.width, canvas.height];
    const pen = board.canvas.getContext("2d");
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    for (let at = first; at < last; at += 1) {
      faces.paint(paintTile, pen, inSprite(sprite, at), corner(at), [wide, high], devicePixelRatio);
      write(pen, at, 0);
    }
    boards.set(figure, board);
    return board.canvas;
  };

  const paint = () => {
    if (picture.dataset.key !== data.key) return; // it is of the run before, cut otherwise
    pen.save();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(painted(), 0, 0);
    pen.restore();
    if (pointed || stage.matches(":focus-visible")) box(position, "#000", "#fff");
    if (chosen >= first && chosen < last) {
      box(chosen, "#fff", "#000");
      write(pen, chosen, 5); // beside the frame, which covers it
    }
    stage.dataset.painted = data.key;
    stage.dataset.face = faces.is();
  };

  const layOut = () => {
    const zoom = Number(stage.dataset.zoom ?? 1);
    const room = scroller.clientWidth;
    if (!room || picture.dataset.key !== data.key) return;
    // From where the tiles begin, at the top of the page, to the lower edge of the window.
    const main = document.querySelector("[data-testid='stMain']");
    const top = scroller.getBoundingClientRect().top + (main ? main.scrollTop : 0);
    const free = data.height ?? Math.max(240, window.innerHeight - top - (onPhone() ? PAGER : 16));
    const plan = fit(count, aspect, room, free);
    ({ columns, page } = plan);
    first = Math.floor(position / page) * page;
    last = Math.min(count, first + page);
    const shown = Math.min(count, page);
    const most = Math.sqrt(MOST_PIXELS / ((room * shown * plan.tile * aspect) / columns + 1)) / devicePixelRatio;
    const factor = Math.max(1, Math.min(zoom, most));
    [wide, high] = [Math.round(plan.tile * factor), Math.round(plan.tile * aspect * factor)];
    const [across, down] = [columns * (wide + GAP) - GAP, Math.ceil(shown / columns) * (high + GAP) - GAP];
    canvas.style.width = `${across}px`;
    canvas.style.height = `${down}px`;
    canvas.width = Math.round(across * devicePixelRatio);
    canvas.height = Math.round(down * devicePixelRatio);
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    scroller.classList.toggle("zoomed", zoom > 1);
    find(".out").disabled = zoom <= 1;
    find(".in").disabled = zoom >= 16;
    stage.dataset.layout = JSON.stringify({ columns, wide, high, gap: GAP, first, page });
    pages.hidden = !onPhone();
    for (const part of pages.querySelectorAll("button, span")) part.hidden = page >= count;
    find(".earlier").disabled = first === 0;
    find(".later").disabled = last === count;
    pages.querySelector("span").textContent = say("{first}–{last} of {count}", {
      first: first + 1,
      last,
      count,
    });
    paint();
  };

  const describe = () => {
    if (data.pair) {
      const [a, b] = [data.pair.stats, data.stats].map((of) => number(of.mean[position]));
      return say("channel {channel} · mean A {a} · B {b}", { channel: data.order[position], a, b });
    }
    const { lowest, mean, highest, zeros } = data.stats;
    const facts = {
      channel: data.order[position],
      low: number(lowest[position]),
      mean: number(mean[position]),
      high: number(highest[position]),
      zeros: Math.round(zeros[position] * 100),
    };
    return say("channel {channel} · min {low} · mean {mean} · max {high} · {zeros} % zeros", facts);
  };

  const show = (value = "") => {
    stage.dataset.position = position;
    const text = describe();
    output.textContent = value ? say("channel {channel} · {value}", { channel: data.order[position], value }) : text;
    stage.setAttribute("aria-valuemax", count - 1);
    stage.setAttribute("aria-valuenow", position);
    stage.setAttribute("aria-valuetext", chosen === position ? say("{tile}, selected", { tile: text }) : text);
    if (position < first || position >= last)
      layOut(); // on another page
    else paint();
  };

  // Zoom: the tiles grow in a window that scrolls, about the pointer or the cursor.
  const zoomBy = (factor, event) => {
    const view = scroller.getBoundingClientRect();
    const before = canvas.getBoundingClientRect();
    const [x, y] = corner(position);
    const at = event ? [event.clientX, event.clientY] : [before.left + x + wide / 2, before.top + y + high / 2];
    const share = [(at[0] - before.left) / before.width, (at[1] - before.top) / before.height];
    stage.dataset.zoom = Math.min(16, Math.max(1, Number(stage.dataset.zoom ?? 1) * factor));
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

  const select = (/** @type {number[] | null} */ cell = null) => {
    if (data.height) scrollUp();
    else window.hookviz?.picked();
    setTriggerValue("picked", { channel: data.order[position], cell });
  };

  const valueAt = valueReader(picture, data);

  // The tile and the cell under the pointer; between two tiles it is the nearest.
  const under = (event) => {
    if (picture.dataset.key !== data.key) return null; // what is painted is of the run before
    const view = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - view.left, event.clientY - view.top];
    const rows = Math.ceil((last - first) / columns);
    const [row, column] = [
      Math.min(rows - 1, Math.max(0, Math.floor((y + GAP / 2) / (high + GAP)))),
      Math.min(columns - 1, Math.max(0, Math.floor((x + GAP / 2) / (wide + GAP)))),
    ];
    const at = first + row * columns + column;
    if (at >= last) return null;
    const share = (offset, size) => Math.min(0.999, Math.max(0, offset / size));
    const cells = sprite.tile;
    const cell = [
      Math.floor(share(y - row * (high + GAP), high) * cells[0]),
      Math.floor(share(x - column * (wide + GAP), wide) * cells[1]),
    ];
    return { at, cell };
  };

  stage.onpointermove = (event) => {
    const hit = under(event);
    if (!hit) return;
    [position, pointed] = [hit.at, true];
    const of = (below) => valueAt(hit.at, hit.cell, below);
    const value = data.pair ? `A ${of(faces.below)} · B ${of(0)}` : of(0);
    show(
      value
        ? say("{value} at row {row}, column {column}", {
            value,
            row: hit.cell[0],
            column: hit.cell[1],
          })
        : "",
    );
  };
  stage.onpointerleave = () => {
    pointed = false;
    if (chosen >= 0) position = chosen;
    show();
  };
  // Sideways to another layer; up and down stays the page's own scrolling.
  /** @type {number[] | null} */
  let touched = null;
  stage.ontouchstart = ({ touches: [finger, second] }) => {
    const zoomed = Number(stage.dataset.zoom ?? 1) > 1; // then a finger moves the tiles
    touched = second || zoomed ? null : [finger.clientX, finger.clientY];
  };
  stage.ontouchend = ({ changedTouches: [finger] }) => {
    if (!touched) return;
    const [across, down] = [finger.clientX - touched[0], finger.clientY - touched[1]];
    touched = null;
    if (data.chosen) return; // a grid of one layer, beside which there is no other
    if (Math.abs(across) > SWIPE && Math.abs(across) > 2 * Math.abs(down)) changeLayer(-across);
  };
  const turn = (by) => {
    position = Math.min(count - 1, Math.max(0, first + by * page));
    show();
  };
  find(".pages small").hidden = Boolean(data.chosen);
  find(".earlier").onclick = () => turn(-1);
  find(".later").onclick = () => turn(1);
  stage.onclick = (event) => {
    const hit = under(event);
    if (!hit) return;
    position = hit.at;
    show();
    select(hit.cell);
  };

  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    if (event.key in steps) {
      const next = position + steps[event.key];
      if (next >= 0 && next < count) position = next;
    } else if (event.key === "Home") position = 0;
    else if (event.key === "End") position = count - 1;
    else if (event.key === "Enter" || event.key === " ") select();
    else if (event.key === "+" || event.key === "=") zoomBy(2);
    else if (event.key === "-") zoomBy(0.5);
    else if (event.key === "0") zoomBy(1 / 16);
    else if (event.key === "/") {
      label.hidden = false;
      jump.value = "";
      jump.focus();
    } else return false;
    event.preventDefault();
    event.stopPropagation();
    show();
    return true;
  };
  // Without what `press` returns: a handler's false cancels the browser's own keys, Tab among them.
  stage.onkeydown = (event) => {
    press(event);
  };
  stage.onfocus = stage.onblur = paint;

  // "/" and the arrows work from anywhere on the page where nobody types.
  const busy = (target) =>
    target.closest?.("input, textarea, select, button, a, [role='slider'], [role='radio'], [contenteditable]");
  const anywhere = (event) => {
    const target = event.composedPath()[0];
    if (target !== document.body && (busy(target) || target.getRootNode() !== document)) return;
    if (event.key !== "/" && !event.key.startsWith("Arrow")) return;
    if (press(event) && event.key !== "/") stage.focus();
  };

  jump.onkeydown = (event) => {
    event.stopPropagation();
    if (event.key !== "Enter" && event.key !== "Escape") return;
    const wanted = data.order.indexOf(Number(jump.value));
    if (event.key === "Enter" && jump.value.trim() !== "" && wanted < 0) {
      output.textContent = say("There is no channel {channel} among those shown.", {
        channel: jump.value,
      });
      return;
    }
    label.hidden = true;
    stage.focus();
    if (event.key === "Enter" && wanted >= 0) {
      position = wanted;
      show();
      select();
    }
  };

  // What was pressed before all this was here: "/", a number and Enter, or arrows.
  const replay = () => {
    if (!window.hookviz) return;
    window.hookviz.ready = true;
    for (const key of window.hookviz.take()) {
      if (!label.hidden && /[0-9]/.test(key)) jump.value += key;
      else (label.hidden ? stage : jump).dispatchEvent(new KeyboardEvent("keydown", { key }));
      if (key.startsWith("Arrow")) stage.focus();
    }
  };

  latest.set(figure, layOut);
  picture.alt = data.alt;
  if (picture.dataset.wanted !== data.key) {
    picture.dataset.wanted = data.key;
    const next = new Image();
    next.src = URL.createObjectURL(new Blob([data.picture], { type: "image/png" }));
    next.decode().then(() => {
      if (picture.dataset.wanted !== data.key) {
        // a newer one is on its way
        URL.revokeObjectURL(next.src);
        return;
      }
      URL.revokeObjectURL(picture.src);
      picture.src = next.src;
      const done = () => {
        picture.dataset.key = data.key;
        latest.get(figure)(); // of the newest run
      };
      picture.decode().then(done, done);
    });
  }
  colourBar(find, data.bar, data.ticks);
  watched.get(figure)?.();
  const observer = new ResizeObserver(layOut);
  observer.observe(scroller);
  // What stands above the tiles comes and goes on a phone, and with it the room for a page.
  const whole = onPhone() && document.querySelector("[data-testid='stMainBlockContainer']");
  if (whole) observer.observe(whole);
  const follow = () => {
    readLink();
    show();
  };
  // A layer of the tree at the side: asked for from here, it is this part of the page that runs.
  const lead = (event) => {
    event.preventDefault();
    setTriggerValue("layer", event.detail);
  };
  window.addEventListener("resize", layOut);
  window.addEventListener("hookviz:link", follow);
  if (!data.height) {
    // and not where there are several
    document.addEventListener("keydown", anywhere);
    window.addEventListener("hookviz:layer", lead);
  }
  const stop = () => {
    observer.disconnect();
    window.removeEventListener("resize", layOut);
    window.removeEventListener("hookviz:link", follow);
    window.removeEventListener("hookviz:layer", lead);
    document.removeEventListener("keydown", anywhere);
    faces.stop();
  };
  watched.set(figure, stop);
  layOut(); // first, for what is painted lies where it says
  show();
  replay();
  return stop;
}
