// What is around the explorer in a page of its own: its view in the address, and switches for language and theme.

import { alone, speak, tool } from "../../explorer/client/alone.js";
import { viewOf } from "../../explorer/client/link.js";
import { make, say } from "../../explorer/client/shared.js";
import { saidIn, saying } from "./in_address.js";
import { nearest } from "./nearest.js";
import { subjectOf } from "./page_colours.js";

const THEMES = /** @type {const} */ (["light", "dark"]);

/** Say that the page can't be shown, and why in the console. @param {unknown} error */
export const failed = (error) => {
  document.getElementById("failed")?.removeAttribute("hidden");
  throw error;
};

/**
 * @typedef {object} Inside
 * @property {import("../../explorer/client/explorer.js").Surroundings["ask"]} ask
 * @property {() => string} [image] which image questions are about, where there are several
 * @property {() => void} [spoken] another language is spoken from now on
 * @property {(said: URLSearchParams) => void} [went] the address is another one, as by Back
 */

/**
 * Show the explorer of a page.
 * @param {any} page its facts
 * @param {Inside} inside
 */
export const around = (page, { ask, image = () => "", spoken = () => {}, went = () => {} }) => {
  const place = /** @type {HTMLElement} */ (document.getElementById("explorer"));
  const codes = page.languages.map(({ language }) => language);
  const said = () => saidIn(location);
  const isEmbedded = said().get("embed") === "1";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let language = nearest([said().get("lang") ?? "", ...navigator.languages], codes);
  let picked = /** @type {string | null} */ (said().get("theme")); // by a person, or the link
  let isWritable = true;

  const theme = () => {
    const at = THEMES.indexOf(/** @type {any} */ (picked));
    return at >= 0 ? at : Number(dark.matches);
  };
  const subject = () => subjectOf(language, theme(), image());
  const view = () => viewOf(String(said()), page.fields);
  const write = (/** @type {Record<string, string | null>} */ words, how = "replace") => {
    const put = how === "push" ? "pushState" : "replaceState";
    try {
      history[put](null, "", saying(location, words, isWritable));
    } catch {
      if (!isWritable) return; // as in a frame that has no address of its own
      isWritable = false;
      write(words, how);
    }
  };

  /** @type {ReturnType<typeof alone> | null} */
  let shown = null;
  const foot = make("footer", { hidden: isEmbedded });
  const dress = () => {
    document.documentElement.dataset.theme = THEMES[theme()];
    toTheme.textContent = theme() ? say("Light") : say("Dark");
  };
  const toTheme = tool("", () => {
    picked = THEMES[1 - theme()];
    rethemed();
  });
  const rethemed = () => {
    dress();
    shown?.theme(THEMES[theme()]);
    shown?.show(view(), subject());
  };
  const toLanguage = make("select", { className: "tool" });
  toLanguage.append(...page.languages.map(({ name }, at) => new Option(name, String(at))));
  toLanguage.onchange = () => {
    language = Number(toLanguage.value);
    write({ lang: codes[language] });
    draw();
    toLanguage.focus();
  };

  const draw = () => {
    shown?.end();
    speak(page.languages[language]);
    document.documentElement.lang = codes[language];
    toLanguage.value = String(language);
    toLanguage.setAttribute("aria-label", say("Language"));
    foot.textContent = page.missing[".language"]?.[language] ?? page.missing;
    spoken();
    dress();
    shown = alone(place, {
      fields: page.fields,
      view: view(),
      subject: subject(),
      ask,
      changed: (next, how, words) => write(Object.fromEntries(words.map((word) => [word, next[word] ?? null])), how),
      sheets: page.sheets,
      theme: THEMES[theme()],
      isBare: isEmbedded,
      tools: [...(codes.length > 1 ? [toLanguage] : []), toTheme],
    });
  };
  if (!Object.keys(view()).length) write(page.view);
  document.body.append(foot);
  draw();
  dark.addEventListener("change", () => picked === null && rethemed());
  window.addEventListener("popstate", () => {
    went(said());
    shown?.show(view());
  });
  return {
    write,
    /** Ask anew, as about another image. */
    show: () => shown?.show(view(), subject()),
  };
};
