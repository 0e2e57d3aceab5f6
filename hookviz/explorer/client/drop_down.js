// A button that opens a menu below it. Escape closes it, and a click elsewhere.

import { keysOf } from "./place.js";

/**
 * @param {HTMLElement} root holds the button `.opens` and the `.menu`
 * @param {() => void} [turned] told when it is opened or closed
 */
export const dropDown = (root, turned = () => {}) => {
  const opens = /** @type {HTMLElement} */ (root.querySelector(".opens"));
  const menu = /** @type {HTMLElement} */ (root.querySelector(".menu"));
  const open = (/** @type {boolean} */ isOpen) => {
    menu.hidden = !isOpen;
    opens.setAttribute("aria-expanded", String(isOpen));
    turned();
  };
  opens.onclick = () => open(Boolean(menu.hidden));
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || menu.hidden) return;
    event.preventDefault(); // it closes the menu alone
    open(false);
    opens.focus();
  };
  const keys = keysOf(root);
  keys.addEventListener("keydown", pressed);
  const elsewhere = (/** @type {Event} */ event) => menu.hidden || event.composedPath().includes(root) || open(false);
  document.addEventListener("pointerdown", elsewhere);
  return {
    close: () => open(false),
    end: () => {
      document.removeEventListener("pointerdown", elsewhere);
      keys.removeEventListener("keydown", pressed);
    },
  };
};
