// The presenter's view, which is there where the link says present=1: how the page looks is in
// presenting.css, and this is what its keys do. A remote's keys are PageDown and PageUp.
(() => {
  if (window.hookvizPresenting) return;
  const root = document.documentElement;
  const slides = window.hookvizSlides;
  const said = () => window.hookvizLink();
  const isOn = () => said().get("present") === "1";
  const tell = () => dispatchEvent(new Event("hookviz:presenting"));

  const show = () => {
    const on = isOn();
    if (!on) point(false);
    if (root.classList.contains("hv-presenting") === on) return;
    root.classList.toggle("hv-presenting", on);
    dispatchEvent(new Event("resize")); // there is other room for what is on the page
    tell();
  };
  const toggle = (on = !isOn()) => {
    if (on === isOn()) return;
    const now = said();
    now.delete("present");
    if (on) now.set("present", "1");
    // It may only be asked for by a key or a click, and the view is there without it.
    if (on) root.requestFullscreen?.().catch(() => {});
    else if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
    slides.show(now.toString());
    show();
  };
  // In full screen, Escape goes to the browser, which ends that; then the view is left as well.
  document.addEventListener("fullscreenchange", () => document.fullscreenElement || toggle(false));

  // A ring around the pointer, for the last row to see.
  const ring = document.createElement("div");
  ring.className = "hv-ring";
  ring.hidden = true;
  ring.setAttribute("aria-hidden", "true");
  document.body.append(ring);
  let place = [innerWidth / 2, innerHeight / 2];
  const follow = () => {
    ring.style.transform = `translate(${place[0]}px, ${place[1]}px)`;
  };
  const point = (on = ring.hidden) => {
    ring.hidden = !on;
    follow();
    tell();
  };
  addEventListener(
    "pointermove",
    (event) => {
      place = [event.clientX, event.clientY];
      if (!ring.hidden) follow();
    },
    true,
  );

  // A remote goes through the slides if there are any, else through a lesson's steps or the layers, as N
  // and P do, which mean here what they mean on the page; and so do the arrows.
  const step = (by) => {
    if (slides.list().length) slides.step(by);
    else press(by > 0 ? ["n", "KeyN"] : ["p", "KeyP"]);
  };
  const press = ([key, code]) => {
    for (const kind of ["keydown", "keyup"]) {
      document.body.dispatchEvent(new KeyboardEvent(kind, { key, code, bubbles: true, composed: true }));
    }
  };

  const STEPS = { PageDown: 1, PageUp: -1 };
  const OPENS = { q: "code", l: "slides" };
  const TYPED = "input:not([type='range'], [type='radio'], [type='checkbox']), textarea, select, [contenteditable]";
  const OVER = "dialog, [data-testid='stPopoverBody'], [role='dialog'], [role='listbox']";
  const pressed = (event) => {
    const target = event.composedPath()[0];
    if (event.ctrlKey || event.metaKey || event.altKey || !event.isTrusted) return;
    // What was closed just now may have the focus still.
    if ([TYPED, OVER].some((kinds) => target.closest?.(kinds)?.checkVisibility())) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    // Where two views are compared, F alone flips between them while it is held.
    if (key === "f" && (event.shiftKey || !said().has("a"))) return event.repeat ? true : (toggle() ?? true);
    if (key in OPENS && (isOn() || key === "l")) {
      dispatchEvent(new CustomEvent("hookviz:presenter", { detail: OPENS[key] }));
      return true;
    }
    if (!isOn()) return false;
    if (key === "Escape") {
      // A mirror is left before the view is.
      if (root.classList.contains("hv-mirror") || document.querySelector(OVER)?.checkVisibility()) return false;
      return toggle(false) ?? true;
    }
    if (key === "r" && !event.shiftKey) return point() ?? true;
    if (!(key in STEPS)) return false;
    step(STEPS[key]);
    return true;
  };
  addEventListener(
    "keydown",
    (event) => {
      if (!pressed(event)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    true,
  );

  document.addEventListener("click", ({ target }) => {
    const opens = target instanceof HTMLElement && target.closest("[data-hv-opens]");
    if (opens instanceof HTMLElement)
      dispatchEvent(new CustomEvent("hookviz:presenter", { detail: opens.dataset.hvOpens }));
  });
  addEventListener("hookviz:link", show);
  window.hookvizPresenting = { isOn, toggle, step, point, isPointing: () => !ring.hidden };
  show();
  tell(); // that it is there
})();
