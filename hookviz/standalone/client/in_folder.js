// A page of a folder of pages: its language and its theme, which its links take along. Without it the page is
// there in English, in the theme of the browser.

import { saidIn } from "./in_address.js";
import { nearest } from "./nearest.js";

const THEMES = /** @type {const} */ (["light", "dark"]);

/**
 * A sentence with its facts.
 * @param {string} text
 * @param {Record<string, string>} facts
 */
export const filled = (text, facts) => text.replace(/\{(\w+)\}/g, (all, name) => facts[name] ?? all);

/**
 * Where a link leads, with the language and the theme that were picked.
 * @param {string} href of a page beside this one, which may have a # in it
 * @param {URLSearchParams} picked
 */
export const along = (href, picked) => {
  const [path, hash] = href.split("#");
  const query = String(picked);
  const asked = path && query ? `?${query}` : "";
  return path.split("?")[0] + asked + (hash === undefined ? "" : `#${hash}`);
};

export const begin = () => {
  const known = JSON.parse(document.getElementById("languages")?.textContent ?? "[]");
  const codes = known.map((/** @type {{language: string}} */ each) => each.language);
  const said = saidIn({ search: location.search, hash: "" });
  const picked = new URLSearchParams();
  for (const word of ["lang", "theme"]) if (said.get(word)) picked.set(word, String(said.get(word)));
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  let language = nearest([said.get("lang") ?? "", ...navigator.languages], codes);

  const say = (/** @type {string} */ text, facts = {}) => filled(known[language].words[text] ?? text, facts);
  const theme = () => {
    const at = THEMES.indexOf(/** @type {any} */ (picked.get("theme")));
    return at >= 0 ? at : Number(dark.matches);
  };
  const dress = () => {
    root.dataset.theme = THEMES[theme()];
    root.lang = codes[language];
    for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-say]"))) {
      const text = say(String(each.dataset.say), JSON.parse(each.dataset.facts ?? "{}"));
      if (each.dataset.to) each.setAttribute(each.dataset.to, text);
      else each.textContent = text;
      if (each instanceof HTMLImageElement) each.title = text;
    }
    for (const each of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("a[href]")))
      each.setAttribute("href", along(String(each.getAttribute("href")), picked));
    toTheme.textContent = theme() ? say("Light") : say("Dark");
    toLanguage.value = String(language);
    toLanguage.setAttribute("aria-label", say("Language"));
  };
  const pick = (/** @type {string} */ word, /** @type {string} */ value) => {
    picked.set(word, value);
    try {
      history.replaceState(null, "", along(`${location.pathname}${location.hash}`, picked));
    } catch {
      // a browser that lets no file write its address: the links take it along all the same
    }
    dress();
  };

  const toTheme = document.createElement("button");
  toTheme.onclick = () => pick("theme", THEMES[1 - theme()]);
  const toLanguage = document.createElement("select");
  toLanguage.append(
    ...known.map((/** @type {any} */ each, /** @type {number} */ at) => new Option(each.name, String(at))),
  );
  toLanguage.onchange = () => {
    language = Number(toLanguage.value);
    pick("lang", codes[language]);
  };
  document.querySelector(".tools")?.append(...(codes.length > 1 ? [toLanguage] : []), toTheme);
  dress();
  dark.addEventListener("change", dress);
};
