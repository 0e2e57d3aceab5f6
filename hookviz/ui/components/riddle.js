// An image as numbers alone: names to guess among, and a button that uncovers a little more of it.

import { frame, make, unpacked } from "../../explorer/client/shared.js";
import { counted } from "./page.js";

const FRAME = `
  <div class="riddle" role="group">
    <div class="riddle-board"><div class="riddle-numbers" role="img"></div><img class="riddle-picture" alt=""></div>
    <div class="riddle-guesses" role="group"></div>
    <output class="riddle-says"></output>
    <div class="riddle-steps"><button type="button" class="riddle-on"></button><button type="button" class="riddle-again"></button><button type="button" class="riddle-another"></button></div>
  </div>`;

const WRITTEN = 24; // numbers in a row from which on no digit can be read
const addresses = new WeakMap(); // of the picture that is shown, to be given back
let wasOn = false; // whether the focus was on a step: Streamlit may put all of it into the page anew

export default function (component) {
  const { data: bytes, parentElement } = component;
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const [root, numbers, picture, guesses, on, again, another] = [
    ".riddle",
    ".riddle-numbers",
    ".riddle-picture",
    ".riddle-guesses",
    ".riddle-on",
    ".riddle-again",
    ".riddle-another",
  ].map(find);
  const { words, levels, stage } = data;
  root.setAttribute("aria-label", words.label);
  root.dataset.stage = stage;
  const send = counted(component, data.taken);
  const tell = (did) => send("did", did);

  numbers.hidden = !levels.length;
  picture.hidden = Boolean(levels.length);
  if (levels.length) {
    const columns = levels[0].length;
    numbers.style.setProperty("--columns", columns);
    numbers.setAttribute("aria-label", words.numbers);
    const flat = levels.flat();
    // The same cells stay from numbers to greys, so that each is seen to be painted.
    if (numbers.children.length !== flat.length) numbers.replaceChildren(...flat.map(() => make("span")));
    flat.forEach((level, index) => {
      const cell = /** @type {HTMLElement} */ (numbers.children[index]);
      cell.textContent = columns <= WRITTEN ? level : "";
      cell.style.background = stage ? `rgb(${level}, ${level}, ${level})` : "";
      cell.style.color = stage ? (level > 140 ? "#000" : "#fff") : "";
    });
  } else {
    URL.revokeObjectURL(addresses.get(root));
    const address = URL.createObjectURL(new Blob([data.picture], { type: "image/png" }));
    addresses.set(root, address);
    picture.src = address;
    picture.alt = words.picture;
  }

  guesses.setAttribute("aria-label", words.guesses);
  if (guesses.children.length !== data.guesses.length) {
    guesses.replaceChildren(...data.guesses.map(() => make("button", { type: "button" })));
  }
  const over = !data.on;
  [...guesses.children].forEach((button, index) => {
    const { name, title, tried, right } = data.guesses[index];
    button.textContent = tried ? `${right ? "✓" : "✗"} ${title}` : title;
    button.className = right && over ? "right" : tried ? "wrong" : "";
    // It keeps the focus, so it is not disabled by that name.
    button.setAttribute("aria-disabled", tried || over);
    button.onclick = () => tried || over || tell({ guess: name });
  });
  find(".riddle-says").textContent = data.says;
  const focused = /** @type {any} */ (root.getRootNode()).activeElement;
  [
    [on, data.on, { stage: stage + 1 }],
    [again, data.again, { stage: 0 }],
    [another, data.another, { another: true }],
  ].forEach(([button, text, did]) => {
    button.hidden = !text;
    button.textContent = text;
    button.onclick = () => tell(did);
    button.onfocus = () => {
      wasOn = true;
    };
  });
  // Who has gone elsewhere meanwhile stays there.
  const isNowhere = !focused && (document.activeElement ?? document.body) === document.body;
  if (focused?.hidden || (wasOn && isNowhere)) [on, another, again].find((button) => !button.hidden)?.focus();
  else wasOn = [on, again, another].includes(focused);
}
