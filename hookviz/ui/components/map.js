// One map, large: every cell a sharp square with its exact value under the pointer; a click, or
// arrow keys and Enter, look at one of its cells.

import { colourBar, floats, frame, inSigns, say, unpacked } from "./shared.js";

const FRAME = `
  <div class="single">
    <div class="stage" tabindex="0" role="application">
      <img class="picture" alt=""><div class="frame selected"></div><div class="frame cursor"></div>
    </div>
    <div class="line"><output></output></div>
    <div class="scale"><img alt=""><div class="ticks"></div></div>
  </div>`;

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const [stage, picture, cursor, selected, output] = [".stage", ".picture", ".cursor", ".selected", "output"].map(find);
  const { rows, columns } = data;
  const values = data.values && floats(data.values);
  let [row, column] = data.cell;

  const put = (box, y, x) => {
    box.style.left = `${(100 * x) / columns}%`;
    box.style.top = `${(100 * y) / rows}%`;
    box.style.width = `${100 / columns}%`;
    box.style.height = `${100 / rows}%`;
  };
  const show = () => {
    put(cursor, row, column);
    put(selected, ...data.cell);
    const value = values ? ` · ${inSigns(values[row * columns + column].toPrecision(6))}` : "";
    output.textContent = say("row {row}, column {column}", { row, column }) + value;
  };
  const pick = () => setTriggerValue("picked", [row, column]);

  const under = (event) => {
    const box = picture.getBoundingClientRect();
    const y = Math.floor(((event.clientY - box.top) / box.height) * rows);
    const x = Math.floor(((event.clientX - box.left) / box.width) * columns);
    if (y < 0 || x < 0 || y >= rows || x >= columns) return false;
    [row, column] = [y, x];
    return true;
  };
  stage.onpointermove = (event) => under(event) && show();
  stage.onpointerleave = () => {
    [row, column] = data.cell;
    show();
  };
  stage.onclick = (event) => {
    if (!under(event)) return;
    show();
    pick();
  };
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  stage.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) {
      const [down, across] = steps[event.key];
      row = Math.min(rows - 1, Math.max(0, row + down));
      column = Math.min(columns - 1, Math.max(0, column + across));
    } else if (event.key === "Enter" || event.key === " ") pick();
    else return;
    event.preventDefault();
    event.stopPropagation();
    show();
  };

  stage.setAttribute("aria-label", data.says);
  picture.src = data.picture;
  picture.width = columns;
  picture.height = rows;
  colourBar(find, data.bar, data.ticks);
  show();
}
