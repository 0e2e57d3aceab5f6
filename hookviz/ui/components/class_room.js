// Room for a question: its card lies over the choices at the side, or else stands beside what it asks
// about or below it. A riddle has all that it asks about in it, and lies over the page.

const WIDE = 900; // pixels from which on a card has a place at a side
const BAR = 64; // the presenter's, below
const GAP = 8;
const ROOM = ["right", "below", "left", "width"];

/** @type {ResizeObserver | undefined} */
let watching;

// The sidebar where it stands open beside the page.
const sidebar = () => document.querySelector("[data-testid=stSidebar]");

/**
 * What a card of that height leaves of the page, and where it stands, in pixels.
 * @param {{isOpen: boolean, isGame: boolean, isPresented: boolean, width: number, height: number, window: number, side: number}} seen
 *   `side` is how wide the sidebar is, 0 where there is none
 */
export const roomFor = ({ isOpen, isGame, isPresented, width, height, window, side }) => {
  const bar = isPresented ? BAR : 0;
  const over = { right: 0, below: bar, left: -1, width: -1 };
  if (isGame && isOpen) return over;
  if (window >= WIDE && side && !isPresented) return { ...over, left: GAP, width: side - 2 * GAP };
  if (window >= WIDE && isOpen) return { ...over, right: Math.ceil(width) + 2 * GAP };
  return { ...over, below: bar + Math.ceil(height) + GAP };
};

const measure = (card) => {
  const style = document.documentElement.style;
  const { width, height } = card.getBoundingClientRect();
  const beside = sidebar()?.getBoundingClientRect();
  const room = roomFor({
    isOpen: card.querySelector("details").open,
    isGame: card.classList.contains("game"),
    isPresented: document.documentElement.classList.contains("hv-presenting"),
    ...{ width, height, window: innerWidth },
    side: beside && beside.right > 200 ? beside.right : 0,
  });
  let changed = false;
  for (const name of ROOM) {
    const value = room[name] < 0 ? "" : `${room[name]}px`;
    if (style.getPropertyValue(`--hv-poll-${name}`) === value) continue;
    style.setProperty(`--hv-poll-${name}`, value);
    changed = true;
  }
  card.classList.toggle("aside", room.left >= 0);
  if (changed) dispatchEvent(new Event("resize"));
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
    for (const name of ROOM) root.style.removeProperty(`--hv-poll-${name}`);
    if (was) dispatchEvent(new Event("resize"));
    return;
  }
  if (!watching) {
    watching = new ResizeObserver(() => measure(card));
    for (const each of [card, root, sidebar()]) if (each) watching.observe(each);
  }
  measure(card);
};
