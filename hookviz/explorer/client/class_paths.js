// Why a class: what it needs, lit on the map, and the panel that says so and follows the strongest ways.

import { inWords } from "./address.js";
import { newest } from "./asking.js";
import { decoded, urls } from "./pictures.js";
import { frame, make, say } from "./shared.js";

/**
 * @typedef {import("./map_camera.js").Box} Box
 * @typedef {import("./map_parts.js").Placed} Placed
 * @typedef {{channels: number[], tile: number, shares: [number, number][]}} LitLayer
 * @typedef {object} Lit what a class needs, as it is painted
 * @property {number} class
 * @property {(block: Placed, line: {from: number, to: number}) => number} along share that goes along a line
 * @property {(part: Placed) => number} into share that comes into a part
 * @property {(part: Placed) => LitLayer | null} layer
 * @property {HTMLImageElement | null} sprite small maps of the channels that it needs
 * @property {any} geometry
 */

/**
 * What an answer lights, for whoever paints it.
 * @param {any} facts
 * @param {HTMLImageElement | null} [sprite]
 * @returns {Lit}
 */
export const litBy = (facts, sprite = null) => {
  /** @type {Map<string, number>} */
  const along = new Map();
  /** @type {Map<string, number>} */
  const into = new Map();
  const key = (/** @type {(string | null)[]} */ ...names) => JSON.stringify(names);
  for (const [block, lines] of Object.entries(facts.blocks)) {
    for (const [from, to, share] of lines) {
      along.set(key(block, from, to), share);
      if (to !== null) into.set(to, (into.get(to) ?? 0) + share);
    }
  }
  const named = (/** @type {Placed | undefined} */ part) => part?.facts.name ?? null;
  return {
    class: facts.class,
    along: (block, { from, to }) =>
      along.get(key(block.facts.name || "/", named(block.parts[from]), named(block.parts[to]))) ?? 0,
    into: (part) => (part.parent ? (into.get(part.facts.name) ?? 0) : 1),
    layer: (part) => facts.layers[part.facts.name] ?? null,
    sprite,
    geometry: facts.sprite,
  };
};

/**
 * Which of the classes at the end of the map is under a point; null where none is.
 * @param {Box} box where they are
 * @param {number} count
 * @param {{x: number, y: number}} point
 */
export const classUnder = ({ left, top, width, height }, count, { x, y }) => {
  if (!count || x < left || x > left + width || y < top || y >= top + height) return null;
  return Math.floor(((y - top) / height) * count);
};

const PANEL = `
  <section class="class-why" aria-label="Why this class?" hidden>
    <div class="class-head">
      <h3></h3>
      <button type="button" class="step" aria-label="Put out" title="Put out"><i aria-hidden="true">×</i></button>
    </div>
    <p class="because"></p>
    <ol class="ways"></ol>
    <p class="caption score"></p>
    <p class="caption says"></p>
    <p class="caption limits"></p>
    <p class="caption source"></p>
    <p class="error" role="alert" hidden></p>
  </section>`;

/**
 * The classes as buttons, and the panel of the one that is chosen.
 * @param {HTMLElement} row for the buttons
 * @param {HTMLElement} place for the panel
 * @param {{
 *   ask: (question: Facts, options: any) => Promise<import("./asking.js").Answered>,
 *   choose: (number: number | null) => void,
 *   go: (name: string, channel: number) => void,
 *   lights: (lit: Lit | null) => void,
 * }} map
 */
export const classPaths = (row, place, { ask, choose, go, lights }) => {
  const find = frame(place, PANEL);
  const panel = find(".class-why");
  const asked = newest(ask);
  const picture = urls("image/png");
  let about = "";
  /** @type {number | null} */
  let chosen = null;

  const mark = () => {
    for (const each of row.querySelectorAll("button"))
      each.setAttribute("aria-pressed", String(Number(each.dataset.class) === chosen));
  };
  const out = () => {
    const was = /** @type {HTMLElement | null} */ (row.querySelector("[aria-pressed=true]"));
    const isHere = panel.contains(/** @type {Document | ShadowRoot} */ (panel.getRootNode()).activeElement);
    choose(null);
    if (isHere) was?.focus(); // the panel goes
  };
  find(".class-head button").onclick = out;
  for (const each of [panel, row]) {
    each.onkeydown = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape" || chosen === null) return;
      event.stopPropagation();
      out();
    };
  }

  const buttonTo = (/** @type {any} */ step) => {
    const title = say("{share} of what the next one was made from", { share: step.says });
    const onclick = () => go(step.name, step.channel);
    const words = say("{layer} channel {channel}", { layer: inWords(step.name), channel: step.channel });
    const button = make("button", { type: "button", title, onclick, "aria-label": words });
    button.append(`${inWords(step.name)} ${step.channel}`);
    return button;
  };
  // The channel that counts, with what excites it; and from the class back to the image, as arrows that point
  // forward say.
  const wayOf = (/** @type {any} */ { cause, patches, steps }) => {
    const line = steps.map((/** @type {any} */ step, /** @type {number} */ at) =>
      make("span", {}, buttonTo(step), ...(at + 1 < steps.length ? ["←"] : [])),
    );
    const whole = make("details", {}, make("summary", {}, say("Layer by layer")), ...line);
    if (!cause) return make("li", {}, whole);
    const pictures = patches.map((/** @type {any} */ { title, picture: src }) =>
      make("img", { alt: title, title, src }),
    );
    return make("li", {}, make("b", {}, cause.says), buttonTo(cause), make("div", {}, ...pictures), whole);
  };

  const fails = (/** @type {string} */ words) => {
    find(".error").hidden = !words;
    find(".error").textContent = words;
  };
  const put = (/** @type {any} */ facts) => {
    find("h3").textContent = facts?.title ?? "";
    for (const name of ["because", "score", "says", "limits", "source"])
      find(`.${name}`).textContent = facts?.[name] ?? "";
    find(".ways").replaceChildren(...(facts?.ways ?? []).map(wayOf));
    fails("");
  };

  const buttonOf = (/** @type {{name: string, number: number, says?: string}} */ { name, number, says = "" }) =>
    make(
      "button",
      {
        type: "button",
        "data-class": String(number),
        "aria-pressed": String(number === chosen),
        title: say("What does {name} need?", { name }),
        onclick: () => choose(number === chosen ? null : number),
      },
      `${name} ${says}`.trim(),
    );
  const isListed = (/** @type {number} */ number) => row.querySelector(`[data-class="${number}"]`) !== null;

  return {
    /** The classes that can be asked about. @param {{name: string, number: number, says: string}[]} classes */
    of: (classes) => {
      row.hidden = !classes.length;
      row.replaceChildren(make("span", {}, say("Why?")), ...classes.map(buttonOf));
    },
    /**
     * Light what a class needs, or put it out.
     * @param {number | null} number
     * @param {string} subject
     */
    show: (number, subject) => {
      if (number === chosen && subject === about) return;
      if (subject !== about) asked.forget();
      [chosen, about] = [number, subject];
      mark();
      put(null);
      panel.hidden = number === null;
      lights(null);
      if (number === null) return asked.leave("why");
      asked.ask({ name: "why", class: number }, subject, {
        answered: async ({ facts, data }) => {
          const sprite = data.length ? await decoded(picture.of(data)) : null;
          if (number !== chosen || subject !== about) return;
          put(facts);
          if (!isListed(number)) row.append(buttonOf({ name: facts.name, number })); // of a link
          lights(litBy(facts, sprite));
        },
        failed: fails,
      });
    },
    chosen: () => chosen,
    end: () => {
      asked.end();
      picture.end();
    },
  };
};
