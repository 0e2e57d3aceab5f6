// The steps of a lesson as dots: which of them is shown, which were seen, and the way to each. It
// moves the focus to the heading of a step that was gone to, and goes on with the arrow keys.

import { frame, make, unpacked } from "../../explorer/client/shared.js";
import { keepProgress, progressOf } from "./progress.js";

const FRAME = `<nav class="steps"><ol></ol></nav>`;
// The step shown last, and the one whose heading is to have the focus: Streamlit may put the dots into
// the page anew on the way from one to the next.
let [shown, due] = ["", ""];
const listening = new WeakMap(); // what ends the listening of the time before

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const nav = find("nav");
  nav.setAttribute("aria-label", data.label);

  const progress = progressOf(data.slug);
  progress.seen.add(data.step);
  data.answered.forEach((line) => progress.answered.add(line));
  keepProgress(data.slug, progress);
  // A step is done once it was seen and all its questions were answered rightly.
  const done = (step) => progress.seen.has(step.number) && step.questions.every((line) => progress.answered.has(line));
  find("ol").replaceChildren(
    ...data.steps.map((step) => {
      const isDone = done(step);
      const dot = make("button", {
        type: "button",
        title: step.title,
        "aria-label": isDone ? step.saysDone : step.says,
        className: isDone ? "done" : "",
        disabled: step.number > data.furthest && !progress.seen.has(step.number),
        onclick: () => setTriggerValue("picked", step.number),
        ...(step.number === data.step ? { "aria-current": "step" } : {}),
      });
      dot.textContent = isDone ? "✓" : step.number;
      return make("li", {}, dot);
    }),
  );

  const name = `${data.slug} ${data.step}`;
  if (shown && shown !== name) due = name;
  shown = name;
  if (due === name) focusHeading(nav, name);

  const keys = { ArrowRight: ".st-key-hv-next", ArrowLeft: ".st-key-hv-previous" };
  const go = (event) => {
    const button = keys[event.key];
    if (!button || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const at = event.target;
    if (at !== document.body && !at.closest?.(".hv-step-title")) return;
    event.preventDefault();
    clickWhenThere(`${button} button`);
  };
  listening.get(nav)?.();
  document.addEventListener("keydown", go);
  // Code that can be scrolled is reached by Tab, so that keys scroll it.
  const reach = () =>
    document
      .querySelectorAll(".st-key-hv-lesson pre:not([tabindex])")
      .forEach((code) => code.setAttribute("tabindex", "0"));
  const observer = new MutationObserver(reach);
  observer.observe(document.querySelector("[data-testid='stMain']") ?? document.body, {
    childList: true,
    subtree: true,
  });
  reach();
  const stop = () => {
    document.removeEventListener("keydown", go);
    observer.disconnect();
  };
  listening.set(nav, stop);
  return stop;
}

// Streamlit may still be fetching what draws a button when the steps are there.
const clickWhenThere = (selector, tries = 60) => {
  const button = document.querySelector(selector);
  if (button)
    button.click(); // which does nothing where it is disabled
  else if (tries) setTimeout(() => clickWhenThere(selector, tries - 1), 50);
};

// The heading comes when what its step says is computed. Who has gone elsewhere meanwhile stays there.
const focusHeading = (nav, name, from = document.activeElement) => {
  /** @type {HTMLElement | null} */
  const heading = document.querySelector(".hv-step-title");
  if (due !== name || !nav.isConnected) return;
  const isElsewhere = ![from, document.body, null].includes(document.activeElement);
  if (isElsewhere) due = "";
  else if (heading && heading.dataset.step === name) {
    due = "";
    document.querySelector("[data-testid='stMain']")?.scrollTo(0, 0);
    heading.focus({ preventScroll: true });
  } else setTimeout(() => focusHeading(nav, name, from), 50);
};
