// What the parts of the explorer and the components of the page use: words, numbers, colours, frames.

/**
 * What paints on a canvas in two dimensions, which every browser has.
 * @param {HTMLCanvasElement} canvas
 * @param {CanvasRenderingContext2DSettings} [options]
 */
export const penOf = (canvas, options) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", options));

/**
 * A sentence in the page's language, with its facts in place of the names in braces. The words come
 * from `window.hookvizWords`, which the head of the page sets. A count as `{count:,}` has its
 * thousands apart.
 * @param {string} text
 * @param {Record<string, unknown>} [facts]
 * @returns {string}
 */
export const say = (text, facts = {}) =>
  (window.hookvizWords?.[text] ?? text).replace(/\{(\w+)(:,)?\}/g, (whole, name, isLarge) => {
    const fact = String(facts[name] ?? whole);
    return isLarge && name in facts ? fact.replace(/\B(?=(\d{3})+$)/g, ",") : fact;
  });

// What a component's frame says by itself, in the page's language.
const SPOKEN = ["aria-label", "title", "placeholder", "alt"];
/** @param {Element} element */
const inLanguage = (element) => {
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = /** @type {Text} */ (texts.currentNode);
    const [before, words, after] = node.data.split(/^(\s*)(.*?)(\s*)$/s).slice(1);
    if (words) node.data = before + say(words) + after;
  }
  for (const each of [element, ...element.querySelectorAll("*")]) {
    for (const name of SPOKEN) {
      const spoken = each.getAttribute(name);
      if (spoken) each.setAttribute(name, say(spoken));
    }
  }
};

/**
 * What the server packed: the length of a text in JSON, that text, and the bytes of a file if there is one.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {[Facts, Uint8Array<ArrayBuffer>]}
 */
export const factsAndFile = (bytes) => {
  const end = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  return [JSON.parse(new TextDecoder().decode(bytes.subarray(4, end))), bytes.subarray(end)];
};

/**
 * What the server packed for a component; its file is a picture.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {Facts}
 */
export const unpacked = (bytes) => {
  const [facts, picture] = factsAndFile(bytes);
  return { picture, ...facts };
};

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const timesTenTo = (/** @type {number} */ power) =>
  `×10${[...String(power)].map((sign) => (sign === "-" ? "⁻" : SUPERSCRIPTS[Number(sign)])).join("")}`;

/** Three digits and the power of ten; what lies in the middle of two goes to the even one, as in Python. */
const rounded = (/** @type {number} */ size) => {
  const exact = size.toExponential(60);
  const isEven = /^\d\.\d[02468]50*e/.test(exact);
  return isEven ? [exact.slice(0, 4), exact.split("e")[1]] : size.toExponential(2).split("e");
};

/**
 * A number in three digits, as Python's `wording.number` writes it.
 * @param {number} value
 * @param {string} [point]
 */
export const written = (value, point = window.hookvizPoint ?? ".") => {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const [mantissa, exponent] = rounded(Math.abs(value));
  const power = Number(exponent);
  let text = "";
  if (power > -4 && power < 6) {
    const [whole, rest] = Number(`${mantissa}e${power}`)
      .toFixed(Math.max(0, 2 - power))
      .split(".");
    const apart = whole.replace(/\B(?=(\d{3})+$)/g, point === "," ? "." : ",");
    text = rest ? apart + point + rest : apart;
  } else {
    text = `${mantissa.replace(".", point)}${timesTenTo(power)}`;
  }
  return value < 0 ? `−${text}` : text;
};

/**
 * A number that was written by JavaScript with the page's decimal point, a real minus sign and a power of ten.
 * The head says which: a browser knows fewer languages than the server.
 * @param {string} text
 */
export const inSigns = (text) =>
  text
    .replace(/e([+-]\d+)$/, (_, power) => timesTenTo(Number(power)))
    .replace("-", "−")
    .replace(".", window.hookvizPoint ?? ".");

/**
 * A number as people read it: three digits, and none where there is no number.
 * @param {number | null} value
 */
export const number = (value) => (value === null || Number.isNaN(value) ? say("none") : written(value));

/**
 * float32 numbers that came as base64, which keeps them exact and short.
 * @param {string} text
 */
export const floats = (text) => new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);

/**
 * The colours of signed values by the page's variables: blue below zero, red above, and `most` is
 * the size at either end. `name` is that of a diverging colormap.
 * @param {Element} element
 * @param {string} name
 * @returns {(value: number | null, most: number) => string}
 */
