// The presenter's buttons: into the view and to the slides, the bar while it is there, the slide
// list, and the link for the class with its QR code. What they do is in ui/presenting/*.js.

import { frame, unpacked } from "../../explorer/client/shared.js";

const SIGNS = {
  start: '<path d="M3 4h18M4 4v11h16V4M12 15v3M8 21l4-3 4 3"/>',
  slides: '<path d="M4 5h16v11H4zM8 20h8"/>',
  earlier: '<path d="M15 5l-7 7 7 7"/>',
  later: '<path d="M9 5l7 7-7 7"/>',
  up: '<path d="M5 15l7-7 7 7"/>',
  down: '<path d="M5 9l7 7 7-7"/>',
  code: '<path d="M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h2v2M20 14v6h-6"/>',
  ring: '<circle cx="12" cy="12" r="8"/>',
  leave: '<path d="M6 6l12 12M18 6L6 18"/>',
};
const sign = (name) => `<svg viewBox="0 0 24 24" aria-hidden="true">${SIGNS[name]}</svg>`;
const button = (name, words = "") => `<button type="button" class="${name}">${sign(name)}${words}</button>`;

const WORD = '<span class="word"></span>';

const FRAME = `
  <div class="presenter">
    <div class="corner">${button("start", WORD)}${button("slides", WORD)}</div>
    <div class="bar" role="toolbar" hidden>
      ${button("earlier")}<output></output>${button("later")}<p class="told"></p>
      ${button("slides", WORD)}${button("code", WORD)}${button("ring", WORD)}${button("leave", WORD)}
    </div>
    <dialog class="list">
      <div class="head"><h2></h2><button type="button" class="first start"></button>${button("leave")}</div>
      <div class="row"><button type="button" class="first add"></button><button type="button" class="code"></button></div>
      <p class="none"></p>
      <ol></ol>
      <p class="fault" role="alert"></p>
      <div class="row">
        <button type="button" class="export"></button>
        <label class="file"><span></span><input accept=".json,application/json"></label>
        <button type="button" class="empty"></button>
        <button type="button" class="undo"></button>
      </div>
      <p class="keys"></p>
    </dialog>
    <dialog class="code">
      <div class="head"><h2></h2>${button("leave")}</div>
      <img hidden>
      <p class="link"></p>
      <p class="about"></p>
    </dialog>
  </div>`;

const MOST_LETTERS = 500001; // of a file; one more than the server takes, for it to say so
const filled = (text, facts) => text.replace(/\{(\w+)\}/g, (_, name) => facts[name]);

// The page's own scripts may come a moment later than this one.
export default function (component) {
  if (window.hookvizPresenting) return show(component);
  /** @type {(() => void) | undefined} */
  let stop;
  const ready = () => {
    stop = show(component);
  };
  window.addEventListener("hookviz:presenting", ready, { once: true });
  return () => {
    window.removeEventListener("hookviz:presenting", ready);
    stop?.();
  };
}

// What the keys do on the page that is shown.
const toldOf = (hasSlides, told) => {
  const said = window.hookvizLink();
  const lesson = said.get("lesson");
  const steps = lesson ? (lesson === "all" ? "" : told.steps) : told.layers;
  const tiles = lesson || said.get("lens") ? "" : told.tiles;
  return [steps && hasSlides && told.slides, steps, tiles].filter(Boolean).join(" · ");
};

