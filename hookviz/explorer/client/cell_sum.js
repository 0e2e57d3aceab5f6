// Why a cell has its value: a row for each input, patch × kernel = product, the product as a bar to
// the left or the right of zero; then the bias, the sum, and what followed. Of a layer that has no
// such sum, a sentence on what it does.

import { explain, frame, make, number, penOf, say, signedColours } from "./shared.js";

const FRAME = `
  <div class="why">
    <h4></h4>
    <div class="rows" role="list"></div>
    <p class="rest"></p>
    <p class="sum"></p>
    <ol class="steps"></ol>
    <p class="info" hidden></p>
  </div>`;

/**
 * @param {HTMLElement | ShadowRoot} parent
 * @param {(input: number, layer: string) => void} followed gets the input that a person follows to
 * the layer before
 */
export function cellSum(parent, followed) {
  const find = frame(parent, FRAME);
  const why = find(".why");
  /** @type {Facts | null} */
  let shown = null;

  const small = (values, most, says, colour) => {
    const title = `${says}: ${values.map((row) => row.map((value) => number(value)).join(" ")).join(" | ")}`;
    const size = { width: values[0].length, height: values.length };
    const canvas = make("canvas", { ...size, role: "img", "aria-label": says, title });
    const pen = penOf(canvas);
    values.forEach((row, y) =>
      row.forEach((value, x) => {
        pen.fillStyle = colour(value, most);
        pen.fillRect(x, y, 1, 1);
      }),
    );
    return canvas;
  };
  const span = (text, className = "") => make("span", { className }, text);
  const barOf = (term, most, colours) => {
    const fill = span("");
    fill.style.width = `${most && Number.isFinite(term) ? (50 * Math.abs(term)) / most : 0}%`;
    fill.style[term < 0 ? "right" : "left"] = "50%";
    fill.style.background = `var(--hv-${colours}-${term < 0 ? "below" : "above"})`;
    return make("span", { className: "bar" }, fill);
  };
  const rowOf = (row, data, colour) => {
    const term = Number(row.term); // NaN and infinity come as words
    const line = make(data.upstream ? "button" : "div", { className: "row" });
    if (data.upstream) {
      const title = say("Go to channel {channel} of {layer}", { channel: row.input, layer: data.upstream });
      Object.assign(line, { type: "button", title, onclick: () => followed(row.input, data.upstream) });
    }
    const isOne = row.kernel.length === 1 && row.kernel[0].length === 1; // as a linear layer's weights
    line.append(
      span(say("in {input}", { input: row.input }), "name"),
      small(
        row.patch,
        data.patchMost,
        isOne ? say("input {name}", { name: row.input }) : say("input {input} under the kernel", { input: row.input }),
        colour,
      ),
      span("×"),
      small(row.kernel, data.kernelMost, isOne ? say("weight") : say("kernel"), colour),
      span("="),
      barOf(term, data.most, data.colours),
      span(number(term), "term"),
    );
    return make("div", { role: "listitem" }, line);
  };

  const inform = (/** @type {string} */ text) => {
    why.classList.remove("stale");
    for (const part of why.children) part.hidden = Boolean(text) !== part.matches(".info");
    find(".info").textContent = text;
  };
  return {
    /** @param {Facts} data the answer to the question "cell" */
    show(data) {
      inform(data.info ?? "");
      find(".rows").hidden ||= data.rows?.length === 0; // a norm's value is no sum
      if (data.info || data === shown) return;
      shown = data;
      const colour = signedColours(why, data.colours);
      find("h4").textContent = data.title;
      find(".rows").replaceChildren(...data.rows.map((row) => rowOf(row, data, colour)));
      find(".rest").textContent = data.rest;
      explain(find(".sum"), data.sum);
      find(".steps").replaceChildren(
        ...data.steps.map((text) => {
          const step = make("li");
          explain(step, text);
          return step;
        }),
      );
    },
    /** What is shown is of another cell than the one that is looked at now. */
    stale: () => why.classList.add("stale"),
    inform,
  };
}
