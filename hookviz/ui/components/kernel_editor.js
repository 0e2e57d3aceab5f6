// A kernel whose numbers can be typed over, with kernels to begin from, and stride and padding.

import { frame, make, unpacked } from "../../explorer/client/shared.js";

const FRAME = `
  <div class="editor" role="group">
    <div class="presets" role="group"></div>
    <div class="row">
      <div class="numbers" role="group"></div>
      <div class="sliders">
        <label><span class="stride-says"></span> <output class="stride-value"></output><input class="stride" type="range" min="1" max="4" step="1"></label>
        <label><span class="padding-says"></span> <output class="padding-value"></output><input class="padding" type="range" min="0" max="3" step="1"></label>
        <p></p>
      </div>
    </div>
  </div>`;

const short = (value) => String(Number(value.toPrecision(3)));

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const { words } = data;
  const [presets, numbers, stride, padding] = [".presets", ".numbers", ".stride", ".padding"].map(find);
  find(".editor").setAttribute("aria-label", words.label);
  presets.setAttribute("aria-label", words.presets);
  numbers.setAttribute("aria-label", words.numbers);

  const kernel = data.kernel.map((row) => [...row]);
  const tell = (preset) =>
    setTriggerValue("changed", {
      kernel,
      stride: Number(stride.value),
      padding: Number(padding.value),
      preset,
    });

  // The same buttons and fields stay over the runs, so that none loses the focus.
  while (presets.children.length < data.presets.length) presets.append(make("button", { type: "button" }));
  while (presets.children.length > data.presets.length) presets.lastElementChild.remove();
  [...presets.children].forEach((button, index) => {
    const { name, title } = data.presets[index];
    button.textContent = title;
    button.dataset.name = name;
    button.setAttribute("aria-pressed", name === data.preset);
    button.onclick = () => tell(name);
  });

  const side = kernel.length;
  numbers.style.setProperty("--columns", side);
  if (numbers.children.length !== side * side) {
    numbers.replaceChildren(...kernel.flat().map(() => make("input", { type: "number", step: "any" })));
  }
  [...numbers.children].forEach((field, index) => {
    const [row, column] = [Math.floor(index / side), index % side];
    field.setAttribute("aria-label", words.number.replace("{row}", row + 1).replace("{column}", column + 1));
    if (field !== numbers.getRootNode().activeElement || data.preset) field.value = short(kernel[row][column]);
    field.onchange = () => {
      const value = Number(field.value);
      if (field.value === "" || !Number.isFinite(value)) {
        field.value = short(kernel[row][column]);
        return;
      }
      kernel[row][column] = Math.max(-100, Math.min(100, value));
      tell("");
    };
    field.onkeydown = (event) => event.stopPropagation(); // no key of the page's while typing
  });
  [
    [stride, "stride"],
    [padding, "padding"],
  ].forEach(([slider, name]) => {
    find(`.${name}-says`).textContent = words[name];
    slider.setAttribute("aria-label", words[name]);
    slider.value = data[name];
    find(`.${name}-value`).textContent = data[name];
    slider.oninput = () => (find(`.${name}-value`).textContent = slider.value);
    slider.onchange = () => tell(data.preset);
  });
  find("p").textContent = data.size;
}
