// Why a cell has its value: a row for each input, patch × kernel = product, the product as a bar to
// the left or the right of zero; then the bias, the sum, and what followed.

import { explain, frame, number, penOf, say, signedColours, unpacked } from "./shared.js";

const FRAME = `
  <div class="why">
    <h4></h4>
    <div class="rows" role="list"></div>
    <p class="rest"></p>
    <p class="sum"></p>
    <ol class="steps"></ol>
  </div>`;

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const colour = signedColours(find(".why"), data.colours);
  const small = (values, most, says) => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [values[0].length, values.length];
    const pen = penOf(canvas);
    values.forEach((row, y) =>
      row.forEach((value, x) => {
        pen.fillStyle = colour(value, most);
        pen.fillRect(x, y, 1, 1);
      }),
    );
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", says);
    canvas.title = `${says}: ${values.map((row) => row.map((value) => number(value)).join(" ")).join(" | ")}`;
    return canvas;
  };
  const span = (text, name = "") => {
    const element = document.createElement("span");
    element.className = name;
    element.textContent = text;
    return element;
  };

  find("h4").textContent = data.title;
  find(".rows").replaceChildren(
    ...data.rows.map((row) => {
      const line = document.createElement(data.upstream ? "button" : "div");
      line.className = "row";
      const item = document.createElement("div");
      item.setAttribute("role", "listitem");
      if (data.upstream) {
        line.setAttribute("type", "button");
        line.title = say("Go to channel {channel} of {layer}", {
          channel: row.input,
          layer: data.upstream,
        });
        line.onclick = () => setTriggerValue("upstream", row.input);
      }
      const bar = document.createElement("span");
      bar.className = "bar";
      const fill = document.createElement("span");
      const share = data.most ? Math.abs(row.term) / data.most : 0;
      fill.style.width = `${50 * share}%`;
      fill.style[row.term < 0 ? "right" : "left"] = "50%";
      fill.style.background = `var(--hv-${data.colours}-${row.term < 0 ? "below" : "above"})`;
      bar.append(fill);
      line.append(
        span(say("in {input}", { input: row.input }), "name"),
        small(row.patch, data.patchMost, say("input {input} under the kernel", { input: row.input })),
        span("×"),
        small(row.kernel, data.kernelMost, say("kernel")),
        span("="),
        bar,
        span(number(row.term), "term"),
      );
      item.append(line);
      return item;
    }),
  );
  find(".rest").textContent = data.rest;
  explain(find(".sum"), data.sum);
  find(".steps").replaceChildren(
    ...data.steps.map((text) => {
      const step = document.createElement("li");
      explain(step, text);
      return step;
    }),
  );
}
