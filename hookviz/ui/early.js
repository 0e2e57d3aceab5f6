// Runs as soon as the page begins. Keys pressed before what they are for is there are kept for it:
// N and P for the layer's buttons, all others for the grid, which takes them when it comes. It also
// remembers in the browser whether hints are needed, and makes room in a small window. The space bar
// goes on with a stream that was frozen.
if (!window.hookviz) {
  const kept = [];
  const STALE = 10000; // milliseconds after which nobody means it any more
  window.hookviz = {
    ready: false, // the grid listens for itself
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
    const name = { n: "hv-next", p: "hv-previous" }[event.key.toLowerCase()];
    if (name) {
      const button = `.st-key-${name} button`;
      if (!document.querySelector(button)) when(`${button}:enabled`, (found) => found.click());
    } else if (!window.hookviz.ready && /^([/0-9]|Enter|Arrow.*)$/.test(event.key)) {
      event.preventDefault();
      kept.push({ key: event.key, at: performance.now() });
    }
  });
  // The hints of the first visit are gone for good once a tile was picked up.
  const SEEN = "hookviz-picked";
  const seen = () => document.body.classList.add("hv-seen");
  window.hookviz.picked = () => {
    seen();
    try {
      localStorage.setItem(SEEN, "yes");
    } catch {
      /* who keeps nothing sees them again */
    }
  };
  try {
    if (localStorage.getItem(SEEN)) seen();
  } catch {
    /* as above */
  }
  // A window between a phone's and a laptop's, such as a projector's at 150 %, is for the network.
  if (window.innerWidth > 768 && window.innerWidth <= 1100) {
    when("[data-testid='stSidebarCollapseButton'] button", (found) => found.click());
  }
}
