// What several components use; it is put before each of them.

// A number as people read it: three digits, a real minus sign.
const number = (value) => {
  if (value === null || Number.isNaN(value)) return "none";
  const size = Math.abs(value);
  const text =
    size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(2) : value.toPrecision(3);
  return text.replace("-", "−");
};

// The component's own elements, built on its first run and kept over the later ones.
const frame = (parent, html) => {
  if (!parent.querySelector("[data-built]")) {
    const holder = document.createElement("div");
    holder.innerHTML = html.trim();
    holder.firstElementChild.dataset.built = "yes";
    parent.appendChild(holder.firstElementChild); // the component's style stands there already
  }
  return (selector) => parent.querySelector(selector);
};

// A colour bar: its picture, and ticks of [fraction from the left, text].
const colourBar = (find, bar, ticks) => {
  find(".scale img").src = bar;
  find(".ticks").replaceChildren(
    ...ticks.map(([fraction, text]) => {
      const tick = document.createElement("span");
      tick.textContent = text;
      tick.style.left = `${fraction * 100}%`;
      return tick;
    }),
  );
};
