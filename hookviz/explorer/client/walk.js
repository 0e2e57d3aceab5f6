// A kernel that walks over its input from the chosen cell on: at each step the patch under it, the
// products, and the cell that their sum gives. Nothing moves by itself until a person presses play.

import { nearestCell } from "./pointing.js";
import { floats, frame, inSigns, make, number, penOf, say, signedColours, typeSize } from "./shared.js";

const FRAME = `
  <div class="walk" role="group" aria-label="The kernel's walk over its input">
    <div class="controls">
      <button type="button" class="back" title="One step back" aria-label="One step back">◀</button>
      <button type="button" class="play">▶ Play</button>
      <button type="button" class="forth" title="One step on" aria-label="One step on">▶</button>
      <label>Cell <input class="slider" type="range" min="0" step="1" aria-label="Step of the walk"></label>
      <label>Speed <input class="speed" type="range" min="1" max="60" value="4"></label>
    </div>
    <div class="maps">
      <figure><canvas class="input" role="img"></canvas><figcaption class="input-says"></figcaption></figure>
      <figure><canvas class="output" role="img"></canvas><figcaption class="output-says"></figcaption></figure>
    </div>
    <div class="sum">
      <figure><table class="patch"></table><figcaption>under the kernel</figcaption></figure>
      <span>×</span>
      <figure><table class="kernel"></table><figcaption>kernel</figcaption></figure>
      <span>=</span>
      <figure><table class="products"></table><figcaption>products</figcaption></figure>
    </div>
    <p class="says"></p>
  </div>`;

const HIGHEST = 220; // pixels that a map is high at most
const LOWEST = 120; // and in a low window at least
const AROUND = 740; // pixels of the window's height for what stands above and below the maps
const [LARGE, AROUND_LARGE] = [340, 450]; // likewise where it is told what else takes room
const AROUND_EDITED = 690; // below a kernel that is edited
const WIDEST = 44; // pixels that a cell of the tables is wide at most
const WRITTEN = 24; // pixels from which a cell has room for its number
const OPERATORS = 56; // pixels that the two signs between the tables take, with what is around them

// Black or white, whichever is read better on a colour.
const inkOn = (colour) => {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
};

/** @param {HTMLElement | ShadowRoot} parent */
export function walk(parent) {
  const find = frame(parent, FRAME);
  let end = () => {};
  /** @type {Facts | null} */
  let shown = null;
  return {
    /**
     * @param {Facts} data the answer to the question "walk"
     * @param {(cell: number[] | null) => void} [reached] hears to which cell a person has gone,
     *   and nothing of it any more once it plays
     */
    show(data, reached = () => {}) {
      if (data === shown) return; // it goes on
      end();
      shown = data;
      end = begin(find, data, reached);
    },
    end: () => {
      shown = null;
      end();
    },
  };
}

/**
 * Begins a walk, where the same one stood before at the step where that was; returns what ends it.
 * @param {(selector: string) => any} find
 * @param {Facts} data with `seconds` the map is filled in so many, slowly at first; `empty`: none of
 *   it is there yet; `blank`: what is still to come is not seen; `goesOn`: it is the same walk, told
 * @param {(cell: number[] | null) => void} reached
 * @returns {() => void}
 */
