// A question with an answer to pick: what was picked, whether it is right, and why or why not. One
// can try again as often as one likes.

import { frame, unpacked } from "../../explorer/client/shared.js";
import { answerOf, keepAnswer } from "./progress.js";

const FRAME = `
  <section class="question">
    <div class="words"></div>
    <div class="answers" role="group"></div>
    <div class="reason" role="status"></div>
  </section>`;

const asked = new WeakMap(); // what ends the listening of the time before

// Where several questions are on the page, the last one, which is the one that waits.
const isLast = (host) => [...document.querySelectorAll("[class*='st-key-question-']")].at(-1)?.contains(host) ?? false;

// A to D answer wherever nobody types.
const TYPED = "input:not([type='checkbox'], [type='radio'], [type='range']), textarea, select, [contenteditable]";
const answersByLetter = (host, buttons) => {
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return;
    const button = buttons["abcdefgh".indexOf(event.key.toLowerCase())];
    if (!button || event.composedPath()[0].closest?.(TYPED) || !isLast(host)) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // Streamlit has letters of its own
    button.click();
  };
  document.addEventListener("keydown", pressed, true);
  return () => document.removeEventListener("keydown", pressed, true);
};

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const find = frame(parentElement, FRAME);
  const [words, answers, reason] = [".words", ".answers", ".reason"].map(find);
  // HTML that the server made of Markdown without HTML; it holds nothing of anybody else's.
  words.innerHTML = data.words;
  answers.setAttribute("aria-label", words.textContent);
  const buttons = data.answers.map((answer, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.innerHTML = `<b aria-hidden="true"></b><span>${answer.words}</span>`;
    /** @type {Element} */ (button.firstElementChild).textContent = String.fromCharCode(65 + index);
    button.setAttribute("aria-pressed", String(index === data.picked));
    if (index === data.picked) button.className = answer.right ? "right" : "wrong";
    button.onclick = () => {
      buttons.forEach((each) => each.setAttribute("aria-pressed", each === button));
      keepAnswer(data.question, index);
      setTriggerValue("picked", index);
    };
    return button;
  });
  const focused = [...answers.children].indexOf(
    parentElement.activeElement ?? document.activeElement?.shadowRoot?.activeElement,
  );
  answers.replaceChildren(...buttons);
  if (focused >= 0) buttons[focused]?.focus();

  const picked = data.answers[data.picked];
  reason.className = picked ? (picked.right ? "reason right" : "reason wrong") : "reason";
  reason.innerHTML = picked ? `<strong></strong> ${picked.why}` : "";
  if (picked) reason.firstElementChild.textContent = picked.right ? data.right : data.wrong;
  else reason.textContent = data.how;

  const before = data.picked === null ? answerOf(data.question) : undefined;
  if (before in buttons) setTriggerValue("picked", before); // of an earlier visit

  asked.get(answers)?.();
  const stop = answersByLetter(parentElement.host ?? parentElement, buttons);
  asked.set(answers, stop);
  return stop;
}
