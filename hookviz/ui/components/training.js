// A small network as it is trained: its first kernels, three maps, its loss and its gradients at a step
// that one plays to or scrubs to. All steps are here, so that only where one stops is told.

import { frame, inSigns, make, penOf, signedColours, unpacked } from "../../explorer/client/shared.js";
import { ahead } from "./ahead.js";

const FRAME = `
  <div class="tr-all" role="group">
    <div class="tr-bar">
      <button type="button" class="tr-play"></button>
      <input type="range" class="tr-step" min="0" step="1">
      <output class="tr-at"></output>
    </div>
    <p class="tr-says tr-kernels-says"></p>
    <div class="tr-kernels"></div>
    <p class="tr-says tr-maps-says"></p>
    <div class="tr-maps"></div>
    <div class="tr-numbers">
      <div>
        <p class="tr-says"><span class="tr-loss-says"></span> <b class="tr-loss"></b><span class="tr-right"></span></p>
        <svg class="tr-curve" viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true"></svg>
      </div>
      <div>
        <p class="tr-says tr-gradients-says"></p>
        <ul class="tr-gradients"></ul>
      </div>
    </div>
    <div class="tr-others"></div>
  </div>`;

const PACE = 110; // milliseconds of a frame while it plays
const NEUTRAL = 127; // the level of zero
const states = new WeakMap();

/**
 * Where the bytes of a frame's parts begin: kernels, maps of the first layer, one of each deeper.
 * @param {Facts} data
 */
export const partsOf = (data) => {
  const [count, side] = data.kernels;
  const sizes = [count * side * side * 3, count * data.firstSide ** 2, ...data.deeper.map((each) => each[2] ** 2)];
  let begin = 0;
  const parts = sizes.map((size) => {
    const part = [begin, begin + size];
    begin += size;
    return part;
  });
  return { parts, size: begin };
};

/**
 * The points of a curve in a box of 100 by 40, the highest value at its top.
 * @param {[number, number | null][]} curve
 * @param {number} steps
 * @param {number} most
 */
export const pathOf = (curve, steps, most) => {
  let pen = "M";
  return curve
    .map(([step, value]) => {
      if (value === null) return "";
      const point = `${pen}${((100 * step) / steps).toFixed(2)} ${(40 - 38 * Math.min(1, value / most)).toFixed(2)}`;
      pen = "L";
      return point;
    })
    .join("");
};

