// A picture and a small window of it, enlarged, with the numbers of each pixel. All of it happens in
// the browser, from the picture's own exact pixels.

import { frame, make, penOf, unpacked } from "../../explorer/client/shared.js";
import { ahead } from "./ahead.js";

const FRAME = `
  <div class="pixels" role="group">
    <div class="shades" role="group"></div>
    <div class="views">
      <div class="stage" tabindex="0" role="application"><canvas></canvas></div>
      <canvas class="window" role="img"></canvas>
    </div>
    <output></output>
  </div>`;

const RESTS = 120; // milliseconds after which what is picked is told
const HIGHEST = 400; // pixels that either view is high at most
const watched = new WeakMap();

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const [root, stage, whole, near, output, shades] = [
    ".pixels",
    ".stage",
    ".stage canvas",
    ".window",
    "output",
    ".shades",
  ].map(find);
  const { width, height, side, words } = data;
  const given = { value: [data.row, data.column, data.shade], taken: data.taken };
  const mine = ahead(root, data.name, given, ([row, column, shade], number) =>
    setTriggerValue("moved", { number, value: { row, column, shade } }),
  );
  const place = { row: mine.value[0], column: mine.value[1], shade: mine.value[2] };
  const tell = () => mine.tell([place.row, place.column, place.shade], RESTS);
  root.setAttribute("aria-label", words.label);
  stage.setAttribute("aria-label", words.keys);
  /** @type {Uint8ClampedArray} RGBA of every pixel, once the picture is unpacked */
  let colours;

  const clamp = (value, most) => Math.max(0, Math.min(most, value));
  const begin = (at, size) => clamp(at - Math.floor(side / 2), Math.max(0, size - side));
  const rgb = (row, column) => colours.subarray(4 * (row * width + column), 4 * (row * width + column) + 3);
  const shown = (row, column) => {
    const parts = [...rgb(row, column)];
    if (!place.shade) return parts;
    const one = parts[place.shade - 1];
    return [one, one, one];
  };

  const fit = (canvas, wide, high) => {
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
    canvas.width = Math.round(wide * devicePixelRatio);
    canvas.height = Math.round(high * devicePixelRatio);
    const pen = canvas.getContext("2d");
    pen.scale(devicePixelRatio, devicePixelRatio);
    pen.imageSmoothingEnabled = false;
    return pen;
  };
  const outline = (pen, x, y, wide, high) => {
    for (const [line, ink] of [
      [4, "#000"],
      [2, "#fff"],
    ]) {
      pen.lineWidth = line;
      pen.strokeStyle = ink;
      pen.strokeRect(x, y, wide, high);
    }
  };
  const base = document.createElement("canvas");
  const paintBase = () => {
    [base.width, base.height] = [width, height];
    const picture = new ImageData(width, height);
    for (let at = 0; at < width * height; at += 1) {
      picture.data.set([...shown(Math.floor(at / width), at % width), 255], 4 * at);
    }
    penOf(base).putImageData(picture, 0, 0);
  };

  const draw = () => {
    if (!colours || !root.clientWidth) return;
    const { row, column, shade } = place;
    const [top, left] = [begin(row, height), begin(column, width)];
    const [rows, columns] = [Math.min(side, height), Math.min(side, width)];
    const beside = root.clientWidth >= 480;
    const room = beside ? (root.clientWidth - 20) / 2 : root.clientWidth;
    const scale = Math.min(room / width, (beside ? HIGHEST : 240) / height);
    const pen = fit(whole, width * scale, height * scale);
    pen.drawImage(base, 0, 0, width * scale, height * scale);
    outline(pen, left * scale, top * scale, columns * scale, rows * scale);

    const cell = Math.min(room / columns, HIGHEST / rows);
    const brush = fit(near, columns * cell, rows * cell);
    const lines = shade ? 1 : 3;
    const size = Math.min(cell / (lines + 0.6), cell / 2.3);
    brush.font = `600 ${size}px ${getComputedStyle(root).fontFamily}`;
    brush.textAlign = "center";
    brush.textBaseline = "middle";
    for (let y = 0; y < rows; y += 1) {
      for (let x = 0; x < columns; x += 1) {
        const parts = shown(top + y, left + x);
        brush.fillStyle = `rgb(${parts})`;
        brush.fillRect(x * cell, y * cell, cell + 0.5, cell + 0.5);
        const light = 0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2] > 140;
        brush.fillStyle = light ? "#000" : "#fff";
        const numbers = shade ? [parts[0]] : parts;
        numbers.forEach((value, line) => {
          const down = (line + 0.5 - numbers.length / 2) * size * 1.05;
          brush.fillText(value, (x + 0.5) * cell, (y + 0.5) * cell + down);
        });
      }
    }
    outline(brush, (column - left) * cell, (row - top) * cell, cell, cell);
    const [red, green, blue] = rgb(row, column);
    const facts = { row, column, red, green, blue };
    output.textContent = words.says.replace(/\{(\w+)\}/g, (_, name) => facts[name]);
    stage.setAttribute("aria-description", output.textContent);
    near.setAttribute("aria-label", `${words.window} ${output.textContent}`);
  };
  const move = (row, column) => {
    const [to, across] = [clamp(row, height - 1), clamp(column, width - 1)];
    if (to === place.row && across === place.column) return;
    [place.row, place.column] = [to, across];
    draw();
    tell();
  };

  const at = (event, canvas, rows, columns) => {
    const box = canvas.getBoundingClientRect();
    return [
      Math.floor(((event.clientY - box.top) / box.height) * rows),
      Math.floor(((event.clientX - box.left) / box.width) * columns),
    ];
  };
  const drag = (event) => move(...at(event, whole, height, width));
  stage.onpointerdown = (event) => {
    stage.setPointerCapture?.(event.pointerId);
    drag(event);
  };
  stage.onpointermove = (event) => event.buttons && drag(event);
  near.onclick = (event) => {
    const [top, left] = [begin(place.row, height), begin(place.column, width)];
    const [y, x] = at(event, near, Math.min(side, height), Math.min(side, width));
    move(top + y, left + x);
  };
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  stage.onkeydown = (event) => {
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const far = event.shiftKey ? side : 1;
    move(place.row + far * step[0], place.column + far * step[1]);
  };

  shades.setAttribute("aria-label", words.shades);
  shades.replaceChildren(
    ...words.shade.map((word, index) => {
      const button = make("button", { type: "button", "aria-pressed": index === place.shade }, word);
      button.onclick = () => {
        place.shade = index;
        [...shades.children].forEach((each) => each.setAttribute("aria-pressed", each === button));
        paintBase();
        draw();
        tell();
      };
      return button;
    }),
  );

  const file = new Blob([data.picture], { type: "image/png" });
  createImageBitmap(file, { colorSpaceConversion: "none", premultiplyAlpha: "none" }).then((picture) => {
    const canvas = make("canvas", { width, height });
    const pen = penOf(canvas, { willReadFrequently: true });
    pen.drawImage(picture, 0, 0);
    colours = pen.getImageData(0, 0, width, height).data;
    paintBase();
    draw();
    root.dataset.drawn = data.name;
  });
  watched.get(root)?.disconnect();
  const observer = new ResizeObserver(draw);
  observer.observe(root);
  watched.set(root, observer);
  return () => observer.disconnect();
}
