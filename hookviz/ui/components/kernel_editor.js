// A kernel whose numbers can be typed over, with kernels to begin from, and stride and padding.

import { frame, make, unpacked } from "../../explorer/client/shared.js";
import { ahead } from "./ahead.js";

const FRAME = `
  <div class="editor" role="group">
    <div class="presets" role="group"></div>
    <div class="row">
      <div class="numbers" role="group"></div>
      <div class="sliders">
        <label><span class="stride-says"></span> <output class="stride-value"></output><input class="stride" type="range" min="1" max="4" step="1"></label>
        <label><span class="padding-says"></span> <output class="padding-value"></output><input class="padding" type="range" min="0" max="3" step="1"></label>
        <p class="editor-size"></p>
      </div>
    </div>
    <p class="editor-says" role="status"></p>
  </div>`;

const LARGE = 4; // numbers on a side from which on the buttons are seen where one is, not everywhere

// As it was typed where that is short; of a long one, as 1/9, three digits.
const short = (value) => {
  const exact = String(Number(value.toPrecision(7)));
  return (exact.length <= 8 ? exact : String(Number(value.toPrecision(3)))).replace("-", "−");
};
// What is typed, with a real minus sign and thousands apart too; NaN for anything else.
const read = (text) => {
  const plain = text.trim().replace("−", "-");
  const grouped = /^[-+]?\d{1,3}(,\d{3})+(\.\d+)?$/.test(plain);
  return plain === "" ? Number.NaN : Number(grouped ? plain.replaceAll(",", "") : plain);
};
// A weight as the server keeps it.
const kept = (value) => Number(value.toPrecision(7));
// How far a button goes: by ones where weights are as large, by a tenth or so of smaller ones.
const stepOf = (kernel) => {
  const most = Math.max(...kernel.flat().map(Math.abs));
  return most >= 1 || most === 0 ? 1 : 10 ** Math.max(-3, Math.floor(Math.log10(most)));
};

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const { words } = data;
  const [presets, numbers, stride, padding] = [".presets", ".numbers", ".stride", ".padding"].map(find);
  find(".editor").setAttribute("aria-label", words.label);
  presets.setAttribute("aria-label", words.presets);
  numbers.setAttribute("aria-label", words.numbers);

  const side = data.kernel.length;
  // What nobody has edited is what the server has, to the last digit.
  const exact = (all) =>
    data.kernel.map((row, at) =>
      row.map((weight, across) => {
        const here = all[at * side + across];
        return here === kept(weight) ? weight : here;
      }),
    );
  const send = (all, number = 0) =>
    setTriggerValue("changed", {
      number,
      value: { kernel: exact(all), stride: all.at(-3), padding: all.at(-2), preset: all.at(-1) },
    });
  const value = [...data.kernel.flat().map(kept), data.stride, data.padding, data.preset];
  const subject = `${side} ${data.presets.map(({ name }) => name)}`;
  const mine = ahead(find(".editor"), subject, { value, taken: data.taken }, send);
  const moves = { stride: mine.value.at(-3), padding: mine.value.at(-2) };
  let preset = mine.value.at(-1);
  const kernel = exact(mine.value);
  const tell = (name) => {
    preset = name;
    mine.tell([...kernel.flat().map(kept), Number(stride.value), Number(padding.value), name]);
  };

  // The same buttons and fields stay over the runs, so that none loses the focus.
  const buttons = data.presets.length + Number(data.numbers); // the last turns all signs
  while (presets.children.length < buttons) presets.append(make("button", { type: "button" }));
  while (presets.children.length > buttons) presets.lastElementChild.remove();
  [...presets.children].forEach((button, index) => {
    if (index === data.presets.length) {
      button.textContent = words.turned;
      button.className = "editor-turn";
      button.removeAttribute("aria-pressed");
      delete button.dataset.name;
      button.onclick = () => {
        for (const row of kernel) row.forEach((weight, at) => (row[at] = weight ? -weight : 0));
        tell("");
      };
      return;
    }
    const { name, title } = data.presets[index];
    button.className = "";
    button.textContent = title;
    button.dataset.name = name;
    button.setAttribute("aria-pressed", name === preset);
    button.onclick = () => {
      mine.forget(); // its numbers are the server's to tell
      send([...kernel.flat().map(kept), Number(stride.value), Number(padding.value), name]);
    };
  });

  numbers.style.setProperty("--columns", side);
  find(".row").hidden = !data.numbers && !data.moves;
  const says = find(".editor-says");
  numbers.hidden = says.hidden = !data.numbers;
  find(".sliders").hidden = !data.moves;
  // Below numbers and sliders there is the width for words; without the sliders it is beside them.
  const place = find(data.moves ? ".editor" : ".row");
  if (says.parentElement !== place) place.append(says);
  numbers.classList.toggle("editor-large", side > LARGE);
  if (numbers.children.length !== side * side) {
    const button = (name, sign) => make("button", { type: "button", className: name }, sign);
    numbers.replaceChildren(
      ...kernel
        .flat()
        .map(() =>
          make(
            "span",
            { className: "weight" },
            button("less", "−"),
            make("input", { type: "text", inputMode: "decimal", autocomplete: "off" }),
            button("more", "+"),
          ),
        ),
    );
  }
  says.textContent = data.effect;
  const step = stepOf(kernel);
  [...numbers.children].forEach((weight, index) => {
    const [less, field, more] = weight.children;
    const [row, column] = [Math.floor(index / side), index % side];
    const place = (text) => text.replace("{row}", row + 1).replace("{column}", column + 1);
    field.setAttribute("aria-label", place(words.number));
    if (field !== numbers.getRootNode().activeElement || preset) field.value = short(kernel[row][column]);
    const refuse = (why) => {
      const stays = short(kernel[row][column]);
      says.textContent = why.replace("{text}", () => field.value).replace("{weight}", () => stays);
      field.value = stays;
    };
    const take = (value) => {
      if (Number.isNaN(value)) return refuse(words.noNumber);
      if (Math.abs(value) > data.largest) return refuse(words.tooLarge);
      field.value = short(value);
      if (value === kernel[row][column]) return;
      kernel[row][column] = value;
      tell("");
    };
    const go = (by) => {
      field.value = short(Number((kernel[row][column] + by).toPrecision(7)));
      take(read(field.value));
    };
    field.onchange = () => take(read(field.value));
    field.onkeydown = (event) => {
      event.stopPropagation(); // no key of the page's while typing
      const by = { ArrowUp: step, ArrowDown: -step }[event.key];
      if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      go(by);
    };
    [
      [less, words.less, -step],
      [more, words.more, step],
    ].forEach(([button, says, by]) => {
      button.setAttribute("aria-label", place(says));
      button.title = `${by < 0 ? "−" : "+"}${Math.abs(by)}`;
      button.onclick = () => go(by);
    });
  });
  [
    [stride, "stride"],
    [padding, "padding"],
  ].forEach(([slider, name]) => {
    find(`.${name}-says`).textContent = words[name];
    slider.setAttribute("aria-label", words[name]);
    slider.value = moves[name];
    find(`.${name}-value`).textContent = moves[name];
    slider.oninput = () => {
      find(`.${name}-value`).textContent = slider.value;
      mine.keep([...kernel.flat().map(kept), Number(stride.value), Number(padding.value), preset]);
    };
    slider.onchange = () => tell(preset);
  });
  find(".editor-size").textContent = data.size;
}
