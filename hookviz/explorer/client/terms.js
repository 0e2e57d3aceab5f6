// What a word means, beside it while the pointer or the focus is on it; Escape takes it away. Words
// are in shadow roots too, which only the path of an event leads into.

/**
 * Explain the words of a document, and of whatever is in it, from now on; returns what ends it.
 * @param {Node} place what the explanation is put into, whose style is `terms.css`
 */
export const explainTerms = (place) => {
  const tip = document.createElement("div");
  tip.className = "hv-tip";
  tip.setAttribute("aria-hidden", "true"); // the word has it as its description
  tip.hidden = true;
  place.appendChild(tip);
  const wordOf = (/** @type {Event} */ event) => {
    const target = /** @type {Element} */ (event.composedPath()[0]);
    return target === tip ? tip : (target.closest?.(".hv-term") ?? null);
  };
  const show = (/** @type {Event} */ event) => {
    const word = wordOf(event);
    if (word === tip) return; // it can be pointed at, to be read with a magnifier
    tip.hidden = !word;
    if (!word) return;
    tip.textContent = word.getAttribute("aria-description");
    const [box, own] = [word.getBoundingClientRect(), tip.getBoundingClientRect()];
    const room = window.innerWidth - own.width - 8;
    tip.style.left = `${Math.max(8, Math.min(room, box.left))}px`;
    const below = box.bottom + 4;
    tip.style.top = `${below + own.height < window.innerHeight ? below : box.top - own.height - 4}px`;
  };
  const hide = () => {
    tip.hidden = true;
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || tip.hidden) return;
    event.preventDefault(); // it takes the tip away alone, and the channel stays
    hide();
  };
  const ends = new AbortController();
  const { signal } = ends;
  document.addEventListener("pointerover", show, { signal });
  document.addEventListener("focusin", show, { signal });
  document.addEventListener("pointerdown", hide, { signal }); // it may open a menu
  document.addEventListener("focusout", hide, { signal });
  document.addEventListener("scroll", hide, { capture: true, signal });
  document.addEventListener("keydown", pressed, { capture: true, signal });
  return () => {
    ends.abort();
    tip.remove();
  };
};
