// What a word means, beside it while the pointer or the focus is on it; Escape takes it away. Words
// are in components too, whose shadow roots only the path of an event leads into.
if (!window.hookvizTerms) {
  window.hookvizTerms = true;
  const tip = document.createElement("div");
  tip.className = "hv-tip";
  tip.setAttribute("aria-hidden", "true"); // the word has it as its description
  tip.hidden = true;
  document.body.append(tip);
  const wordOf = (event) => {
    const [target] = event.composedPath();
    return target === tip ? tip : target.closest?.(".hv-term");
  };
  const show = (event) => {
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
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("pointerdown", hide); // it may open a menu
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, true);
  const pressed = (event) => {
    if (event.key !== "Escape" || tip.hidden) return;
    event.preventDefault(); // it takes the tip away alone, and the channel stays
    hide();
  };
  document.addEventListener("keydown", pressed, true);
}