const percent = (share) => `${inSigns((100 * share).toFixed(1))} %`;
const fill = (text, facts) => text.replace(/\{(\w+)\}/g, (_, name) => facts[name]);

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const root = find(".tr-all");
  const { words, frames, curve, steps } = data;
  const [play, slider, at, kernels, maps, svg, gradients, others] = [
    ".tr-play",
    ".tr-step",
    ".tr-at",
    ".tr-kernels",
    ".tr-maps",
    ".tr-curve",
    ".tr-gradients",
    ".tr-others",
  ].map(find);
  const known = states.get(root);
  known?.stop();
  const subject = `${data.name} ${frames.length}`; // of which one has not moved ahead of the server
  const mine = ahead(root, subject, { value: [data.at], taken: data.taken }, ([at], number) =>
    setTriggerValue("at", { number, value: at }),
  );
  const isPlaying = known?.subject === subject && known.timer !== 0;
  const state = {
    subject,
    at: mine.value[0],
    kernel: data.kernel,
    timer: 0,
    stop: () => clearInterval(state.timer),
  };
  states.set(root, state);
  const { parts, size } = partsOf(data);
  const [count, side] = data.kernels;
  const colour = signedColours(root, data.colours);
  const shades = Array.from({ length: 2 * NEUTRAL + 1 }, (_, level) => colour(level - NEUTRAL, NEUTRAL));
  const levels = (part) => data.picture.subarray(state.at * size + parts[part][0], state.at * size + parts[part][1]);

  root.setAttribute("aria-label", words.label);
  find(".tr-kernels-says").textContent = words.kernels;
  find(".tr-maps-says").textContent = words.maps;
  find(".tr-loss-says").textContent = words.loss;
  find(".tr-gradients-says").textContent = words.gradients;
  slider.setAttribute("aria-label", words.step);
  slider.max = String(frames.length - 1);
  slider.disabled = play.disabled = frames.length < 2;

  while (kernels.children.length < count) {
    kernels.append(make("button", { type: "button" }, make("canvas", { width: side, height: side })));
  }
  [...kernels.children].forEach((button, kernel) => {
    button.setAttribute("aria-label", fill(words.kernel, { kernel }));
    button.onclick = () => {
      state.kernel = kernel;
      draw();
      setTriggerValue("kernel", kernel);
    };
  });
  const shown = [["conv1", 0, data.firstSide], ...data.deeper];
  if (!maps.children.length) {
    const picture = make("img", { alt: words.image });
    maps.append(make("figure", {}, picture, make("figcaption", {}, words.image)));
    for (const [, , cells] of shown) {
      const canvas = make("canvas", { width: cells, height: cells });
      canvas.setAttribute("role", "img");
      maps.append(make("figure", {}, canvas, make("figcaption")));
    }
  }
  maps.querySelector("img").src = data.picture_url;

  const line = (name, d) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("class", name);
    path.setAttribute("d", d);
    return path;
  };
  const first = curve[0].loss ?? 1;
  const most = 1.15 * first;
  svg.replaceChildren(
    ...data.others.map((other) => line("tr-other", pathOf(other.curve, steps, most))),
    line(
      "tr-own",
      pathOf(
        curve.map((each) => [each.step, each.loss]),
        steps,
        most,
      ),
    ),
    line("tr-here", ""),
  );
  const largest = Math.max(1e-12, ...curve.flatMap((each) => each.gradients.map((value) => value ?? 0)));
  gradients.replaceChildren(
    ...data.layers.map((layer) =>
      make("li", {}, make("span", {}, layer), make("span", { className: "tr-track" }, make("i")), make("b")),
    ),
  );
  others.replaceChildren(
    ...(data.others.length ? [make("p", { className: "tr-says" }, words.others)] : []),
    ...data.others.map((other) =>
      make(
        "figure",
        {},
        make("img", { src: other.strip, alt: "" }),
        make(
          "figcaption",
          {},
          `${other.name}. ${other.right === null ? "" : fill(words.right, { share: percent(other.right) })}`,
        ),
      ),
    ),
  );

  const paintMap = (canvas, values) => {
    const cells = canvas.width;
    const pen = penOf(canvas);
    values.forEach((level, cell) => {
      pen.fillStyle = shades[level];
      pen.fillRect(cell % cells, Math.floor(cell / cells), 1, 1);
    });
  };
  const draw = () => {
    const now = frames[state.at];
    const pixels = levels(0);
    [...kernels.children].forEach((button, kernel) => {
      const picture = new ImageData(side, side);
      for (let cell = 0; cell < side * side; cell += 1) {
        const from = 3 * (kernel * side * side + cell);
        picture.data.set([pixels[from], pixels[from + 1], pixels[from + 2], 255], 4 * cell);
      }
      penOf(button.firstElementChild).putImageData(picture, 0, 0);
      button.setAttribute("aria-pressed", kernel === state.kernel);
    });
    const ofFirst = data.firstSide ** 2;
    const figures = [...maps.children].slice(1);
    figures.forEach((figure, index) => {
      const [layer, channel] = index ? shown[index] : ["conv1", state.kernel];
      const values = index
        ? levels(index + 1)
        : levels(1).subarray(state.kernel * ofFirst, (state.kernel + 1) * ofFirst);
      const [canvas, caption] = figure.children;
      paintMap(canvas, values);
      caption.textContent = fill(words.map, { layer, channel });
      canvas.setAttribute("aria-label", caption.textContent);
    });
    const isMeasured = now.loss !== null;
    find(".tr-loss").textContent = isMeasured ? now.lossText : "";
    find(".tr-right").textContent = isMeasured ? ` · ${fill(words.right, { share: percent(now.right) })}` : "";
    const x = ((100 * now.step) / steps).toFixed(2);
    svg.lastElementChild.setAttribute("d", `M${x} 0L${x} 40`);
    [...gradients.children].forEach((item, index) => {
      const value = now.gradients[index];
      const [, track, text] = item.children;
      track.firstElementChild.style.width = `${(100 * (value ?? 0)) / largest}%`;
      text.textContent = value === undefined ? "" : now.texts[index];
    });
    const [step, all] = [now.step, steps].map((each) => each.toLocaleString(document.documentElement.lang || "en"));
    at.textContent = isMeasured ? fill(words.at, { step, steps: all }) : words.untrained;
    slider.value = String(state.at);
    slider.setAttribute("aria-valuetext", at.textContent);
    root.dataset.step = now.step;
    root.dataset.over = data.isOver;
  };
  const showPlaying = () => {
    play.textContent = state.timer ? `❚❚ ${words.pause}` : `▶ ${words.play}`;
    play.setAttribute("aria-pressed", state.timer !== 0);
  };
  const pause = (tell) => {
    state.stop();
    state.timer = 0;
    showPlaying();
    if (tell) mine.tell([state.at]);
  };
  const playOn = () => {
    draw();
    state.timer = setInterval(() => {
      state.at = Math.min(state.at + 1, frames.length - 1);
      mine.keep([state.at]);
      draw();
      if (state.at >= frames.length - 1) pause(true);
    }, PACE);
    showPlaying();
  };
  play.onclick = () => {
    if (state.timer) return pause(true);
    if (state.at === frames.length - 1) state.at = 0;
    mine.keep([state.at]);
    playOn();
  };
  slider.oninput = () => {
    pause(false);
    state.at = Number(slider.value);
    mine.keep([state.at]);
    draw();
  };
  slider.onchange = () => mine.tell([state.at]);
  slider.onkeydown = (event) => event.stopPropagation(); // no key of the page's while scrubbing
  if (isPlaying) playOn();
  else draw();
  showPlaying();
  return state.stop;
}
