// The picture that the network sees, on which a region is marked: as a rectangle, or with a brush
// on a coarse mask of cells. A pointer draws it; so do arrow keys. The text of a region is that of
// hookviz/lenses/contract/regions.py.

import { frame, inSigns, say, unpacked } from "../../explorer/client/shared.js";

const FRAME = `
  <div class="region">
    <div class="tools">
      <div role="radiogroup" aria-label="Mark with">
        <button type="button" role="radio" data-tool="rectangle">Rectangle</button>
        <button type="button" role="radio" data-tool="brush">Brush</button>
        <button type="button" role="radio" data-tool="eraser">Eraser</button>
      </div>
    </div>
    <div class="stage" tabindex="0" role="application"><img alt="What the network sees" draggable="false"><canvas></canvas></div>
    <div class="foot"><output></output><button type="button" class="clear">Clear</button></div>
  </div>`;

const CELLS = 32; // of a mask along the longer side
const RADIUS = 1.5; // of the brush, in cells
const STEP = 1 / 32; // of the picture, that an arrow key moves a rectangle by
const CLICK = 4; // pixels that a pointer moves at least, or it was a click
const GRIP = 12; // pixels around a rectangle's corner that take hold of it
const PATIENCE = 500; // milliseconds after the last key before it counts
const NONE = "rect:0,0,0,0";
const SAYS = {
  rectangle: () => say("Drag over the picture. Arrow keys move the rectangle, with Shift its lower right corner."),
  brush: () => say("Paint over the picture. Arrow keys move the cell, Space marks it."),
  eraser: () => say("Wipe over what is marked. Arrow keys move the cell, Space clears it."),
};
const kept = new WeakMap(); // what a person has in hand, over the runs of the page

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const [root, stage, image, canvas, output] = [".region", ".stage", "img", "canvas", "output"].map(find);
  const [across, down] = data.size;
  const columns = Math.max(1, Math.round((CELLS * across) / Math.max(across, down)));
  const rows = Math.max(1, Math.round((CELLS * down) / Math.max(across, down)));
  if (!kept.has(root)) kept.set(root, { tool: data.region.startsWith("brush") ? "brush" : "rectangle" });
  const hand = kept.get(root);
  hand.cell ??= [rows >> 1, columns >> 1];
  const limit = (value) => Math.min(1, Math.max(0, value));

  // What is marked: {box: [left, top, right, bottom]} in shares, or {mask, rows, columns}.
  const read = (text) => {
    const [kind, ...rest] = text.split(":");
    if (kind === "brush") {
      const [wide, high] = rest[0].split("x").map(Number);
      const mask = new Uint8Array(wide * high);
      let at = 0;
      (rest[1] ?? "").split(".").forEach((run, turn) => {
        mask.fill(turn % 2, at, at + Number(run));
        at += Number(run);
      });
      return { mask, rows: high, columns: wide };
    }
    const box = (rest[0] ?? "").split(",").map(Number);
    return {
      box: box.length === 4 && box.every((edge) => edge >= 0 && edge <= 1) ? box : [0, 0, 0, 0],
    };
  };
  const write = ({ box, mask, rows: high, columns: wide }) => {
    if (box) {
      const edges = box.map((edge) => Number(edge.toFixed(3)));
      return edges[0] === edges[2] || edges[1] === edges[3] ? NONE : `rect:${edges}`;
    }
    const runs = [0];
    let marked = 0;
    for (const cell of mask) {
      if (cell !== marked) {
        runs.push(0);
        marked = cell;
      }
      runs[runs.length - 1] += 1;
    }
    if (!marked && runs.length > 1) runs.pop();
    return runs.length > 1 ? `brush:${wide}x${high}:${runs.join(".")}` : NONE;
  };
  const sorted = ([left, top, right, bottom]) => [
    Math.min(left, right),
    Math.min(top, bottom),
    Math.max(left, right),
    Math.max(top, bottom),
  ];
  // The same region on this control's cells, or as the rectangle around it.
  const asMask = (region) => {
    if (region.mask && region.rows === rows && region.columns === columns) return region;
    const mask = new Uint8Array(rows * columns);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const [y, x] = [(row + 0.5) / rows, (column + 0.5) / columns];
        mask[row * columns + column] = covers(region, x, y);
      }
    }
    return { mask, rows, columns };
  };
  const covers = ({ box, mask, rows: high, columns: wide }, x, y) =>
    box
      ? Number(x >= box[0] && x < box[2] && y >= box[1] && y < box[3])
      : mask[Math.floor(y * high) * wide + Math.floor(x * wide)];
  const asBox = (region) => {
    if (region.box) return [...region.box];
    const box = [1, 1, 0, 0];
    region.mask.forEach((cell, at) => {
      if (!cell) return;
      const [row, column] = [Math.floor(at / region.columns), at % region.columns];
      box[0] = Math.min(box[0], column / region.columns);
      box[1] = Math.min(box[1], row / region.rows);
      box[2] = Math.max(box[2], (column + 1) / region.columns);
      box[3] = Math.max(box[3], (row + 1) / region.rows);
    });
    return box[2] > box[0] ? box : [0, 0, 0, 0];
  };

  // What is not marked is darkened, where something is, and an edge in white and black runs between.
  const paint = () => {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(stage.clientWidth * ratio));
    canvas.height = Math.max(1, Math.round(stage.clientHeight * ratio));
    const pen = canvas.getContext("2d");
    const [wide, high] = [canvas.width, canvas.height];
    if (area()) {
      pen.fillStyle = "rgba(0, 0, 0, 0.5)";
      pen.fillRect(0, 0, wide, high);
    }
    const lines = new Path2D();
    const line = (x, y, toX, toY) => {
      lines.moveTo(x * wide, y * high);
      lines.lineTo(toX * wide, toY * high);
    };
    const { region } = hand;
    if (region.box) {
      const [left, top, right, bottom] = sorted(region.box);
      pen.clearRect(left * wide, top * high, (right - left) * wide, (bottom - top) * high);
      lines.rect(left * wide, top * high, (right - left) * wide, (bottom - top) * high);
    } else {
      const { mask, rows: ys, columns: xs } = region;
      const at = (row, column) => row >= 0 && column >= 0 && row < ys && column < xs && mask[row * xs + column];
      for (let row = 0; row <= ys; row += 1) {
        for (let column = 0; column <= xs; column += 1) {
          if (at(row, column)) {
            const [x, y] = [Math.floor((column * wide) / xs), Math.floor((row * high) / ys)];
            pen.clearRect(x, y, Math.ceil(((column + 1) * wide) / xs) - x, Math.ceil(((row + 1) * high) / ys) - y);
          }
          if (Boolean(at(row, column)) !== Boolean(at(row, column - 1)))
            line(column / xs, row / ys, column / xs, (row + 1) / ys);
          if (Boolean(at(row, column)) !== Boolean(at(row - 1, column)))
            line(column / xs, row / ys, (column + 1) / xs, row / ys);
        }
      }
    }
    /** @type {[string, number][]} */
    const strokes = [
      ["#000", 4],
      ["#fff", 2],
    ];
    for (const [colour, width] of strokes) {
      pen.strokeStyle = colour;
      pen.lineWidth = width * ratio;
      pen.stroke(lines);
    }
    if (hand.tool !== "rectangle" && hand.keys) {
      const [row, column] = hand.cell;
      for (const [colour, width] of strokes) {
        pen.strokeStyle = colour;
        pen.lineWidth = width * ratio;
        pen.strokeRect((column * wide) / columns, (row * high) / rows, wide / columns, high / rows);
      }
    }
  };
  const area = () => {
    const { region } = hand;
    if (region.mask) return region.mask.reduce((sum, cell) => sum + cell, 0) / region.mask.length;
    const [left, top, right, bottom] = sorted(region.box);
    return (right - left) * (bottom - top);
  };
  const show = () => {
    paint();
    for (const button of root.querySelectorAll("[role=radio]")) {
      const chosen = button.dataset.tool === hand.tool;
      button.setAttribute("aria-checked", chosen);
      button.tabIndex = chosen ? 0 : -1;
    }
    const share = area();
    const marked = share
      ? say("{share} % is marked.", { share: inSigns((100 * share).toFixed(1)) })
      : say("Nothing is marked.");
    output.textContent = say("{text} {sentence}", { text: marked, sentence: SAYS[hand.tool]() });
    stage.setAttribute("aria-label", `${data.label}: ${output.textContent}`);
  };
  const tell = () => {
    clearTimeout(hand.waiting);
    hand.waiting = undefined;
    if (hand.region.box) hand.region = { box: sorted(hand.region.box) };
    const text = write(hand.region);
    if (text !== hand.told) setTriggerValue("marked", text);
    hand.told = text;
  };
  const tellSoon = () => {
    clearTimeout(hand.waiting);
    hand.waiting = setTimeout(tell, PATIENCE);
  };

  const place = (event) => {
    const box = stage.getBoundingClientRect();
    return [limit((event.clientX - box.left) / box.width), limit((event.clientY - box.top) / box.height)];
  };
  const dab = ([x, y]) => {
    const mark = hand.tool === "brush" ? 1 : 0;
    const { mask } = hand.region;
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const far = Math.hypot(column + 0.5 - x * columns, row + 0.5 - y * rows);
        if (far <= RADIUS) mask[row * columns + column] = mark;
      }
    }
  };
  // What a drag that begins there does to the rectangle: moves a corner, all of it, or draws anew.
  const grip = ([x, y]) => {
    const box = asBox(hand.region);
    const near = (one, other, length) => Math.abs(one - other) * length <= GRIP;
    const [wide, high] = [stage.clientWidth, stage.clientHeight];
    const horizontal = [0, 2].find((edge) => near(x, box[edge], wide));
    const vertical = [1, 3].find((edge) => near(y, box[edge], high));
    if (box[2] > box[0] && horizontal !== undefined && vertical !== undefined) {
      return ([toX, toY]) => {
        const moved = [...box];
        moved[horizontal] = toX;
        moved[vertical] = toY;
        return moved;
      };
    }
    const within = x > box[0] && x < box[2] && y > box[1] && y < box[3];
    const small = (box[2] - box[0]) * (box[3] - box[1]) < 0.98;
    if (within && small) return ([toX, toY]) => shifted(box, toX - x, toY - y);
    return ([toX, toY]) => [x, y, toX, toY];
  };
  const shifted = (box, right, downward) => {
    const x = Math.min(1 - box[2], Math.max(-box[0], right));
    const y = Math.min(1 - box[3], Math.max(-box[1], downward));
    return [box[0] + x, box[1] + y, box[2] + x, box[3] + y];
  };
  // A click marks the smallest of the boxes that it hits, or a small square.
  const clicked = ([x, y]) => {
    const hit = data.boxes.filter(([left, top, right, bottom]) => x >= left && x < right && y >= top && y < bottom);
    const size = ([left, top, right, bottom]) => (right - left) * (bottom - top);
    const [smallest] = hit.sort((one, other) => size(one) - size(other));
    return { box: smallest ?? [x - STEP, y - STEP, x + STEP, y + STEP].map(limit) };
  };
  stage.onpointerdown = (event) => {
    if (event.button) return;
    event.preventDefault(); // the browser would drag the picture away
    stage.focus({ preventScroll: true });
    stage.setPointerCapture(event.pointerId);
    hand.keys = false;
    hand.last = place(event);
    if (hand.tool === "rectangle") {
      hand.drag = grip(hand.last);
      hand.pressed = [event.clientX, event.clientY]; // until it is more than a click
    } else {
      hand.region = { ...asMask(hand.region) };
      hand.region.mask = hand.region.mask.slice();
      hand.drag = "paint";
      dab(hand.last);
      show();
    }
  };
  stage.onpointermove = (event) => {
    if (!hand.drag) return;
    const [fromLeft, fromTop] = hand.pressed ?? [];
    if (hand.pressed && Math.hypot(event.clientX - fromLeft, event.clientY - fromTop) < CLICK) return;
    hand.pressed = undefined;
    const [x, y] = place(event);
    if (hand.drag === "paint") {
      const [fromX, fromY] = hand.last;
      const steps = Math.ceil(Math.max(Math.abs(x - fromX) * columns, Math.abs(y - fromY) * rows, 1));
      for (let step = 1; step <= steps; step += 1) {
        dab([fromX + ((x - fromX) * step) / steps, fromY + ((y - fromY) * step) / steps]);
      }
      hand.last = [x, y];
    } else {
      hand.region = { box: hand.drag([x, y]) };
    }
    show();
  };
  stage.onpointercancel = () => {
    if (!hand.drag) return;
    hand.drag = hand.pressed = undefined;
    tell();
  };
  stage.onpointerup = () => {
    if (hand.pressed) {
      hand.region = clicked(hand.last);
      show();
    }
    stage.onpointercancel();
  };

  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  stage.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = steps[event.key];
    const isMark = event.key === " " || event.key === "Enter";
    if (!step && !(isMark && hand.tool !== "rectangle")) return;
    event.preventDefault();
    event.stopPropagation();
    hand.keys = true;
    if (hand.tool === "rectangle") {
      const box = asBox(hand.region);
      const empty = box[2] <= box[0] || box[3] <= box[1];
      if (empty) hand.region = { box: [0.25, 0.25, 0.75, 0.75] };
      else if (event.shiftKey) {
        box[2] = Math.min(1, Math.max(box[0] + STEP, box[2] + step[0] * STEP));
        box[3] = Math.min(1, Math.max(box[1] + STEP, box[3] + step[1] * STEP));
        hand.region = { box };
      } else hand.region = { box: shifted(box, step[0] * STEP, step[1] * STEP) };
      tellSoon();
    } else if (step) {
      const [row, column] = hand.cell;
      hand.cell = [
        Math.min(rows - 1, Math.max(0, row + step[1])),
        Math.min(columns - 1, Math.max(0, column + step[0])),
      ];
    } else {
      const mask = asMask(hand.region).mask.slice();
      const at = hand.cell[0] * columns + hand.cell[1];
      mask[at] = hand.tool === "brush" ? 1 : 0;
      hand.region = { mask, rows, columns };
      tellSoon();
    }
    show();
  };
  stage.onblur = () => {
    if (hand.waiting) tell();
    hand.keys = false;
    paint();
  };

  const radios = [...root.querySelectorAll("[role=radio]")];
  const turn = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  radios.forEach((button, index) => {
    button.onclick = () => {
      hand.tool = button.dataset.tool;
      show();
    };
    button.onkeydown = (event) => {
      if (!turn[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      const next = radios[(index + turn[event.key] + radios.length) % radios.length];
      next.focus();
      next.click();
    };
  });
  find(".clear").onclick = () => {
    hand.region = read(NONE);
    show();
    tell();
  };

  // While somebody draws, the page may run on what was marked before.
  if (!hand.drag && hand.waiting === undefined && hand.given !== data.region) {
    hand.region = read(data.region);
    hand.told = write(hand.region);
    hand.given = data.region;
  }
  if (image.getAttribute("src") !== data.image) image.src = data.image;
  image.width = across;
  image.height = down;
  hand.watch?.disconnect();
  hand.watch = new ResizeObserver(paint);
  hand.watch.observe(stage);
  show();
  return () => hand.watch.disconnect();
}
