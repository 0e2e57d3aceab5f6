// The page's address: the query is Streamlit's, and the explorer's view is the fragment, which costs no run.
// Where Streamlit writes a query it drops the fragment, and here it is put back.
// (A less-than sign before a letter would have the browser take this for markup, and drop it.)
(() => {
  if (/** @type {any} */ (window).hookvizLink) return;
  const VIEW = new Set(window.hookvizViewWords); // words that stand in the fragment
  const partsOf = (/** @type {URLSearchParams} */ link) => {
    const [query, view] = [new URLSearchParams(), new URLSearchParams()];
    for (const [name, text] of link) (VIEW.has(name) ? view : query).append(name, text);
    return { query, view };
  };
  const viewNow = () => partsOf(new URLSearchParams(location.hash.slice(1))).view;
  const tell = () => dispatchEvent(new Event("hookviz:link")); // to whatever shows what it says
  let fragment = location.hash; // as it was last

  /** All words of the link. */
  window.hookvizLink = () => {
    const { query } = partsOf(new URLSearchParams(location.search));
    return new URLSearchParams([...query, ...viewNow()]);
  };
  const write = (/** @type {string} */ search, /** @type {string} */ view, /** @type {"push" | "replace"} */ how) => {
    // Without a # Streamlit takes a step between two fragments for one of its own.
    if (how === "push" && !location.href.includes("#")) history.replaceState(history.state, "", `${location.href}#`);
    fragment = `#${view}`;
    history[`${how}State`](history.state, "", location.pathname + search + fragment);
  };
  // What others wrote: an old link has its view in the query, and Streamlit leaves the fragment out.
  const settle = () => {
    const { query, view } = partsOf(new URLSearchParams(location.search));
    const whole = new URLSearchParams(Object.fromEntries([...view, ...viewNow()]));
    if (view.size) write(query.size ? `?${query}` : "", `${whole}`, "replace");
    else if (location.href.includes("#")) fragment = location.hash;
    else if (fragment) write(location.search, fragment.slice(1), "replace");
  };
  settle();
  let known = location.href;
  const look = () => {
    if (known === location.href) return;
    settle();
    if (known === location.href) return; // it was told of already
    known = location.href;
    tell();
  };
  if (/** @type {any} */ (window).navigation) {
    window.navigation.addEventListener("currententrychange", ({ navigationType }) => {
      if (navigationType !== "traverse") look();
    });
  } else setInterval(look, 200);
  addEventListener("popstate", () => {
    // Streamlit runs the page for another query, and would take what it is told meanwhile for a click.
    awaits ||= new URL(known).search !== location.search;
    [fragment, known] = [location.hash, location.href];
    tell();
  });

  /** Write words of the view, null for none. */
  window.hookvizWrite = (changes, how) => {
    const [before, view] = [viewNow(), viewNow()];
    for (const [name, text] of Object.entries(changes)) {
      if (text === null) view.delete(name);
      else view.set(name, text);
    }
    if (`${view}` === `${before}`) return;
    write(location.search, `${view}`, how);
    look();
  };

  // The server says with each run what it drew by and what it wrote, and is told what stands there.
  let awaits = false; // whether a run for another query is to come
  let applied = 0; // number of the server's last writing
  let [server, said] = [/** @type {any} */ (null), ""];
  const sorted = (/** @type {any} */ view) => [...view].map(String).sort().join("&");
  const saidNow = () => ({ fragment: `${viewNow()}`, number: applied });
  const check = () => {
    const now = sorted(viewNow());
    if (!server?.view || now === sorted(Object.entries(server.view))) said = "";
    else if (!awaits && now !== said) {
      said = now; // once: the server may not take it
      server.tell(saidNow());
    }
  };
  window.hookvizSaid = saidNow;
  window.hookvizServer = (next) => {
    [server, awaits] = [next, false];
    if (next && next.number > applied) {
      applied = next.number;
      window.hookvizWrite(next.changes, next.isStep ? "push" : "replace");
    }
    check();
  };
  addEventListener("hookviz:link", check);

  // Another view, as the browser's Back brings it: the link changes, and the page follows. One at a
  // time and the newest last: Streamlit ends a run for the next link, and what both said of theirs
  // would be mixed.
  const BEGINS = 1000; // milliseconds in which a run for a link begins, if there is one
  const LONGEST = 2500; // after which a run is ended for the next link
  /** @type {[string, "push" | "replace"] | null} */
  let wanted = null;
  /** @type {MutationObserver | undefined} */
  let watch;
  let [went, timer, began] = [-Infinity, 0, true];
  const app = () => /** @type {HTMLElement | null} */ (document.querySelector("[data-testid=stApp]"));
  const runs = () => app()?.dataset.testScriptState === "running";
  const arrive = () => {
    const ago = performance.now() - went;
    if (ago < (began ? (runs() ? LONGEST : 0) : BEGINS)) return void (timer = setTimeout(arrive, 30));
    if (!wanted) return;
    const [[link, how], now] = [wanted, partsOf(window.hookvizLink())];
    wanted = null;
    const { query, view } = partsOf(new URLSearchParams(link));
    const isPages = sorted(query) !== sorted(now.query);
    if (!isPages && `${view}` === `${now.view}`) return;
    awaits ||= isPages;
    write(isPages ? (query.size ? `?${query}` : "") : location.search, `${view}`, how);
    if (!isPages) return look();
    watch?.disconnect();
    [went, began] = [performance.now(), false];
    watch = new MutationObserver(() => (began ||= runs()));
    const observed = app();
    if (observed) watch.observe(observed, { attributeFilter: ["data-test-script-state"] });
    dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
  };
  window.hookvizGo = (link, how) => {
    wanted = [link, how];
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
    const link = window.hookvizLink();
    for (const [name, value] of new URLSearchParams(way.dataset.hvSets)) link.set(name, value);
    window.hookvizGo(link.toString(), "push");
  });
})();
