// One entry in the browser's history for each thing that a person does. Streamlit replaces the
// entry where a widget changes the URL, so that Back would skip it, and adds one where the server
// does, so that a choice which both change would take two steps back.
(() => {
  if (window.hookvizHistory) return;
  window.hookvizHistory = true;
  const add = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  let acted = false; // since the URL last changed
  for (const kind of ["pointerdown", "keydown", "change", "drop"]) {
    addEventListener(kind, () => (acted = true), true);
  }
  const tell = () => dispatchEvent(new Event("hookviz:link")); // to whatever shows what it says
  addEventListener("popstate", () => {
    acted = false;
    tell();
  }, true);
  history.pushState = history.replaceState = (state, unused, url) => {
    const elsewhere = url != null && new URL(url, location.href).href !== location.href;
    (elsewhere && acted ? add : replace)(state, unused, url);
    if (!elsewhere) return;
    acted = false;
    tell();
  };
})();
