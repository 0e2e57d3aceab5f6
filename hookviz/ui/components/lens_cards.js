// The lenses as cards, by the questions that they answer. What each answers on this image is asked for
// when its card is seen, one after the other, so that nobody's clicks wait for it.

import { urls } from "../../explorer/client/pictures.js";
import { frame, say, unpacked } from "../../explorer/client/shared.js";
import { isBusy, wire } from "./explorer_wire.js";
import { kept } from "./page.js";

const FRAME = `
  <section class="lenses">
    <label class="find"><span class="unseen">Find a question</span>
      <input type="search" placeholder="Find a question: class, pixels, weights …"></label>
    <p class="none" role="status"></p>
    <div class="groups"></div>
  </section>`;

const made = (/** @type {string} */ tag, /** @type {string} */ name, words = "") => {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = words;
  return element;
};

const go = (/** @type {string} */ slug) => {
  const link = window.hookvizLink();
  link.set("lens", slug);
  window.hookvizGo(link.toString(), "push");
};

const cardOf = (/** @type {Facts} */ lens) => {
  const item = document.createElement("li");
  const card = /** @type {HTMLButtonElement} */ (made("button", "card"));
  card.type = "button";
  card.dataset.slug = lens.slug;
  card.title = lens.sentence;
  const [picture, words] = [made("span", "picture"), made("span", "words")];
  words.append(made("strong", "", lens.question), made("span", "title", lens.title));
  card.append(picture, words);
  card.onclick = () => go(lens.slug);
  item.append(card);
  item.dataset.words = [lens.question, lens.title, lens.sentence, lens.slug].join(" ").toLowerCase();
  return item;
};

const tableOf = (/** @type {string[][]} */ rows) => {
  const table = document.createElement("table");
  for (const row of rows) table.insertRow().append(...row.map((text) => made("td", "", text)));
  return table;
};

/**
 * @param {Component} component
 * @param {(name: string, value: unknown) => void} tell
 */
const begin = ({ parentElement }, tell) => {
  const find = frame(parentElement, FRAME);
  const [field, none, groups] = ["input", ".none", ".groups"].map(find);
  /** @type {Facts} */
  let data = {};
  let over = new AbortController(); // of what is asked about a subject
  const { ask } = wire(() => /** @type {any} */ (data), {
    run: () => tell("opened", { anew: true }),
    isBusy,
    said: () => window.hookvizSaid(),
  });
  /** @type {HTMLButtonElement[]} */
  let waiting = []; // cards that are seen and have no picture
  let asks = false;
  /** @type {{end: () => void}[]} */
  let pictures = [];

  const show = (/** @type {HTMLButtonElement} */ card, /** @type {any} */ { facts, data: bytes }) => {
    const place = /** @type {HTMLElement} */ (card.querySelector(".picture"));
    if (bytes.length) {
      const url = urls(bytes[0] === 0xff ? "image/jpeg" : "image/png");
      pictures.push(url);
      const image = new Image();
      image.alt = "";
      image.src = url.of(bytes);
      place.replaceChildren(image);
    } else if (facts.rows.length) place.replaceChildren(tableOf(facts.rows));
    if (bytes.length && facts.ofSample) place.append(made("small", "of-sample", facts.ofSample));
    card.dataset.shown = "yes";
  };
  const next = async () => {
    const card = waiting.shift();
    if (asks || !card) return;
    asks = true;
    const { signal } = over;
    try {
      const question = { name: "lens", lens: card.dataset.slug };
      show(card, await ask(question, { signal, view: {}, subject: data.subject, on: () => {} }));
    } catch {
      /* the card says what the lens is, with no picture */
    }
    asks = false;
    if (waiting.length) next();
  };
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      waiting.push(/** @type {HTMLButtonElement} */ (target));
    }
    next();
  });

  const cards = () => /** @type {HTMLButtonElement[]} */ ([...groups.querySelectorAll("li:not([hidden]) .card")]);
  field.oninput = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const item of groups.querySelectorAll("li")) {
      item.hidden = !words.every((word) => item.dataset.words.includes(word));
    }
    for (const group of groups.children) group.hidden = !group.querySelector("li:not([hidden])");
    none.textContent = cards().length ? "" : say("No question has these words.");
  };
  groups.parentElement.onkeydown = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const [all, target] = [cards(), /** @type {any} */ (event.target)];
    if (event.key === "Enter" && target === field && field.value && all.length) all[0].click();
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const at = all.indexOf(target) + (event.key === "ArrowDown" ? 1 : -1);
      (at < 0 ? field : all[at])?.focus();
    } else return;
    event.preventDefault();
  };

  const drop = () => {
    over.abort();
    over = new AbortController();
    waiting = [];
    seen.disconnect();
    for (const url of pictures) url.end();
    pictures = [];
  };
  return {
    show: (/** @type {Facts} */ facts) => {
      const isSame = facts.subject === data.subject;
      data = facts;
      if (isSame) return;
      drop();
      groups.replaceChildren(
        ...facts.groups.map((group) => {
          const section = made("section", "group");
          const list = document.createElement("ul");
          list.append(...group.lenses.map(cardOf));
          section.append(made("h2", "", group.title), list);
          return section;
        }),
      );
      field.oninput();
      for (const card of cards()) seen.observe(card);
      if (matchMedia("(pointer: fine)").matches) field.focus({ preventScroll: true });
    },
    end: () => {
      drop();
      groups.replaceChildren();
      data = {};
    },
  };
};

export default function (component) {
  const held = kept(component, ({ tell }) => begin(component, tell));
  held.show(unpacked(component.data));
  return held.leave;
}
