// Runs as soon as the page begins. Keys pressed before what they are for is there are kept for it:
// N and P for the explorer or the lesson's buttons, all others for the grid. It also makes room in a
// small window. The space bar goes on with a stream that was frozen. What floats in the page's corner
// gives way to what is scrolled there.
if (!window.hookviz) {
  const kept = [];
  const LEFT = 100; // milliseconds in which a list has given the focus back to its field
  const NEAR_TOP = 8; // pixels: the page's first row is where it was, or nearly
  const STALE = 10000; // milliseconds after which nobody means it any more
  window.hookviz = {
    ready: false, // the grid listens for itself
    turns: false, // and so does the row of the layer
    take: () =>
      kept
        .splice(0)
        .filter((one) => performance.now() - one.at < STALE)
        .map((one) => one.key),
  };
  const when = (selector, act) => {
    const observer = new MutationObserver(() => {
      const found = document.querySelector(selector);
      if (!found) return;
      observer.disconnect();
      act(found);
    });
    observer.observe(document.body, { childList: true, subtree: true });
    setTimeout(() => observer.disconnect(), STALE);
  };
  document.addEventListener("keydown", (event) => {
    if (event.target !== document.body || event.ctrlKey || event.metaKey || event.altKey) return;
    const goOn = event.key === " " && document.querySelector(".st-key-hv-go-on button");
    if (goOn instanceof HTMLElement) {
      event.preventDefault();
      goOn.click();
      return;
    }
    const { ready, turns } = window.hookviz;
    const name = { n: "hv-next", p: "hv-previous" }[event.key.toLowerCase()];
    const button = name && `.st-key-${name} button`;
    if (button ? turns || document.querySelector(button) : ready) return;
    if (!button && !/^([/0-9]|Enter|Arrow.*)$/.test(event.key)) return;
    event.preventDefault();
    const one = { key: event.key, at: performance.now() };
    kept.push(one);
    // The explorer takes it, or else what is there in its place has a button for it.
    const click = (/** @type {HTMLElement} */ found) => {
      const at = kept.indexOf(one);
      if (at >= 0) kept.splice(at, 1);
      if (at >= 0) found.click();
    };
    if (button) when(`${button}:enabled`, click);
  });
  // A list of which something was picked by the pointer is left, so that the page's keys work again.
  document.addEventListener(
    "pointerup",
    (event) => {
      if (!(event.target instanceof Element && event.target.closest("[role=option]"))) return;
      setTimeout(() => {
        const at = document.activeElement;
        if (at instanceof HTMLElement && at.closest("[data-testid=stSelectbox]")) at.blur();
      }, LEFT);
    },
    true,
  );
  document.addEventListener(
    "scroll",
    ({ target }) => {
      if (!(target instanceof HTMLElement && target.dataset.testid === "stMain")) return;
      document.documentElement.classList.toggle("hv-scrolled", target.scrollTop > NEAR_TOP);
    },
    { capture: true, passive: true },
  );
  // On a phone the sidebar lies over the page that it leads to, and closes.
  const opened = () => ["lens", "lesson"].map((word) => new URLSearchParams(location.search).get(word)).join();
  let before = opened();
  addEventListener("hookviz:link", () => {
    const moved = before !== opened();
    before = opened();
    const close = document.querySelector("[data-testid=stSidebarCollapseButton] [aria-expanded=true]");
    if (moved && window.innerWidth <= 640 && close instanceof HTMLElement) close.click();
  });
  // A window between a phone's and a laptop's, such as a projector's at 150 %, is for the network.
  if (window.innerWidth > 768 && window.innerWidth <= 1100) {
    when("[data-testid='stSidebarCollapseButton'] button", (found) => found.click());
  }
}
