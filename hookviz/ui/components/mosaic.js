// The mosaic of channels as an instrument: one picture, a cursor that pointer and keys move, a line
// that reads out what is under it, and a colour bar. The picture travels once, as one image; it is
// swapped only when the new one is decoded, so that nothing flickers or jumps.

const FRAME = `
  <figure>
    <div class="window">
      <div class="stage" tabindex="0" role="slider" aria-label="Channel" aria-valuemin="0">
        <img class="picture"><div class="frame selected"></div><div class="frame cursor"></div>
      </div>
    </div>
    <div class="line">
      <output></output>
      <span class="zoom" role="group" aria-label="Zoom">
        <button type="button" class="out" title="Zoom out (−)" aria-label="Zoom out">−</button>
        <button type="button" class="in" title="Zoom in (+)" aria-label="Zoom in">+</button>
      </span>
      <label hidden>channel <input type="text" inputmode="numeric" size="5"></label>
    </div>
    <div class="scale"><img alt=""><div class="ticks"></div></div>
  </figure>`;

export default function ({ data, parentElement, setTriggerValue }) {
  const find = frame(parentElement, FRAME);
  const [stage, picture, cursor, selected, output, label, jump] = [
    ".stage", ".picture", ".cursor", ".selected", "output", "label", "input",
  ].map(find);
  const { columns, tile, pitch, width, height } = data.geometry;
  const count = data.order.length;

  // Where the cursor is, as a place in the mosaic; kept on the element, for this runs anew each time.
  let place = Math.min(Number(stage.dataset.place ?? 0), count - 1);
  const chosen = data.order.indexOf(data.selected);
  if (chosen >= 0 && stage.dataset.chosen !== String(data.selected)) place = chosen;
  stage.dataset.chosen = String(data.selected);

  const put = (frame, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    frame.style.left = `${(100 * column * pitch[1]) / width}%`;
    frame.style.top = `${(100 * row * pitch[0]) / height}%`;
    frame.style.width = `${(100 * tile[1]) / width}%`;
    frame.style.height = `${(100 * tile[0]) / height}%`;
  };

  const describe = () => {
    const { lowest, mean, highest, zeros } = data.stats;
    const range = `min ${number(lowest[place])} · mean ${number(mean[place])} · max ${number(highest[place])}`;
    return `channel ${data.order[place]} · ${range} · ${Math.round(zeros[place] * 100)} % zeros`;
  };

  const show = (value = "") => {
    stage.dataset.place = place;
    put(cursor, place);
    selected.hidden = chosen < 0;
    if (chosen >= 0) put(selected, chosen);
    const text = describe();
    output.textContent = value ? `${text} · ${value}` : text;
    stage.setAttribute("aria-valuemax", count - 1);
    stage.setAttribute("aria-valuenow", place);
    stage.setAttribute("aria-valuetext", `${text}${chosen === place ? ", selected" : ""}`);
  };

  // Zoom: the picture grows in a window that scrolls, about the pointer or the cursor; its cells
  // stay sharp, since the browser repeats pixels.
  const scroller = find(".window");
  const zoomBy = (factor, event) => {
    const old = Number(stage.dataset.zoom ?? 1);
    const zoom = Math.min(16, Math.max(1, old * factor));
    const view = scroller.getBoundingClientRect();
    const before = (event ? picture : cursor).getBoundingClientRect();
    const [x, y] = event
      ? [event.clientX, event.clientY]
      : [before.left + before.width / 2, before.top + before.height / 2];
    const box = picture.getBoundingClientRect();
    const share = [(x - box.left) / box.width, (y - box.top) / box.height];
    stage.dataset.zoom = zoom;
    stage.style.width = `${zoom * 100}%`;
    scroller.classList.toggle("zoomed", zoom > 1);
    const grown = picture.getBoundingClientRect();
    scroller.scrollLeft += grown.left + share[0] * grown.width - (event ? x : view.left + view.width / 2);
    scroller.scrollTop += grown.top + share[1] * grown.height - (event ? y : view.top + view.height / 2);
    find(".out").disabled = zoom === 1;
    find(".in").disabled = zoom === 16;
  };
  find(".in").onclick = () => zoomBy(2);
  find(".out").onclick = () => zoomBy(0.5);
  find(".out").disabled = Number(stage.dataset.zoom ?? 1) === 1;
  stage.onwheel = (event) => {
    if (!event.ctrlKey) return; // without it the page scrolls, as everywhere
    event.preventDefault();
    zoomBy(event.deltaY < 0 ? 1.25 : 0.8, event);
  };

  const select = (cell = null) => setTriggerValue("picked", { channel: data.order[place], cell });

  // The colour under the pointer is the value, to one step of the colour bar.
  const sample = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const valueAt = (x, y) => {
    sample.canvas.width = sample.canvas.height = 1;
    sample.drawImage(picture, x, y, 1, 1, 0, 0, 1, 1);
    const [red, green, blue, alpha] = sample.getImageData(0, 0, 1, 1).data;
    if (alpha === 0) return null;
    const level = data.palette.indexOf((red << 16) | (green << 8) | blue);
    if (level === data.nan) return "NaN";
    if (level === data.infinity) return "infinite";
    if (level < 0) return null;
    const [low, high] = [data.limits.low[place], data.limits.high[place]];
    return `≈ ${number(low + ((level + 0.5) / data.levels) * (high - low))}`;
  };

  const under = (event) => {
    const box = picture.getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) / box.width) * width);
    const y = Math.floor(((event.clientY - box.top) / box.height) * height);
    const [row, column] = [Math.floor(y / pitch[0]), Math.floor(x / pitch[1])];
    const [down, across] = [y - row * pitch[0], x - column * pitch[1]];
    const at = row * columns + column;
    const inside = down < tile[0] && across < tile[1] && column < columns && at < count && row >= 0;
    if (!inside) return null;
    const cell = [Math.floor(down / data.geometry.zoom), Math.floor(across / data.geometry.zoom)];
    return { at, x, y, cell };
  };

  stage.onpointermove = (event) => {
    const hit = under(event);
    if (!hit) return;
    place = hit.at;
    const value = valueAt(hit.x, hit.y);
    show(value && `${value} at row ${hit.cell[0]}, column ${hit.cell[1]}`);
  };
  stage.onclick = (event) => {
    const hit = under(event);
    if (!hit) return;
    place = hit.at;
    show();
    select(hit.cell);
  };

  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  stage.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) {
      const next = place + steps[event.key];
      if (next >= 0 && next < count) place = next;
    } else if (event.key === "Home") place = 0;
    else if (event.key === "End") place = count - 1;
    else if (event.key === "Enter" || event.key === " ") select();
    else if (event.key === "+" || event.key === "=") zoomBy(2);
    else if (event.key === "-") zoomBy(0.5);
    else if (event.key === "0") zoomBy(1 / 16);
    else if (event.key === "/") {
      label.hidden = false;
      jump.value = "";
      jump.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
    show();
  };
  jump.onkeydown = (event) => {
    event.stopPropagation();
    if (event.key !== "Enter" && event.key !== "Escape") return;
    const wanted = data.order.indexOf(Number(jump.value));
    if (event.key === "Enter" && jump.value.trim() !== "" && wanted < 0) {
      output.textContent = `There is no channel ${jump.value} among those shown.`;
      return;
    }
    label.hidden = true;
    stage.focus();
    if (event.key === "Enter" && wanted >= 0) {
      place = wanted;
      show();
      select();
    }
  };

  picture.alt = data.alt;
  if (picture.dataset.wanted !== data.picture) {
    picture.dataset.wanted = data.picture;
    const next = new Image();
    next.src = data.picture;
    next.decode().then(() => {
      if (picture.dataset.wanted !== data.picture) return; // a newer one is on its way
      picture.src = data.picture;
      picture.width = width;
      picture.height = height;
    });
  }
  colourBar(find, data.bar, data.ticks);
  show();
}