function show({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const { words } = data;
  const find = frame(parentElement, FRAME);
  const all = (selector) => [...parentElement.querySelectorAll(selector)];
  const [bar, list, code, rows, fault] = [".bar", "dialog.list", "dialog.code", "ol", ".fault"].map(find);
  const { hookvizSlides: slides, hookvizPresenting: view } = window;
  const asked = () => `${Date.now()} ${Math.random()}`;

  // ── words and what a click does ──
  const set = (selector, label, act, shown = false) => {
    for (const each of all(selector)) {
      if (shown) each.textContent = label;
      else each.title = each.ariaLabel = label;
      each.onclick = act;
    }
  };
  const open = (dialog) => {
    for (const each of [list, code]) if (each !== dialog) each.close();
    if (!dialog.open) dialog.showModal();
  };
  const openList = () => {
    find(".file input").type = "file"; // not before: the page has another one to be found
    fault.textContent = "";
    paint();
    open(list);
  };
  const openCode = () => {
    code.dataset.asked = asked();
    setTriggerValue("asked", { query: `?${window.hookvizLink()}`, number: code.dataset.asked });
    find(".link").textContent = words.making;
    find("dialog.code img").hidden = true;
    find(".about").textContent = "";
    open(code);
  };
  const start = () => {
    list.close();
    view.toggle(true);
  };
  set(".corner .start", words.start, start);
  set("dialog .start", words.start, start, true);
  set(".slides", words.slides, openList);
  set(".earlier", words.earlier, () => view.step(-1));
  set(".later", words.later, () => view.step(1));
  set(".bar .code", words.code, openCode);
  set("dialog.list .code", words.code, openCode, true);
  set(".ring", words.ring, () => view.point());
  set(".bar .leave", words.leave, () => view.toggle(false));
  set("dialog .leave", words.close, (event) => event.currentTarget.closest("dialog").close());
  set(".add", words.add, () => slides.add(), true);
  set(".export", words.export, save, true);
  set(".empty", words.empty, () => slides.save([]), true);
  set(".undo", words.undo, () => slides.undo(), true);
  for (const [name, word] of Object.entries(words.short)) {
    for (const each of all(`.${name} > .word`)) each.textContent = word;
  }
  find(".file span").textContent = words.import;
  find(".none").textContent = words.none;
  find(".keys").textContent = words.keys;
  find(".list h2").textContent = words.title;
  find(".code h2").textContent = words.class;
  bar.ariaLabel = words.bar;
  list.ariaLabel = words.title;
  code.ariaLabel = words.class;

  // ── the list ──
  const row = (slide, at, kept, shown) => {
    const line = document.createElement("li");
    const about = (text) => filled(text, { number: at + 1, title: slide.title });
    const control = (label, content, act, disabled = false) => {
      const made = document.createElement("button");
      made.type = "button";
      made.innerHTML = content; // one of the signs, or a number
      made.title = made.ariaLabel = about(label);
      made.onclick = act;
      made.disabled = disabled;
      return made;
    };
    const name = document.createElement("input");
    name.value = slide.title;
    name.maxLength = 80;
    name.ariaLabel = about(words.name);
    name.onchange = () => {
      const title = name.value.trim();
      if (title) slides.save(kept.map((one, index) => (index === at ? { ...one, title } : one)));
      else name.value = slide.title;
    };
    const move = (by) => () => {
      const moved = [...kept];
      moved.splice(at + by, 0, ...moved.splice(at, 1));
      slides.save(moved);
      const [up, down] = rows.children[at + by].querySelectorAll(".move");
      (by < 0 && !up.disabled ? up : down.disabled ? up : down).focus();
    };
    const remove = () => {
      slides.save(kept.filter((_, index) => index !== at));
      (rows.children[Math.min(at, kept.length - 2)]?.querySelector(".number") ?? find(".add")).focus();
    };
    const go = () => {
      list.close();
      slides.go(at);
    };
    const [number, up, down] = [
      control(words.go, String(at + 1), go),
      control(words.up, sign("up"), move(-1), at === 0),
      control(words.down, sign("down"), move(1), at === kept.length - 1),
    ];
    number.className = "number";
    up.className = down.className = "move";
    line.append(number, name, up, down, control(words.remove, sign("leave"), remove));
    line.setAttribute("aria-current", String(at === shown));
    return line;
  };
  const paint = () => {
    const kept = slides.list();
    const on = view.isOn();
    find(".corner").hidden = on;
    find(".corner .slides").hidden = kept.length === 0; // until then they are in the menu, and at L
    bar.hidden = !on;
    const shown = slides.at();
    rows.replaceChildren(...kept.map((slide, at) => row(slide, at, kept, shown)));
    find(".none").hidden = kept.length > 0;
    find(".export").disabled = find(".empty").disabled = kept.length === 0;
    find(".undo").disabled = !slides.canUndo();
    find(".add").disabled = kept.length >= slides.MOST;
    find("dialog.list .start").hidden = on;
    find(".ring").setAttribute("aria-pressed", view.isPointing());
    paintBar(kept, shown);
  };
  // At each change of the link; the list is open then for nobody.
  const paintBar = (kept = slides.list(), at = slides.at()) => {
    const facts = { number: at + 1, count: kept.length, title: kept[at]?.title };
    find(".bar output").textContent = kept[at]
      ? filled(words.at, facts)
      : kept.length
        ? filled(words.count, facts)
        : "";
    find(".bar output").hidden = kept.length === 0;
    find(".told").textContent = toldOf(kept.length > 0, words.told);
  };

  // ── files ──
  function save() {
    const written = JSON.stringify({ "hookviz-slides": data.version, slides: slides.list() }, null, 1);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([written], { type: "application/json" }));
    link.download = "hookviz-slides.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  const picker = find(".file input");
  picker.onchange = async () => {
    const [file] = picker.files;
    if (!file) return;
    const text = await file.slice(0, 4 * MOST_LETTERS).text();
    picker.value = "";
    fault.textContent = "";
    list.dataset.asked = asked();
    setTriggerValue("brought", { text: text.slice(0, MOST_LETTERS), number: list.dataset.asked });
  };

  // ── what the server answers ──
  const { answer } = data;
  if (answer && answer.number === list.dataset.asked) {
    list.dataset.asked = "";
    if (answer.fault) fault.textContent = answer.fault;
    else slides.save([...slides.list(), ...answer.slides]);
  } else if (answer && answer.number === code.dataset.asked) {
    code.dataset.asked = "";
    const picture = find("dialog.code img");
    picture.src = answer.picture;
    picture.alt = words.picture;
    picture.hidden = false;
    const link = find(".link");
    link.textContent = answer.link;
    link.classList.toggle("long", answer.link.length > 60);
    find(".about").textContent = answer.about;
  }

  const linked = () => paintBar();
  const opened = (event) => (event.detail === "code" ? openCode() : openList());
  const events = {
    "hookviz:slides": paint,
    "hookviz:presenting": paint,
    "hookviz:link": linked,
    "hookviz:presenter": opened,
  };
  for (const [name, act] of Object.entries(events)) window.addEventListener(name, act);
  paint();
  return () => {
    for (const [name, act] of Object.entries(events)) window.removeEventListener(name, act);
  };
}
