// Draws the mosaic of channels and its colour bar. The picture travels once, as one image; it is
// swapped only when the new one is decoded, so that nothing flickers or jumps.
export default function ({ data, parentElement }) {
  let figure = parentElement.querySelector("figure");
  if (!figure) {
    figure = document.createElement("figure");
    figure.innerHTML =
      '<img class="picture"><div class="scale"><img alt=""><div class="ticks"></div></div>';
    parentElement.appendChild(figure);
  }
  const picture = figure.querySelector(".picture");
  if (picture.dataset.wanted !== data.picture) {
    picture.dataset.wanted = data.picture;
    const next = new Image();
    next.src = data.picture;
    next.decode().then(() => {
      if (picture.dataset.wanted !== data.picture) return; // a newer one is on its way
      picture.src = data.picture;
      picture.width = data.width;
      picture.height = data.height;
      picture.alt = data.alt;
    });
  }
  figure.querySelector(".scale img").src = data.bar;
  figure.querySelector(".ticks").replaceChildren(
    ...data.ticks.map(([fraction, label]) => {
      const tick = document.createElement("span");
      tick.textContent = label;
      tick.style.left = `${fraction * 100}%`;
      return tick;
    }),
  );
}