const begin = (find, data, reached) => {
  const root = find(".walk");
  const [input, output, says, play, slider, speed] = [".input", ".output", ".says", ".play", ".slider", ".speed"].map(
    find,
  );
  const { stride, dilation, first } = data;
  // NaN and infinity come as words.
  const kernel = data.kernel.map((line) => line.map(Number));
  const bias = data.bias === null ? null : Number(data.bias);
  const [rows, columns] = data.size;
  const [mostInput, mostKernel, mostOutput] = data.most;
  const given = floats(data.input);
  const came = floats(data.output);
  const steps = rows * columns;
  const motionless = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const still = motionless && data.blank;
  const colour = signedColours(root, data.colours);
  // Of a grey picture 1 is white; of a map that has more the largest is.
  const greyOf = (value, most = 1) => {
    const level = Math.round((255 * Math.max(0, value)) / Math.max(1, most, value))
      .toString(16)
      .padStart(2, "0");
    return `#${level}${level}${level}`;
  };
  const inputColour = data.grey ? greyOf : colour;
  const outputColour = data.greyMap ? greyOf : colour;
  const start = data.empty ? -1 : (data.cell[0] - first[0]) * columns + data.cell[1] - first[1];
  const same = root.dataset.walk === data.name || data.goesOn; // as before this run: stay where it was
  root.dataset.walk = data.name;
  root.classList.toggle("walk-blank", Boolean(data.blank));
  let at = same ? Math.min(Number(root.dataset.at ?? start), steps - 1) : start;
  const ran = same && root.dataset.runs === "true" && at < steps - 1;
  let running = false;
  let paused = same && root.dataset.paused === "true";
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  let turn = 0;

  // A map in its own cells, painted once.
  const painted = (values, [height, width], most, colour) => {
    const canvas = make("canvas", { width, height });
    const picture = new ImageData(width, height);
    const words = new DataView(picture.data.buffer);
    values.forEach((value, index) => words.setUint32(4 * index, parseInt(`${colour(value, most).slice(1)}ff`, 16)));
    penOf(canvas).putImageData(picture, 0, 0);
    return canvas;
  };
  const maps = [
    painted(given, data.inputSize, mostInput, inputColour),
    painted(came, data.size, mostOutput, outputColour),
  ];

  // As wide as its place, and no higher than the window has room for; [pen, pixels per cell].
  const place = (canvas, map) => {
    const told = typeof data.above === "number"; // of what a lesson has above the maps
    const least = data.grey ? AROUND_EDITED : AROUND;
    const [highest, around] = told ? [LARGE, AROUND_LARGE + data.above] : [HIGHEST, least];
    const room = Math.min(highest, Math.max(LOWEST, window.innerHeight - around));
    const side = Math.min(canvas.parentElement.clientWidth / map.width, room / map.height);
    const [wide, high] = [map.width * side, map.height * side];
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
    canvas.width = Math.round(wide * devicePixelRatio);
    canvas.height = Math.round(high * devicePixelRatio);
    const pen = canvas.getContext("2d");
    pen.scale(devicePixelRatio, devicePixelRatio);
    pen.imageSmoothingEnabled = side * devicePixelRatio < 1;
    return [pen, side, wide, high];
  };
  // A frame in black and white, seen on every colour, and never too small to be seen.
  const outline = (pen, x, y, wide, high) => {
    const more = [Math.max(0, 7 - wide) / 2, Math.max(0, 7 - high) / 2];
    const box = [x - more[0], y - more[1], wide + 2 * more[0], high + 2 * more[1]];
    for (const [width, shade] of [
      [3.5, "#000"],
      [1.5, "#fff"],
    ]) {
      pen.lineWidth = width;
      pen.strokeStyle = shade;
      pen.strokeRect(...box);
    }
  };

  const showMaps = (row, column) => {
    const [pen, side, wide, high] = place(input, maps[0]);
    pen.drawImage(maps[0], 0, 0, wide, high);
    pen.fillStyle = "rgb(128, 128, 128)";
    const [top, left, height, width] = data.inside.map((cells) => cells * side);
    pen.fillRect(0, 0, wide, top);
    pen.fillRect(0, top + height, wide, high);
    pen.fillRect(0, 0, left, high);
    pen.fillRect(left + width, 0, wide, high);
    const [y, x] = [row * stride[0] * side, column * stride[1] * side];
    const under = [dilation[0] * (kernel.length - 1) + 1, dilation[1] * (kernel[0].length - 1) + 1];
    outline(pen, x, y, under[1] * side, under[0] * side);

    const [brush, size, across, down] = place(output, maps[1]);
    brush.globalAlpha = data.grey && !running ? 1 : 0.2; // what is still to come
    if (!data.blank) brush.drawImage(maps[1], 0, 0, across, down);
    brush.globalAlpha = 1;
    if (at < 0) return;
    brush.save();
    brush.beginPath();
    brush.rect(0, 0, across, row * size);
    brush.rect(0, row * size, (column + 1) * size, size);
    brush.clip();
    brush.drawImage(maps[1], 0, 0, across, down);
    brush.restore();
    outline(brush, column * size, row * size, size, size);
  };

  // As many digits as a cell has room for; a table of small cells has none, and its colours say it.
  const ruler = penOf(document.createElement("canvas"));
  const written = (value, room) => {
    if (!Number.isFinite(value)) return number(value);
    for (const digits of [3, 2, 1]) {
      const text = inSigns(String(Number(value.toPrecision(digits))));
      if (ruler.measureText(text).width <= room) return text;
    }
    return "";
  };
  const fill = (table, values, most, side, inside, shadeOf = colour) => {
    table.replaceChildren(
      ...values.map((row, y) => {
        const line = document.createElement("tr");
        row.forEach((value, x) => {
          const cell = document.createElement("td");
          if (side >= WRITTEN) cell.textContent = written(value, side - 2);
          cell.title = number(value);
          const shade = shadeOf(value, most);
          [cell.style.background, cell.style.color] = [shade, inkOn(shade)];
          if (inside && !inside[y][x]) cell.className = "padding";
          line.append(cell);
        });
        return line;
      }),
    );
  };

  const show = () => {
    root.dataset.at = at;
    const cell = Math.max(0, at);
    const [row, column] = [Math.floor(cell / columns), cell % columns];
    const taps = kernel.map((line, y) =>
      line.map((_, x) => [row * stride[0] + y * dilation[0], column * stride[1] + x * dilation[1]]),
    );
    const patch = taps.map((line) => line.map(([y, x]) => given[y * data.inputSize[1] + x]));
    const [top, left, height, width] = data.inside;
    const inside = taps.map((line) =>
      line.map(([y, x]) => y >= top && x >= left && y < top + height && x < left + width),
    );
    const products = patch.map((line, y) => line.map((value, x) => value * kernel[y][x]));
    const sum = products.flat().reduce((total, value) => total + value, 0);
    const whole = came[cell];
    const others = whole - sum - (bias ?? 0);

    showMaps(row, column);
    const room = (root.clientWidth - OPERATORS) / 3 / kernel[0].length;
    const side = Math.max(2, Math.min(WIDEST, Math.floor(room)));
    root.style.setProperty("--side", `${side}px`);
    ruler.font = `${typeSize(root, 11)}px ${getComputedStyle(root).fontFamily}`;
    fill(find(".patch"), patch, mostInput, side, inside, inputColour);
    fill(find(".kernel"), kernel, mostKernel, side);
    const largest = Math.max(...products.flat().map(Math.abs).filter(Number.isFinite), 0);
    fill(find(".products"), products, largest, side);
    const parts = [say("Σ of the products {sum}", { sum: number(sum) })];
    if (data.others) parts.push(say("the other {count} inputs {sum}", { count: data.others, sum: number(others) }));
    if (bias !== null) parts.push(say("bias {bias}", { bias: number(bias) }));
    const place = say("row {row}, column {column}", {
      row: first[0] + row,
      column: first[1] + column,
    });
    const sums =
      parts.length > 1
        ? `${parts.join(" + ")} = ${number(whole)}`
        : say("Σ of the products = {sum}", { sum: number(whole) });
    says.textContent = at < 0 ? say("The map is still empty.") : say("{place}: {sums}", { place, sums });
    slider.max = steps - 1;
    slider.value = cell;
    slider.setAttribute("aria-valuetext", place);
    Object.assign(root.dataset, { runs: running, paused });
    play.textContent = running ? say("❚❚ Pause") : still ? say("Fill the map") : say("▶ Play");
  };

  const stop = () => {
    clearInterval(timer);
    cancelAnimationFrame(turn);
    running = false;
  };
  const tell = () => reached([first[0] + Math.floor(at / columns), first[1] + (at % columns)]);
  const to = (step) => {
    stop();
    at = Math.min(steps - 1, Math.max(0, step));
    paused = false;
    show();
    tell();
  };
  const halt = () => {
    stop();
    tell();
  };
  // Cell by cell at first, so that each sum is seen to be made, and then faster and faster.
  const fillIn = () => {
    let [last, passed] = [performance.now(), data.seconds * ((at + 1) / steps) ** (1 / 3)];
    const next = (now) => {
      passed += Math.min(250, Math.max(0, now - last)) / 1000;
      last = now;
      at = Math.max(0, Math.min(steps - 1, Math.floor(steps * (passed / data.seconds) ** 3)));
      if (!root.isConnected || at === steps - 1) halt();
      else turn = requestAnimationFrame(next);
      show();
    };
    turn = requestAnimationFrame(next);
  };
  const go = () => {
    clearInterval(timer);
    timer = setInterval(() => {
      if (!root.isConnected || at === steps - 1) stop();
      else at += 1;
      show();
    }, 1000 / Number(speed.value));
  };

  const run = () => {
    running = true;
    reached(null);
    if (data.seconds) fillIn();
    else go();
  };
  play.onclick = () => {
    if (still) return to(steps - 1);
    if (running) {
      paused = true;
      halt();
    } else {
      if (at === steps - 1) at = 0;
      if (data.seconds && !paused && !data.blank) at = -1; // all of it was there: from its beginning
      paused = false;
      run();
    }
    show();
  };
  find(".back").onclick = () => to(at - 1);
  find(".forth").onclick = () => to(at + 1);
  slider.oninput = () => to(Number(slider.value));
  speed.oninput = () => {
    if (running) go();
  };
  output.onclick = (event) => {
    const point = { x: event.clientX, y: event.clientY };
    const [row, column] = nearestCell(output.getBoundingClientRect(), point, rows, columns);
    to(row * columns + column);
  };
  // Who wants no motion gets the steps alone, and a map that is to be filled at once.
  play.hidden = motionless && !still;
  speed.parentElement.hidden = motionless || Boolean(data.seconds);

  [input, output].forEach((canvas, index) => {
    canvas.setAttribute("aria-label", data.says[index]);
    canvas.nextElementSibling.textContent = data.says[index];
  });
  if (ran) run(); // what was asked for before it began has come, and ends nothing
  const observer = new ResizeObserver(show); // draws at once, too
  observer.observe(root);
  return () => {
    stop();
    observer.disconnect();
  };
};
