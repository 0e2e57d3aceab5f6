// The network as a tree: stages that open and close, and in them their layers, each with a small
// picture of its mean activation and its facts. A field above narrows it to what is typed.

const FRAME = `
  <nav aria-label="Layers of the network">
    <input type="search" placeholder="Find a layer" aria-label="Find a layer">
    <div class="tree"></div>
    <p class="none" hidden>No layer of that name.</p>
  </nav>`;

export default function ({ data, parentElement, setTriggerValue }) {
  const find = frame(parentElement, FRAME);
  const [tree, search, none] = [".tree", "input", ".none"].map(find);

  // Built anew only for another network: a tree that is rebuilt would close and jump.
  if (tree.dataset.network !== data.network) {
    tree.dataset.network = data.network;
    search.value = "";
    tree.replaceChildren(
      ...data.stages.map((stage) => {
        const part = document.createElement("details");
        const title = document.createElement("summary");
        title.textContent = stage.name;
        const count = document.createElement("span");
        count.textContent = stage.layers.length;
        title.append(count);
        part.append(title, ...stage.layers.map(row));
        return part;
      }),
    );
  }

  function row(layer) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.name = layer.name;
    const picture = document.createElement("span");
    picture.className = "preview";
    const words = document.createElement("span");
    words.className = "words";
    const [name, shape, work] = ["b", "span", "span"].map((kind) => document.createElement(kind));
    name.textContent = layer.short;
    shape.textContent = layer.shape;
    work.textContent = layer.work;
    words.append(name, shape, work);
    button.title = layer.title;
    button.append(picture, words);
    return button;
  }

  const buttons = [...tree.querySelectorAll("button")];
  for (const button of buttons) {
    const preview = button.firstElementChild;
    const corner = data.previews?.corners[button.dataset.name];
    preview.style.backgroundImage = corner ? `url(${data.previews.picture})` : "none";
    if (corner) {
      const [width, height] = data.previews.size;
      const zoom = 32 / data.previews.side;
      preview.style.backgroundSize = `${width * zoom}px ${height * zoom}px`;
      preview.style.backgroundPosition = `${-corner[0] * zoom}px ${-corner[1] * zoom}px`;
    }
    button.onclick = () => setTriggerValue("picked", button.dataset.name);
    button.onkeydown = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const seen = buttons.filter((other) => other.offsetParent);
      seen[seen.indexOf(button) + step]?.focus();
    };
  }

  const narrow = () => {
    const wanted = search.value.trim().toLowerCase();
    for (const button of buttons) button.hidden = !button.dataset.name.toLowerCase().includes(wanted);
    for (const part of tree.children) {
      const left = [...part.querySelectorAll("button")].some((button) => !button.hidden);
      part.hidden = !left;
      if (wanted && left) part.open = true;
    }
    none.hidden = buttons.some((button) => !button.hidden);
  };
  search.oninput = narrow;
  search.onkeydown = (event) => event.stopPropagation(); // P and N are letters here
  narrow();

  const moved = tree.dataset.chosen !== data.chosen;
  tree.dataset.chosen = data.chosen;
  for (const button of buttons) {
    const chosen = button.dataset.name === data.chosen;
    button.setAttribute("aria-current", chosen);
    if (!chosen || !moved) continue;
    button.parentElement.open = true;
    const [box, view] = [button.getBoundingClientRect(), tree.getBoundingClientRect()];
    if (box.top < view.top || box.bottom > view.bottom) {
      tree.scrollTop += box.top - view.top - (view.height - box.height) / 2; // and not the page
    }
  }
}
