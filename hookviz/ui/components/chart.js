// Bars or lines over places that have names, as wide as the page. A place that stands for a channel
// is a button that leads to it; what is under the pointer or has the focus is read out above.

import { frame, make, say, unpacked } from "../../explorer/client/shared.js";
import { scrollUp } from "./page.js";

const FRAME = `
  <figure>
    <div class="above"><span class="unit"></span><span class="legend"></span><output></output></div>
    <div class="plot">
      <div class="axis" aria-hidden="true"></div>
      <div class="area"><svg viewBox="0 0 100 100" preserveAspectRatio="none"></svg><div class="over"></div></div>
      <div class="names" aria-hidden="true"></div>
    </div>
  </figure>`;

const LETTER = 7; // pixels that a letter of a name takes
const MOST_NAMES = 40;
const MOST_LETTERS = 34; // of a name; of a longer one the end stands there, which tells it from others
const watching = new WeakMap();

/**
 * Draw a chart; `pick` gets the position of a place that is clicked. Returns what ends it.
 * @param {ParentNode & Node} parent
 * @param {Facts} data
 * @param {(position: number) => void} pick
 */
export const drawChart = (parent, data, pick) => {
  const find = frame(parent, FRAME);
  const [figure, output, axis, over, names, svg] = ["figure", "output", ".axis", ".over", ".names", "svg"].map(find);
  const part = (kind, className, text = "") => make(kind, { className }, text);
  const count = data.labels.length;
  const along = (at) => (100 * ((data.steps?.[at] ?? at) + 0.5)) / count; // percent
  figure.setAttribute("role", data.picks ? "group" : "img");
  figure.setAttribute("aria-label", data.alt);
  find(".unit").textContent = data.unit;
  find(".legend").replaceChildren(
    ...(data.series.length > 1 ? data.series : []).map((series) => {
      const entry = part("span", "entry", series.name);
      entry.style.setProperty("--colour", series.colours[1]);
      return entry;
    }),
  );
  axis.replaceChildren(
    ...data.ticks.map(([share, text]) => {
      const tick = part("span", "tick", text);
      tick.style.bottom = `${100 * share}%`;
      return tick;
    }),
  );
  const lines = data.ticks.map(([share]) => {
    const line = part("i", "line");
    line.style.bottom = `${100 * share}%`;
    return line;
  });
  const zero = part("i", "line zero");
  zero.style.bottom = `${100 * data.zero}%`;

  const says = (at) => {
    const values = data.series.map((series) => `${series.name} ${series.texts[at]}`).join(" · ");
    const label = data.picks ? say("channel {channel}", { channel: data.labels[at] }) : data.labels[at];
    return `${label}: ${values}`;
  };
  const places = data.labels.map((_, at) => {
    const place = part(data.picks ? "button" : "div", "place");
    if (data.kind === "bars") {
      for (const series of data.series) {
        const slot = part("span", "slot");
        const share = series.shares[at];
        if (share !== null) {
          const bar = part("b", "bar");
          bar.style.bottom = `${100 * Math.min(share, data.zero)}%`;
          bar.style.height = `${100 * Math.abs(share - data.zero)}%`;
          bar.style.background = series.colours[share < data.zero ? 0 : 1];
          slot.append(bar);
        }
        place.append(slot);
      }
    }
    const [from, to] = [
      at ? (along(at - 1) + along(at)) / 2 : 0,
      at + 1 < count ? (along(at) + along(at + 1)) / 2 : 100,
    ];
    place.style.flexGrow = String(to - from);
    place.onpointerenter = place.onfocus = () => (output.textContent = says(at));
    place.onpointerleave = place.onblur = () => (output.textContent = "");
    if (data.picks) {
      place.type = "button";
      place.setAttribute("aria-label", says(at));
      place.onclick = () => pick(at);
    }
    return place;
  });
  over.replaceChildren(...lines, zero, ...places);

  svg.replaceChildren(
    ...(data.kind === "lines" ? data.series : []).map((series) => {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      let pen = "M";
      const steps = series.shares.map((share, at) => {
        if (share === null) {
          pen = "M";
          return "";
        }
        const step = `${pen}${along(at)} ${100 - 100 * share}`;
        pen = "L";
        return step;
      });
      path.setAttribute("d", steps.join(""));
      path.setAttribute("stroke", series.colours[1]);
      return path;
    }),
  );

  const nameOf = (label, at) => {
    const name = part("span", "name", label.length > MOST_LETTERS ? `…${label.slice(1 - MOST_LETTERS)}` : label);
    name.title = label;
    if (data.steps) name.style.left = `${along(at)}%`;
    return name;
  };
  const ends = data.isScale ? [data.labels[0], data.labels.at(-1)] : ["1", String(count)];
  const arrange = () => {
    const room = names.clientWidth / count;
    const longest = Math.max(...data.labels.map((label) => label.length));
    const turned = longest * LETTER > room;
    names.classList.toggle("turned", turned);
    const listed = count <= MOST_NAMES && room > 11;
    names.classList.toggle("none", !listed);
    names.classList.toggle("placed", listed && Boolean(data.steps));
    names.replaceChildren(
      ...(listed ? data.labels.map(nameOf) : [ends[0], data.places, ends[1]].map((text) => part("span", "name", text))),
    );
  };
  watching.get(figure)?.disconnect();
  const observer = new ResizeObserver(arrange);
  observer.observe(names);
  watching.set(figure, observer);
  arrange();
  return () => observer.disconnect();
};

export default function ({ data, parentElement, setTriggerValue }) {
  return drawChart(parentElement, unpacked(data), (position) => {
    scrollUp();
    setTriggerValue("picked", position);
  });
}
