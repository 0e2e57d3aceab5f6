// The explorer in a notebook: it asks the kernel over the widget's comm, and its view is the widget's.

import { alone, speak } from "../explorer/client/alone.js";
import { themeOf } from "./theme.js";
import { kernelWire } from "./wire.js";

// Keys are the explorer's own while the focus is in it: a notebook has many of one letter.
const KEYS = ["keydown", "keyup", "keypress"];
const kept = (/** @type {Event} */ event) => event.stopPropagation();

/**
 * What anywidget hands over; `model` is the widget's other half.
 * @param {{model: any, el: HTMLElement}} widget
 */
export default function ({ model, el }) {
  const home = model.get("_home");
  speak(home.language);
  // Jupyter takes no key from what is marked so; and the explorer measures it as its window.
  const place = document.createElement("div");
  place.className = "hookviz-explorer";
  place.style.height = `${home.height}px`;
  place.dataset.lmSuppressShortcuts = "true";
  place.dataset.window = "";
  const inside = document.createElement("div");
  const notice = document.createElement("p");
  notice.className = "hookviz-notice";
  notice.setAttribute("role", "status");
  notice.hidden = true;
  place.append(notice, inside);
  el.append(place);
  for (const name of KEYS) place.addEventListener(name, kept);

  let theme = themeOf(document);
  const view = () => model.get("view");
  // In other colours pictures are others, too.
  const subject = () => `${theme} ${model.get("_subject")}`;
  const line = kernelWire(model, (words) => {
    notice.hidden = !words;
    if (notice.textContent !== words) notice.textContent = words; // else it would be read out again
  });
  const explorer = alone(inside, {
    fields: home.fields,
    sheets: home.sheets,
    view: view(),
    subject: subject(),
    theme,
    hasKeysInside: true,
    ask: line.ask,
    changed: (next) => {
      model.set("view", next);
      model.save_changes();
    },
  });
  const show = () => explorer.show(view(), subject());
  model.on("change:view", show);
  model.on("change:_subject", show);

  const dress = () => {
    const now = themeOf(document);
    if (now === theme) return;
    theme = now;
    explorer.theme(theme);
    show();
  };
  const watched = new MutationObserver(dress);
  for (const element of [document.documentElement, document.body]) watched.observe(element, { attributes: true });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", dress);

  return () => {
    model.off("change:view", show);
    model.off("change:_subject", show);
    watched.disconnect();
    scheme.removeEventListener("change", dress);
    explorer.end();
    line.end();
    place.remove();
  };
}
