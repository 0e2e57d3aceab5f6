// A slider through a network's layers: the strongest channels of each, where one of them answers on
// the image, and what one of its cells sees there. It all happens in the browser while one drags.

import { frame, make, penOf, unpacked } from "../../explorer/client/shared.js";
import { ahead } from "./ahead.js";

const FRAME = `
  <div class="depth-scrub" role="group">
    <div class="depth-head"><output class="depth-layer"></output><span class="depth-size"></span></div>
    <input class="depth-slider" type="range" min="0" step="1">
    <div class="depth-ends" aria-hidden="true"><span></span><span></span></div>
    <div class="depth-views">
      <div class="depth-tiles" role="group"></div>
      <div>
        <div class="depth-photo"><img alt=""><canvas></canvas><i></i></div>
        <output class="depth-sees"></output>
      </div>
    </div>
  </div>`;

const QUIET = 250; // milliseconds after the last move, when the server is told
const SIDE = 64; // pixels of a tile in the strip
const DARK = 0.85; // how dark the image is where a channel is silent
const SOFT = 0.6; // below 1, so that half as strong is more than half as bright

const pictures = new Map(); // of a strip's URL, decoded once
const strip = (url) => {
  if (!pictures.has(url)) {
    if (pictures.size > 80) pictures.clear();
    const picture = new Image();
    picture.src = url;
    pictures.set(
      url,
      picture.decode().then(() => picture),
    );
  }
  return pictures.get(url);
};

const fill = (text, facts) => text.replace(/\{(\w+)\}/g, (_, name) => facts[name]);
const clamp = (value, most) => Math.max(0, Math.min(most, value));

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const { levels, words } = data;
  const [root, slider, tiles, photo, spot, field] = [
    ".depth-scrub",
    ".depth-slider",
    ".depth-tiles",
    ".depth-photo img",
    ".depth-photo canvas",
    ".depth-photo i",
  ].map(find);
  const mine = ahead(root, data.photograph, { value: data.chosen, taken: data.taken }, (value, number) =>
    setTriggerValue("picked", { number, value }),
  );
  let [at, tile, row, column] = mine.value;
  root.setAttribute("aria-label", words.label);
  slider.setAttribute("aria-label", words.slider);
  slider.max = levels.length - 1;
  slider.value = at;
  const ends = find(".depth-ends").children;
  [ends[0].textContent, ends[1].textContent] = [words.first, words.last];
  if (photo.getAttribute("src") !== data.photograph) photo.src = data.photograph;
  const box = (element, top, left, bottom, right) =>
    Object.assign(element.style, {
      top: `${100 * top}%`,
      left: `${100 * left}%`,
      height: `${100 * (bottom - top)}%`,
      width: `${100 * (right - left)}%`,
    });
  [spot.width, spot.height] = [SIDE, SIDE];

  /** Darken the image where the channel is silent. */
  const shine = async () => {
    const [url, shown] = [levels[at].strip, tile];
    const picture = await strip(url);
    if (levels[at].strip !== url || tile !== shown) return; // a newer one is on its way
    const pen = penOf(spot, { willReadFrequently: true });
    pen.drawImage(picture, SIDE * tile, SIDE, SIDE, SIDE, 0, 0, SIDE, SIDE);
    const pixels = pen.getImageData(0, 0, SIDE, SIDE);
    for (let each = 0; each < pixels.data.length; each += 4) {
      pixels.data[each + 3] = 255 * DARK * (1 - (pixels.data[each] / 255) ** SOFT);
      pixels.data.fill(0, each, each + 3);
    }
    pen.putImageData(pixels, 0, 0);
    root.dataset.drawn = `${at} ${levels[at].channels[tile]}`;
  };
  const frameField = () => {
    const { edges } = levels[at];
    field.hidden = !edges.length;
    if (!edges.length) return;
    const [tops, bottoms, lefts, rights] = edges;
    box(field, tops[row], lefts[column], bottoms[row], rights[column]);
  };
  const cellAt = (event, button) => {
    const within = button.getBoundingClientRect();
    const { rows, columns } = levels[at];
    return [
      clamp(Math.floor(((event.clientY - within.top) / within.height) * rows), rows - 1),
      clamp(Math.floor(((event.clientX - within.left) / within.width) * columns), columns - 1),
    ];
  };
  const draw = () => {
    const level = levels[at];
    find(".depth-layer").textContent = fill(words.layer, { number: at + 1, count: levels.length, layer: level.layer });
    find(".depth-size").textContent = level.size;
    slider.setAttribute("aria-valuetext", `${find(".depth-layer").textContent}. ${level.size}. ${level.sees}`);
    find(".depth-sees").textContent = fill(words.sees, { size: level.sees });
    photo.alt = fill(words.alt, { channel: level.channels[tile], row, column });
    while (tiles.children.length < level.channels.length) tiles.append(make("button", { type: "button" }, ""));
    while (tiles.children.length > level.channels.length) tiles.lastElementChild.remove();
    [...tiles.children].forEach((button, index) => {
      button.replaceChildren(make("b", {}, level.channels[index]));
      button.style.backgroundImage = `url(${level.strip})`;
      button.style.backgroundSize = `${100 * level.channels.length}% 200%`;
      button.style.backgroundPosition = `${(100 * index) / Math.max(1, level.channels.length - 1)}% 0`;
      button.setAttribute("aria-label", fill(words.channel, { channel: level.channels[index] }));
      button.setAttribute("aria-pressed", index === tile);
    });
    frameField();
    shine();
  };
  const tell = (wait = 0) => mine.tell([at, tile, row, column], wait);
  const go = (level) => {
    [at, tile] = [level, 0];
    [row, column] = levels[at].best[0];
    mine.keep([at, tile, row, column]);
    draw();
  };

  slider.oninput = () => go(Number(slider.value));
  slider.onchange = () => tell(QUIET);
  slider.onkeydown = (event) => event.stopPropagation(); // arrows would leave the step
  tiles.onclick = (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    tile = [...tiles.children].indexOf(button);
    [row, column] = event.detail ? cellAt(event, button) : levels[at].best[tile]; // by pointer, or by key
    draw();
    tell();
  };
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  tiles.onkeydown = (event) => {
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const index = [...tiles.children].indexOf(event.target.closest("button"));
    if (index !== tile) {
      tile = index;
      [row, column] = levels[at].best[tile];
    }
    const far = event.shiftKey ? 5 : 1;
    row = clamp(row + far * step[0], levels[at].rows - 1);
    column = clamp(column + far * step[1], levels[at].columns - 1);
    draw();
    tell(QUIET);
  };
  draw();
  for (const level of levels) strip(level.strip);
}
