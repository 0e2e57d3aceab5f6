// Where an element stands: what scrolls it, and how much of the window is left below it.

/**
 * The element around it, also out of a shadow root.
 * @param {Node} node
 * @returns {Element | null}
 */
const around = (node) => /** @type {any} */ (node).assignedSlot ?? node.parentElement ?? hostOf(node.getRootNode());

/** @param {Node} root */
const hostOf = (root) => (root instanceof ShadowRoot ? root.host : null);

/**
 * What scrolls an element, and which of that one's own children it stands in: null for the window.
 * @param {Element} element
 * @returns {{scroller: Element | null, inside: Element}}
 */
export const scrolledBy = (element) => {
  let inside = element;
  for (let outer = around(element); outer; outer = around(outer)) {
    if (/auto|scroll/.test(getComputedStyle(outer).overflowY)) return { scroller: outer, inside };
    inside = outer;
  }
  return { scroller: null, inside };
};

/**
 * Pixels from an element's upper edge to the lower one of the window, or to the presenter's bar there,
 * where nothing is scrolled. A scroller with `data-window` is the window of what is in it.
 * @param {Element} element
 */
export const roomBelow = (element) => {
  const { scroller } = scrolledBy(element);
  const scrolled = scroller ? scroller.scrollTop : window.scrollY;
  const bar = Number.parseFloat(getComputedStyle(element).getPropertyValue("--hv-bar")) || 0;
  const end = scroller?.matches("[data-window]") ? scroller.getBoundingClientRect().bottom : window.innerHeight;
  return end - bar - element.getBoundingClientRect().top - scrolled;
};

/**
 * Where the explorer hears keys: in the whole document, or within what is marked `data-keys`, such as one
 * of several in a notebook.
 * @param {Element} element of the explorer
 * @returns {any}
 */
export const keysOf = (element) => element.closest("[data-keys]") ?? document;
