// The highest class scores as sliders, and what the softmax makes of them while one drags.

import { frame, inSigns, make, unpacked } from "../../explorer/client/shared.js";
import { softmax } from "../../explorer/client/softmax.js";
import { ahead } from "./ahead.js";
import { chanceText } from "./softmax.js";

const QUIET = 350; // milliseconds without a key, after which the server is told

const FRAME = `
  <div class="class-scores" role="group">
    <div class="score-rows"></div>
    <div class="score-foot">
      <label class="together"><span></span><input type="range"></label>
      <button type="button" class="reset"></button>
    </div>
  </div>`;

const ROW = `
  <span class="name"></span>
  <input type="range">
  <output class="score"></output>
  <span class="track"><b class="bar"></b></span>
  <output class="chance"></output>`;

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const [root, rows, together, reset] = [".class-scores", ".score-rows", ".together input", ".reset"].map(find);
  const { words } = data;
  const [low, high, step] = data.ends;
  const subject = `${data.names} ${data.own}`;
  const mine = ahead(root, subject, { value: data.scores, taken: data.taken }, (value, number) =>
    setTriggerValue("moved", { number, value }),
  );
  const scores = mine.value;
  let shift = 0; // of all scores together, which only this slider knows
  root.setAttribute("aria-label", words.label);

  const count = data.names.length + (data.others === null ? 0 : 1);
  // The same sliders stay over the runs, so that none loses the focus.
  if (rows.children.length !== count) {
    rows.replaceChildren(...Array.from({ length: count }, () => make("div", { className: "score-row" })));
    for (const row of rows.children) row.innerHTML = ROW;
  }
  const draw = () => {
    const { chances, others } = softmax(
      scores.map((score) => score + shift),
      data.others === null ? null : data.others + shift,
    );
    const best = Math.max(...chances);
    [...rows.children].forEach((row, at) => {
      const [score, chance, bar] = [".score", ".chance", ".bar"].map((name) => row.querySelector(name));
      const share = at < chances.length ? chances[at] : others;
      score.textContent = at < chances.length ? inSigns((scores[at] + shift).toFixed(2)) : "";
      chance.textContent = chanceText(share, words);
      bar.style.width = `${100 * share}%`;
      row.classList.toggle("best", share === best && at < chances.length);
    });
    reset.disabled = !shift && scores.every((score, at) => score === data.own[at]);
  };
  const quiet = (slider) => {
    slider.onkeydown = (event) => event.stopPropagation(); // arrows would leave the step
  };

  [...rows.children].forEach((row, at) => {
    const [name, slider] = [".name", "input"].map((part) => row.querySelector(part));
    const own = at < data.names.length;
    name.textContent = own ? data.names[at] : words.others;
    name.title = name.textContent;
    slider.hidden = !own;
    row.classList.toggle("others", !own);
    if (!own) return;
    Object.assign(slider, { min: low, max: high, step: "any" });
    slider.value = scores[at];
    slider.setAttribute("aria-label", words.score.replace("{name}", data.names[at]));
    slider.oninput = () => {
      scores[at] = Math.round(Number(slider.value) * 100) / 100;
      mine.keep(scores);
      draw();
    };
    slider.onchange = () => mine.tell(scores);
    slider.onkeydown = (event) => {
      event.stopPropagation();
      const by = { ArrowRight: step, ArrowUp: step, ArrowLeft: -step, ArrowDown: -step }[event.key];
      if (!by) return;
      event.preventDefault(); // "any" has no step of its own
      slider.value = String(Number(slider.value) + by * (event.shiftKey ? 10 : 1));
      slider.oninput();
      mine.tell(scores, QUIET);
    };
  });
  find(".together span").textContent = words.all;
  Object.assign(together, { min: low - high, max: high - low, step, value: 0 });
  together.oninput = () => {
    shift = Number(together.value);
    draw();
  };
  quiet(together);
  reset.textContent = words.reset;
  reset.onclick = () => {
    shift = 0;
    together.value = 0;
    data.own.forEach((score, at) => {
      scores[at] = score;
      rows.children[at].querySelector("input").value = score;
    });
    draw();
    mine.tell(scores);
  };
  draw();
}
