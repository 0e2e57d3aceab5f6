// One of a few, side by side: a group of radio buttons. Arrow keys go to the next one and choose it.

import { make } from "./shared.js";

/**
 * @typedef {{value: string, says: string}} Option
 * @param {HTMLElement} group
 * @param {(value: string) => void} choose
 */
export const segmented = (group, choose) => {
  group.setAttribute("role", "radiogroup");
  group.classList.add("segmented");
  /** @type {Option[]} */
  let options = [];
  let told = "";
  const buttons = () => /** @type {HTMLButtonElement[]} */ ([...group.children]);

  const mark = (/** @type {string} */ chosen) => {
    for (const [at, button] of buttons().entries()) {
      const is = options[at].value === chosen;
      button.setAttribute("aria-checked", String(is));
      button.tabIndex = is ? 0 : -1;
    }
    if (!buttons().some((button) => button.tabIndex === 0)) buttons()[0]?.setAttribute("tabindex", "0");
  };
  const pick = (/** @type {string} */ value) => {
    mark(value);
    choose(value);
  };
  const press = (/** @type {KeyboardEvent} */ event, /** @type {number} */ at) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (at + step + options.length) % options.length;
    buttons()[next].focus();
    pick(options[next].value);
  };

  return {
    /**
     * Show the options, one of them chosen; none hides the group.
     * @param {{label: string, hint?: string, options: Option[], chosen: string, isFixed?: boolean} | null} facts
     */
    show: (facts) => {
      group.hidden = !facts;
      if (!facts) return;
      options = facts.options;
      group.setAttribute("aria-label", facts.label);
      group.title = facts.hint ?? "";
      const now = JSON.stringify(options);
      if (told !== now) {
        told = now;
        group.replaceChildren(
          ...options.map(({ value, says }, at) => {
            const onkeydown = (/** @type {KeyboardEvent} */ event) => press(event, at);
            return make("button", { type: "button", role: "radio", onclick: () => pick(value), onkeydown }, says);
          }),
        );
      }
      for (const button of buttons()) button.disabled = facts.isFixed ?? false;
      mark(facts.chosen);
    },
  };
};
