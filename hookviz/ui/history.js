// One entry in the browser's history for each thing that a person does. Streamlit replaces the
// entry where a widget changes the URL, so that Back would skip it, and adds one where the server
// does, so that a choice which both change would take two steps back.
(() => {
  if (window.hookvizHistory) return;
  window.hookvizHistory = true;
  const add = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  // Widgets may be there before this script is, and a person may have used them.
  let acted = navigator.userActivation?.hasBeenActive ?? false; // since the URL last changed
  for (const kind of ["pointerdown", "keydown", "change", "drop"]) {
    addEventListener(kind, () => (acted = true), true);
  }
  const tell = () => dispatchEvent(new Event("hookviz:link")); // to whatever shows what it says
  addEventListener(
    "popstate",
    () => {
      acted = false;
      tell();
    },
    true,
  );
  history.pushState = history.replaceState = (state, unused, url) => {
    const elsewhere = url != null && new URL(url, location.href).href !== location.href;
    (elsewhere && acted ? add : replace)(state, unused, url);
    if (!elsewhere) return;
    acted = false;
    tell();
  };

  // Another view, as the browser's Back brings it: the link changes, and the page follows. One at a
  // time and the newest last: Streamlit ends a run for the next link, and what both said of theirs
  // would be mixed.
  const BEGINS = 1000; // milliseconds in which a run for a link begins, if there is one
  const LONGEST = 2500; // after which a run is ended for the next link
  /** @type {[string, "push" | "replace"] | null} */
  let wanted = null;
  /** @type {MutationObserver | undefined} */
  let watch;
  let [went, timer] = [-Infinity, 0];
  let began = false; // whether the run for the last link was seen
  const app = () => /** @type {HTMLElement | null} */ (document.querySelector("[data-testid=stApp]"));
  const runs = () => app()?.dataset.testScriptState === "running";
  const arrive = () => {
    const ago = performance.now() - went;
    if (ago < (began ? (runs() ? LONGEST : 0) : BEGINS)) return void (timer = setTimeout(arrive, 30));
    if (!wanted) return;
    const [query, kind] = wanted;
    wanted = null;
    if (query === location.search.slice(1)) return;
    watch?.disconnect();
    [went, began] = [performance.now(), false];
    watch = new MutationObserver(() => (began ||= runs()));
    const observed = app();
    if (observed) watch.observe(observed, { attributeFilter: ["data-test-script-state"] });
    history[`${kind}State`](history.state, "", location.pathname + (query && `?${query}`) + location.hash);
    dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
  };
  window.hookvizGo = (query, kind) => {
    wanted = [query, kind];
    clearTimeout(timer);
    arrive();
  };
  window.hookvizGoes = () => wanted !== null;

  const [visit] = performance.getEntriesByType("navigation");
  if (acted && visit && visit.name !== location.href) {
    const now = location.href;
    replace(history.state, "", visit.name);
    history.pushState(history.state, "", now);
  }
})();
