// One entry in the browser's history for each thing that a person does. Streamlit replaces the
// entry where a widget changes the URL, so that Back would skip it, and adds one where the server
// does, so that a choice which both change would take two steps back.
(() => {
  if (window.hookvizHistory) return;
  window.hookvizHistory = true;
  const add = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  let began = false; // whether the run for the last link was seen, or it needs none
  // Widgets may be there before this script is, and a person may have used them.
  // A list that is left says "change" of the text by which it was searched: the choice came before.
  const isLeft = (/** @type {Event} */ { type, target }) =>
    type === "change" && /** @type {Element} */ (target).matches?.("[role=combobox]");
  let acted = navigator.userActivation?.hasBeenActive ?? false; // since the URL last changed
  for (const kind of ["pointerdown", "keydown", "change", "drop"]) {
    addEventListener(kind, (event) => (acted ||= !isLeft(event)), true);
  }
  const tell = () => dispatchEvent(new Event("hookviz:link")); // to whatever shows what it says
  // What the explorer's client shows by itself (`window.hookvizExplorer` is the words for it, while it
  // is on the page): a step between links that differ in that alone is the client's, and no run.
  let told = location.search; // the link as it was told last
  const isClients = () => {
    const names = Object.keys(differing());
    return names.length > 0 && names.every((name) => window.hookvizExplorer?.has(name));
  };
  // What the link says otherwise than as it was told last; null is for a name that it left out.
  const differing = () => {
    const [before, now] = [told, location.search].map((query) => new URLSearchParams(query));
    const names = [...new Set([...before.keys(), ...now.keys()])];
    const changed = names.filter((name) => before.get(name) !== now.get(name));
    return Object.fromEntries(changed.map((name) => [name, now.get(name)]));
  };
  addEventListener(
    "popstate",
    (event) => {
      acted = false;
      if (isClients()) {
        event.stopImmediatePropagation(); // Streamlit would run the page
        began = true;
        keep(differing());
        remember();
      } else {
        unseen = {}; // the run for this link begins with all of it
        const before = new URLSearchParams(told);
        undone = Object.fromEntries(Object.keys(differing()).map((name) => [name, before.get(name)]));
        steppedAt = (streamlit()?.rerunEpoch ?? 0) + 1;
      }
      told = location.search;
      tell();
    },
    true,
  );

  // What the client wrote since the page asked for its last run: its server does not know it yet, and
  // would write the link without it. With each value are those that it replaced, how many runs were asked
  // for before, how many of these have not begun, and whether a run has begun that may be a later one.
  /** @type {{[name: string]: {value: string | null, replaced: (string | null)[], asked: number, earlier: number, isDoubtful: boolean}}} */
  let unseen = {};
  let begun = 0; // how many runs were asked for when the last one began
  const keep = (/** @type {{[name: string]: string | null}} */ changes) => {
    const asked = streamlit()?.rerunEpoch ?? 0;
    const link = new URLSearchParams(told);
    for (const [name, value] of Object.entries(changes)) {
      const replaced = [...(unseen[name]?.replaced ?? []), link.get(name)];
      unseen[name] = { value, replaced, asked, earlier: Math.max(0, asked - begun), isDoubtful: false };
    }
  };
  // What the newest step of the browser's Back changed, as it was before it; the page asked for a run then,
  // and one that it had asked for before may still write all of that.
  /** @type {{[name: string]: string | null}} */
  let undone = {};
  let steppedAt = 0;
  const isFromBefore = (/** @type {URL} */ { searchParams }) => {
    const before = Object.entries(undone);
    return before.length > 0 && before.every(([name, value]) => searchParams.get(name) === value);
  };
  // What a link that the server writes does not know: where a later run may have written it, only what was
  // replaced is taken for an earlier run's.
  const unknownTo = (/** @type {URL} */ { searchParams }) => {
    const kept = Object.entries(unseen).filter(
      ([name, { replaced, isDoubtful }]) => !isDoubtful || replaced.includes(searchParams.get(name)),
    );
    return Object.fromEntries(kept.map(([name, { value }]) => [name, value]));
  };
  const withChanges = (/** @type {URL} */ url, /** @type {{[name: string]: string | null}} */ changes) => {
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    return url.href;
  };
  // The page's outermost component, as React knows it.
  const streamlit = () => {
    const app = /** @type {any} */ (document.querySelector("[data-testid=stApp]") ?? {});
    const key = Object.keys(app).find((name) => name.startsWith("__reactFiber$"));
    let part = key && app[key];
    while (part && !part.stateNode?.syncQueryParams) part = part.return;
    return part?.stateNode;
  };
  // Streamlit says with each run what it remembers of the link, and not what stands in the address: it
  // is told by its own function.
  const remember = () => streamlit()?.syncQueryParams(location.search.slice(1));
  // Of a step that is the client's it would run the page all the same, for it listened first: events of
  // the window reach who listens in the order in which they began to.
  const runPage = streamlit()?.onHistoryChange;
  if (runPage) {
    removeEventListener("popstate", runPage);
    addEventListener("popstate", runPage);
  }
  let writing = false; // the client or a step to another view does, not Streamlit
  history.pushState = history.replaceState = (state, unused, url) => {
    // A run from before the browser's Back would undo it: Streamlit notes what it says, and is told what stands.
    if (!writing && url != null && isFromBefore(new URL(url, location.href))) return queueMicrotask(remember);
    const left = url == null || writing ? {} : unknownTo(new URL(url, location.href));
    const written = Object.keys(left).length === 0 ? url : withChanges(new URL(url ?? "", location.href), left);
    const elsewhere = written != null && new URL(written, location.href).href !== location.href;
    (elsewhere && acted ? add : replace)(state, unused, written);
    // Streamlit goes on to note the link as its server wrote it, and would say that of the next run.
    if (written !== url) queueMicrotask(remember);
    if (!elsewhere) return;
    acted = false;
    told = location.search;
    tell();
  };
  window.hookvizWrite = (changes, how) => {
    keep(changes);
    for (const name of Object.keys(changes)) delete undone[name];
    acted = how === "push"; // a person's change in the client's shadow root isn't heard here
    writing = true;
    try {
      history.pushState(history.state, "", withChanges(new URL(location.href), changes));
    } finally {
      writing = false; // a browser may refuse so many
    }
    remember();
  };
  // What was written after the run was asked for is none of what it knows. Each run tells that it begins,
  // also one that follows upon another, over which the page says "running" all the time. It does not tell
  // for which request, so that those count which had not begun.
  const runBegins = () => {
    const runs = streamlit()?.rerunEpoch;
    if (runs === undefined || runs > steppedAt) undone = {};
    for (const [name, one] of Object.entries(unseen)) {
      const isDoubtful = runs !== undefined && one.asked < runs;
      if (isDoubtful && one.earlier === 0) delete unseen[name];
      else unseen[name] = { ...one, isDoubtful, earlier: Math.max(0, one.earlier - 1) };
    }
    begun = runs ?? begun;
  };
  const page = streamlit();
  begun = page?.rerunEpoch ?? 0; // this script is of a run
  const begin = page?.handleNewSession;
  if (page && begin) {
    page.handleNewSession = (/** @type {unknown[]} */ ...told) => {
      runBegins();
      return begin(...told);
    };
  }

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
    const before = told;
    writing = true; // all of it: what the client wrote before is not kept
    try {
      history[`${kind}State`](history.state, "", location.pathname + (query && `?${query}`) + location.hash);
    } finally {
      writing = false;
    }
    told = before; // what is new in it decides whether the page runs
    dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
  };
  window.hookvizGo = (query, kind) => {
    wanted = [query, kind];
    clearTimeout(timer);
    arrive();
  };
  window.hookvizGoes = () => wanted !== null;
  // A link within the page: what it sets, beside all else that the link says by then.
  addEventListener("click", (event) => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const way = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("a[data-hv-sets]"));
    if (!way) return;
    event.preventDefault();
    const link = new URLSearchParams(location.search);
    for (const [name, value] of new URLSearchParams(way.dataset.hvSets)) link.set(name, value);
    window.hookvizGo(link.toString(), "push");
  });

  const [visit] = performance.getEntriesByType("navigation");
  if (acted && visit && visit.name !== location.href) {
    const now = location.href;
    replace(history.state, "", visit.name);
    history.pushState(history.state, "", now);
  }
})();
