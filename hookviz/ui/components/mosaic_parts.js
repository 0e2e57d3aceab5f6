// What the grid is made of, and its way to another layer.

export const FRAME = `
  <figure>
    <div class="head">
      <div class="scale"><img alt=""><div class="ticks"></div></div>
      <output></output>
      <span class="zoom" role="group" aria-label="Zoom">
        <button type="button" class="out" title="Zoom out (−)" aria-label="Zoom out">−</button>
        <button type="button" class="in" title="Zoom in (+)" aria-label="Zoom in">+</button>
      </span>
      <label hidden>channel <input type="text" inputmode="numeric" size="5"></label>
      <label class="split" hidden>A <input type="range" aria-label="Where A ends and B begins"> B</label>
      <button type="button" class="flip" title="Hold to see the other one (F)" hidden>Flip</button>
    </div>
    <div class="window">
      <div class="stage" tabindex="0" role="slider" aria-label="Channel" aria-valuemin="0">
        <canvas></canvas>
      </div>
    </div>
    <div class="pages" role="group" aria-label="Pages of channels" hidden>
      <button type="button" class="earlier" aria-label="Previous page">‹</button>
      <span></span>
      <button type="button" class="later" aria-label="Next page">›</button>
      <small>swipe: next layer</small>
    </div>
    <img class="picture" hidden>
  </figure>`;

// The layer before or after, by the page's own buttons.
export const changeLayer = (by) => {
  const name = by < 0 ? "hv-previous" : "hv-next";
  /** @type {HTMLElement | null} */
  const button = document.querySelector(`.st-key-${name} button:enabled`);
  button?.click();
};

// Two activations in one sprite, B above A: which of them a tile shows, and how it is flipped while
// the key F or the button is held.
export const twoFaces = (data, find, stage, repaint) => {
  const { pair, geometry: sprite } = data;
  const [slider, flip] = [find(".split input"), find(".flip")];
  let held = false;
  const hold = (now) => {
    if (!pair || held === now) return;
    held = now;
    repaint();
  };
  const face = () => (!pair ? "b" : !held ? pair.face : pair.face === "a" ? "b" : "a");
  find(".split").hidden = pair?.face !== "split";
  flip.hidden = !pair;
  slider.value = stage.dataset.split ?? 50;
  slider.oninput = () => {
    stage.dataset.split = slider.value;
    repaint();
  };
  flip.onpointerdown = () => hold(true);
  flip.onpointerup = flip.onpointerleave = flip.onpointercancel = () => hold(false);
  const key = (event) => {
    const typed = event.composedPath()[0];
    if (event.key.toLowerCase() !== "f" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (typed.closest?.("input:not([type='range']), textarea, [contenteditable]")) return;
    hold(event.type === "keydown");
  };
  const letGo = () => hold(false);
  if (pair) {
    document.addEventListener("keydown", key);
    document.addEventListener("keyup", key);
    window.addEventListener("blur", letGo);
  }
  return {
    below: pair ? sprite.height : 0, // pixels from a tile of B to the same one of A
    is: () => `${face()} ${face() === "split" ? slider.value : ""}`,
    paint: (paintTile, pen, from, to, size, density) => {
      const ofA = [from[0], from[1] + sprite.height];
      paintTile(pen, face() === "a" ? ofA : from, to, size, density);
      if (face() !== "split") return;
      pen.save();
      pen.beginPath();
      pen.rect(...to, (size[0] * slider.value) / 100, size[1]);
      pen.clip();
      paintTile(pen, ofA, to, size, density);
      pen.restore();
    },
    stop: () => {
      document.removeEventListener("keydown", key);
      document.removeEventListener("keyup", key);
      window.removeEventListener("blur", letGo);
    },
  };
};