export const signedColours = (element, name) => {
  const style = getComputedStyle(element);
  const of = (/** @type {string} */ variable) => style.getPropertyValue(`--hv-${variable}`).trim();
  const ramp = of(name).split(" ");
  const [nan, infinite] = [of("nan"), of("inf")];
  const middle = (ramp.length - 1) / 2;
  return (value, most) => {
    if (value === null || Number.isNaN(value)) return nan;
    if (!Number.isFinite(value)) return infinite;
    const share = most ? Math.max(-1, Math.min(1, value / most)) : 0;
    return ramp[Math.round(middle + share * middle)];
  };
};

/**
 * Text of [part, sentence]: a part with a sentence is a word that it explains; terms.js shows it.
 * @param {Element} element
 * @param {[string, string][]} parts
 */
export const explain = (element, parts) =>
  element.replaceChildren(
    ...parts.map(([text, sentence]) => {
      if (!sentence) return text;
      const word = document.createElement("span");
      word.className = "hv-term";
      word.tabIndex = 0;
      word.setAttribute("role", "term");
      word.setAttribute("aria-description", sentence);
      word.textContent = text;
      return word;
    }),
  );

/**
 * An element with what it has, properties or attributes by their names, and what is in it.
 * @param {string} kind
 * @param {Record<string, any>} [has]
 * @param {(Node | string)[]} inner
 * @returns {any}
 */
export const make = (kind, has = {}, ...inner) => {
  const element = /** @type {any} */ (document.createElement(kind));
  for (const [name, value] of Object.entries(has)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...inner);
  return element;
};

/**
 * The component's own elements, built on its first run and kept over the later ones, as long as the
 * page speaks one language. What is found in them is `any`: the frame's own HTML says what it is.
 * @param {ParentNode & Node} parent
 * @param {string} html
 * @returns {(selector: string) => any}
 */
export const frame = (parent, html) => {
  const built = /** @type {HTMLElement | null} */ (parent.querySelector("[data-built]"));
  const language = document.documentElement.lang;
  if (built?.dataset.built !== language) {
    built?.remove();
    const holder = document.createElement("div");
    holder.innerHTML = html.trim();
    const root = /** @type {HTMLElement} */ (holder.firstElementChild);
    root.dataset.built = language;
    inLanguage(root);
    parent.appendChild(root); // the component's style stands there already
  }
  return (selector) => parent.querySelector(selector);
};

/**
 * A colour bar: its picture, and ticks of [fraction from the left, text].
 * @param {(selector: string) => any} find
 * @param {string} bar
 * @param {[number, string][]} ticks
 */
export const colourBar = (find, bar, ticks) => {
  const line = find(".ticks");
  find(".scale img").src = bar;
  line.replaceChildren(
    ...ticks.map(([fraction, text]) => {
      const tick = document.createElement("span");
      tick.textContent = text;
      tick.style.left = `${fraction * 100}%`;
      return tick;
    }),
  );
  if (!thinned.has(line)) {
    thinned.add(line);
    new ResizeObserver(() => thin(line)).observe(line);
  }
  thin(line);
};

const thinned = new WeakSet(); // lines of ticks that are watched

/**
 * Ticks that would run into each other are left out; the ends stay, and then zero.
 * @param {HTMLElement} line
 */
const thin = (line) => {
  const marks = /** @type {HTMLElement[]} */ ([...line.children]);
  const rank = (/** @type {HTMLElement} */ mark) =>
    mark === marks[0] || mark === marks.at(-1) ? 0 : mark.textContent === "0" ? 1 : 2;
  /** @type {DOMRect[]} */
  const kept = [];
  for (const mark of [...marks].sort((one, other) => rank(one) - rank(other))) {
    const box = mark.getBoundingClientRect();
    const free = kept.every((other) => box.right + 6 <= other.left || other.right + 6 <= box.left);
    mark.style.visibility = free || rank(mark) === 0 ? "visible" : "hidden";
    if (free || rank(mark) === 0) kept.push(box);
  }
};

/**
 * The size in pixels of type that is `usual` pixels large, before a class: 20 at least.
 * @param {Element} element
 * @param {number} usual
 */
export const typeSize = (element, usual) =>
  Math.max(usual, parseFloat(getComputedStyle(element).getPropertyValue("--hv-least-type")) || 0);
