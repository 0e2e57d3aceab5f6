// Room for a question: its card stands beside what it asks about, or below it, and covers nothing.

const WIDE = 900; // pixels from which on a card stands beside the page

/** @type {ResizeObserver | undefined} */
let watching;

const measure = (card) => {
  const root = document.documentElement;
  const game = card.classList.contains("game") && card.querySelector("details")?.open;
  const { width, height } = card.getBoundingClientRect();
  const beside = innerWidth >= WIDE && !game && card.querySelector("details")?.open;
  const bar = root.classList.contains("hv-presenting") ? 64 : 0; // the presenter's, below
  const [right, below] = [
    beside ? `${Math.ceil(width) + 16}px` : "0px",
    `${bar + (beside || game ? 0 : Math.ceil(height) + 8)}px`,
  ];
  if (
    root.style.getPropertyValue("--hv-poll-right") === right &&
    root.style.getPropertyValue("--hv-poll-below") === below
  )
    return;
  root.style.setProperty("--hv-poll-right", right);
  root.style.setProperty("--hv-poll-below", below);
  dispatchEvent(new Event("resize"));
};

/**
 * Make room on the page for a card, for as long as it is shown.
 * @param {HTMLElement | null} card null where there is none any more
 */
export const makeRoom = (card) => {
  const root = document.documentElement;
  const was = root.classList.contains("hv-polls");
  root.classList.toggle("hv-polls", Boolean(card));
  if (!card) {
    watching?.disconnect();
    watching = undefined;
    for (const name of ["--hv-poll-right", "--hv-poll-below"]) root.style.removeProperty(name);
    if (was) dispatchEvent(new Event("resize"));
    return;
  }
  if (!watching) {
    watching = new ResizeObserver(() => measure(card));
    watching.observe(card);
  }
  measure(card);
};
