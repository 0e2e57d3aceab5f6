// The explorer where no page is around it, such as in a notebook or a file: above it image, network and
// classes, beside it the tree of layers. It brings its own colours, light or dark.

import { newest } from "./asking.js";
import { mount } from "./explorer.js";
import { urls } from "./pictures.js";
import { frame, make, say } from "./shared.js";
import { explainTerms } from "./terms.js";

const FRAME = `
  <div class="alone">
    <header class="seen-head">
      <img alt="" hidden>
      <p class="titles"><b></b><span></span></p>
      <div class="classes" role="list" aria-label="The five likeliest classes"></div>
      <p class="note" hidden></p>
      <div class="tools"></div>
    </header>
    <div class="body">
      <details class="tree-side"><summary>Layers</summary><div class="tree-host"></div></details>
      <div class="explorer-host"></div>
    </div>
  </div>`;
const WIDE = 900; // pixels across from which the tree of layers stands beside the tiles unasked

/**
 * Where the explorer stands alone.
 * @typedef {object} Home
 * @property {import("./link.js").Field[]} fields all that can be chosen
 * @property {Record<string, string>} view what is chosen
 * @property {string} subject tells what questions are about from what they were about before
 * @property {import("./explorer.js").Surroundings["ask"]} ask
 * @property {import("./explorer.js").Surroundings["changed"]} changed
 * @property {(facts: Facts) => void} [opened] something that only a page can do
 * @property {{alone: string, tree: string}} sheets the style sheets called so
 * @property {"light" | "dark"} [theme]
 * @property {boolean} [hasKeysInside] keys are for it alone while the focus is in it, as where there are several
 * @property {boolean} [isBare] tiles and what is picked of them, and nothing around
 * @property {(Node | string)[]} [tools] buttons of whoever is around, at the end of the first row
 */

/**
 * Speak a language from now on, in the whole window.
 * @param {{point: string, words: Record<string, string>}} language
 */
export const speak = ({ point, words }) => {
  window.hookvizPoint = point;
  window.hookvizWords = words;
};

// A shadow root with a style sheet, which no policy of the document's forbids.
const styled = (/** @type {HTMLElement} */ element, /** @type {string} */ text) => {
  const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  root.adoptedStyleSheets = [sheet];
  root.replaceChildren();
  return root;
};

const classRow = (/** @type {any} */ { name, share, says }) => {
  const bar = make("span", { className: "bar" });
  bar.style.width = `${Number.isFinite(share) ? 100 * share : 0}%`;
  return make(
    "div",
    { className: "class", role: "listitem", title: name },
    make("span", { className: "label" }, name),
    make("span", { className: "track" }, bar),
    make("span", { className: "share" }, says),
  );
};

/**
 * Put the explorer into an element, below a shadow root of its own.
 * @param {HTMLElement} element
 * @param {Home} home
 */
export const alone = (element, home) => {
  const root = styled(element, home.sheets.alone);
  const find = frame(root, FRAME);
  const [whole, image, classes, side] = [".alone", "img", ".classes", ".tree-side"].map(find);
  const picture = urls("image/png");
  const dressed = (/** @type {"light" | "dark"} */ theme) => {
    whole.dataset.theme = theme;
  };
  dressed(home.theme ?? "light");
  whole.classList.toggle("bare", Boolean(home.isBare));
  whole.classList.toggle("no-page", !home.opened);
  if (home.hasKeysInside) whole.dataset.keys = "";
  find(".tools").append(...(home.tools ?? []));
  side.open = element.clientWidth >= WIDE;

  let { view, subject } = home;
  const questions = newest((question, { signal, on }) =>
    home.ask(question, { signal, view, subject, on: on ?? (() => {}) }),
  );
  const note = (/** @type {string} */ words) => {
    find(".note").hidden = !words;
    find(".note").textContent = words;
  };
  const head = () => {
    if (home.isBare) return;
    questions.ask({ name: "head" }, subject, {
      answered: ({ facts, data }) => {
        image.hidden = !data.length;
        image.alt = facts.alt;
        if (data.length) image.src = picture.of(data);
        find(".titles b").textContent = facts.image;
        find(".titles span").textContent = facts.model;
        classes.replaceChildren(...facts.classes.map(classRow));
        note(facts.note);
      },
      failed: note,
    });
  };

  const explorer = mount(find(".explorer-host"), {
    fields: home.fields,
    view,
    subject,
    ask: home.ask,
    opened: home.opened ?? (() => {}),
    treeElement: home.isBare ? null : styled(find(".tree-host"), home.sheets.tree), // whose rules are for it alone
    changed: (next, how, words) => {
      view = next;
      home.changed(next, how, words);
    },
  });
  const silence = explainTerms(root);
  head();
  return {
    /**
     * Show another view, or another subject.
     * @param {Record<string, string>} next
     * @param {string} [other]
     */
    show: (next, other = subject) => {
      if (other !== subject) questions.forget();
      [view, subject] = [next, other];
      explorer.show(next, other);
      head();
    },
    theme: dressed,
    end: () => {
      explorer.end();
      questions.end();
      silence();
      picture.end();
      root.replaceChildren();
    },
  };
};

/** What a button of the first row says and does. @param {string} words @param {() => void} act */
export const tool = (words, act) => make("button", { type: "button", onclick: act, className: "tool" }, say(words));
