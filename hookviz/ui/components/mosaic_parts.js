// What the grid is made of, and its way to another layer.

const FRAME = `
  <figure>
    <div class="head">
      <div class="scale"><img alt=""><div class="ticks"></div></div>
      <output></output>
      <span class="zoom" role="group" aria-label="Zoom">
        <button type="button" class="out" title="Zoom out (−)" aria-label="Zoom out">−</button>
        <button type="button" class="in" title="Zoom in (+)" aria-label="Zoom in">+</button>
      </span>
      <label hidden>channel <input type="text" inputmode="numeric" size="5"></label>
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
const changeLayer = (by) => {
  const name = by < 0 ? "hv-previous" : "hv-next";
  document.querySelector(`.st-key-${name} button:enabled`)?.click();
};
