// The slide list: views of this page in order, each a title and what its link says. It is kept by
// the browser alone; another tab sees it at once.
(() => {
  if (window.hookvizSlides) return;
  const KEPT = "hookviz-slides";
  const AT = "hookviz-slide"; // which one was shown last, in this tab
  const NOT_OF_SLIDES = ["present", "lang", "follow", "class"]; // they are of who shows them
  const MOST = 100;
  let before = null; // the list before the last change

  const list = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(KEPT) ?? "null") ?? [];
      return kept.filter((one) => typeof one?.title === "string" && typeof one?.query === "string");
    } catch {
      return [];
    }
  };
  const tell = () => dispatchEvent(new Event("hookviz:slides"));
  const write = (slides) => {
    try {
      localStorage.setItem(KEPT, JSON.stringify(slides.slice(0, MOST)));
    } catch {
      /* full, or forbidden */
    }
    tell();
  };
  const save = (slides) => {
    before = list();
    write(slides);
  };

  const sorted = (query) => [...new URLSearchParams(query)].map(String).sort().join("&");
  const shown = () => {
    const said = window.hookvizLink();
    NOT_OF_SLIDES.forEach((name) => said.delete(name));
    return said.toString();
  };
  const say = (text, facts = {}) =>
    Object.entries(facts).reduce(
      (said, [name, fact]) => said.replace(`{${name}}`, fact),
      window.hookvizWords?.[text] ?? text,
    );
  // What is on the screen, as one would say it; a person can change it. A lens has its question as a heading, and
  // a lesson its title.
  const title = () => {
    const said = window.hookvizLink();
    const [layer, channel] = [said.get("layer"), said.get("channel")];
    const read = (selector) => document.querySelector(`[data-testid=stMain] ${selector}`)?.textContent?.trim();
    const parts = [];
    if (said.get("lesson")) parts.push(read(".hv-lesson-name"), read(".hv-step-title"));
    else if (said.get("lens")) parts.push(read("[data-testid=stHeading] h2") ?? said.get("lens"));
    else if (channel && layer) parts.push(say("Channel {channel} of {layer}", { channel, layer }));
    else if (channel) parts.push(say("Channel {channel}", { channel }));
    else parts.push(layer ? say("All channels of {layer}", { layer }) : say("All channels"));
    if (!said.get("lesson")) parts.push(said.get("model"));
    return parts.filter(Boolean).join(" · ").slice(0, 80);
  };

  // The one that was shown last; after the browser's Back, that which is on the screen again.
  const at = () => {
    const slides = list();
    let last = -1;
    try {
      last = Math.min(Number(sessionStorage.getItem(AT) ?? -1), slides.length - 1);
    } catch {
      /* none is kept */
    }
    const now = sorted(shown());
    const isShown = (slide) => sorted(slide.query) === now;
    if (last < 0 || isShown(slides[last]) || window.hookvizGoes()) return last;
    const found = slides.findIndex(isShown);
    return found < 0 ? last : found;
  };
  const show = (query) => window.hookvizGo(query, "push");
  const go = (index) => {
    const slide = list()[index];
    if (!slide) return;
    try {
      sessionStorage.setItem(AT, index);
    } catch {
      /* then it begins at the first */
    }
    const now = window.hookvizLink();
    const said = new URLSearchParams(slide.query);
    for (const name of NOT_OF_SLIDES) {
      said.delete(name);
      const own = now.get(name);
      if (own !== null) said.set(name, own);
    }
    show(said.toString());
    tell();
  };

  addEventListener("storage", (event) => event.key === KEPT && tell());
  window.hookvizSlides = {
    MOST,
    list,
    save,
    shown,
    at,
    go,
    show,
    add: () => save([...list(), { title: title(), query: shown() }]),
    undo: () => {
      if (before) write(before);
      before = null;
      tell();
    },
    canUndo: () => before !== null,
    step: (by) => go(Math.max(0, at() + by)),
  };
})();
