// One panel of a lens: its title, what is drawn, and the words under it. What it needs around it, it
// says by its shape; how large it is then, it is told.

import { segmented } from "../../explorer/client/segmented.js";
import { say, typeSize } from "../../explorer/client/shared.js";
import { leaveSprite, loadSprite } from "../../explorer/client/sprite.js";
import { tileGrid } from "../../explorer/client/tile_grid.js";
import { onPhone } from "../../explorer/client/tiling.js";
import { drawChart } from "./chart.js";

const TYPE = 13.6; // pixels of a panel's type, and of its title's; before a class they are larger
const TITLE_TYPE = 16;
const LETTER = 6.3; // pixels that a letter of the words below takes, and that their lines are apart
const LINE = 18;
const TITLE_LETTER = 8.2;
const TITLE_LINE = 23;
const SMALL = 320; // pixels that a picture may be wide however few it has
const HEAD = 52; // pixels of a grid's colour bar and line that reads out
const HEAD_NARROW = 80; // where they stand one above the other, in less than so many pixels
const NARROW = 544;
const NUMBERED = 22; // pixels of a tile that has room for its number
const SMALLEST = 14; // pixels of a tile, where all are to be seen at once
const ALONE = 400; // pixels that one map alone is wide, or high, at most
const FEW = 4; // tiles that stand in one row
const LONGEST_NAME = 100; // pixels that a turned name of a chart takes
const ROW = 27; // pixels of a table's row

/** @type {Record<string, Function>} */
const KINDS = {};

// Whether it is shown before a class, and how many times as large its words are then.
const isBeforeClass = (/** @type {Element} */ element) => typeSize(element, 0) > 0;
const larger = (/** @type {Element} */ element, usual = TYPE) => typeSize(element, usual) / usual;

/**
 * A panel of that kind in `parent`.
 * @param {string} kind
 * @param {HTMLElement} parent
 * @param {{pick: (picked: Facts) => void, refit: () => void, faded: (share: number) => void}} callbacks
 */
export const panelOf = (kind, parent, { pick, refit, faded }) => {
  const root = document.createElement("section");
  root.className = `panel ${kind}`;
  const [title, body, caption] = ["h3", "div", "p"].map((tag) => root.appendChild(document.createElement(tag)));
  body.className = "body";
  caption.className = "caption";
  parent.append(root);
  /** @type {Facts} */
  let facts = {};
  const inner = KINDS[kind](body, { pick, refit, faded, caption });
  const lines = (text, wide, letter) => Math.ceil((text.length * letter) / Math.max(60, wide));
  const words = (wide) => {
    const [title, text] = [larger(root, TITLE_TYPE), larger(root)];
    const above = facts.title ? title * TITLE_LINE * lines(facts.title, wide, title * TITLE_LETTER) + 6 : 0;
    return above + (caption.textContent ? text * LINE * lines(caption.textContent, wide, text * LETTER) + 6 : 0);
  };
  return {
    kind,
    show: (next, part) => {
      facts = next;
      title.textContent = next.title;
      title.hidden = !next.title;
      caption.textContent = next.caption;
      inner.show(next, part);
      caption.hidden = !caption.textContent;
    },
    /** @param {number} width of the board @returns {import("./panel_rows.js").Shape} */
    shape: (width) => {
      const { around = () => 0, ...shape } = inner.shape(width);
      return { ...shape, around: (wide) => words(wide) + around(wide) };
    },
    /**
     * @param {import("./panel_rows.js").Size} size
     * @param {number} after pixels that stay free at its right
     */
    fit: ({ wide, high }, after) => {
      root.style.width = `${wide}px`;
      root.style.marginRight = `${after}px`;
      inner.fit(wide, high);
    },
    /** @param {number} share of the map in the picture */
    fade: (share) => inner.fade?.(share),
    end: () => {
      inner.end?.();
      root.remove();
    },
  };
};

const made = (parent, tag, name) => {
  const element = document.createElement(tag);
  element.className = name;
  parent.append(element);
  return element;
};

KINDS.image = (body, { refit, faded }) => {
  const lower = made(body, "img", "picture lower");
  const upper = made(body, "img", "picture");
  const opacity = made(body.parentNode, "label", "opacity");
  const slider = made(opacity, "input", "");
  opacity.prepend(say("Opacity"));
  Object.assign(slider, { type: "range", min: 0, max: 100 });
  /** @type {Facts} */
  let facts = {};
  let given = -1;
  const fade = (share) => {
    if (opacity.hidden) return;
    slider.value = String(100 * share);
    upper.style.opacity = String(share);
  };
  slider.oninput = () => faded(slider.value / 100); // of all at once, to compare them
  const numbers = made(body, "div", "numbers");
  const load = (picture, key, bytes) => loadSprite(picture, key, bytes, { there: refit, failed: () => {} });
  return {
    show: (next, part) => {
      facts = next;
      const isOver = Boolean(next.lower);
      upper.alt = next.alt;
      lower.alt = "";
      lower.hidden = opacity.hidden = !isOver;
      if (isOver) {
        load(lower, next.lowerKey, part(next.lower));
        if (given !== next.opacity) fade(next.opacity);
        given = next.opacity;
        slider.setAttribute("aria-label", say("Opacity of the map: {title}", { title: next.title }));
      } else upper.style.opacity = "";
      load(upper, next.key, part(next.picture));
      numbers.replaceChildren(
        ...(next.tiles?.places ?? []).map(([left, top], at) => {
          const tag = document.createElement("span");
          tag.textContent = String(at);
          tag.className = left === next.tiles.places[0][0] ? "first" : "";
          tag.style.left = `${100 * left}%`;
          tag.style.top = `${100 * top}%`;
          return tag;
        }),
      );
    },
    shape: () => ({
      aspect: facts.width / facts.height,
      stretch: facts.width / facts.height,
      most: Math.max(facts.width, Math.min(SMALL, (SMALL * facts.width) / facts.height)),
      least: [onPhone() ? 150 : isBeforeClass(body) ? SMALL : 190, 90],
      around: () => (facts.lower && !isBeforeClass(body) ? 34 : 0),
    }),
    fit: (wide, high) => {
      body.style.width = `${wide}px`;
      body.style.height = `${high}px`;
      const tile = wide * (facts.tiles?.wide ?? 0);
      numbers.hidden = tile < NUMBERED;
      numbers.classList.toggle("few", tile < 2 * NUMBERED); // the first of each row
    },
    fade,
    end: () => {
      leaveSprite(upper);
      leaveSprite(lower);
    },
  };
};

KINDS.grid = (body, { pick, refit, caption }) => {
  const states = made(body.parentNode, "div", "states");
  body.before(states);
  /** @type {Facts} */
  let facts = {};
  let state = "";
  let high = 200;
  /** @type {(range: number[]) => Uint8Array<ArrayBuffer>} */
  let part = () => new Uint8Array();
  const tiles = tileGrid(body, {
    pick: (channel, cell) => facts.leads && pick({ channel, cell }),
    room: () => high,
    sizes: { numbered: NUMBERED, smallest: SMALLEST, fewest: 2 },
  });
  const shown = () => facts.states.find(({ name }) => name === state) ?? facts.states.at(-1);
  const show = () => {
    const { tiles: these, picture, words } = shown();
    caption.textContent = words;
    tiles.show(these, part(picture), null);
  };
  const choice = segmented(states, (chosen) => {
    state = chosen;
    show();
    refit();
  });
  return {
    show: (next, parts) => {
      [facts, part] = [next, parts];
      body.classList.toggle("leads", next.leads);
      const names = next.states.map(({ name }) => name);
      const chosen = shown().name;
      choice.show(
        names.length > 1
          ? { label: say("State"), options: names.map((name) => ({ value: name, says: name })), chosen }
          : null,
      );
      show();
    },
    shape: (width) => {
      const { order, geometry } = shown().tiles;
      const aspect = geometry.tile[1] / geometry.tile[0];
      const alone = order.length === 1;
      const least = onPhone() ? width : Math.min(width, larger(body) * (alone ? 200 : 300));
      return {
        aspect: order.length <= FEW ? order.length * aspect : Math.min(4, Math.max(aspect, 1.2)),
        // a phone's page is as wide as it; one map alone has no use for more, but its words have
        stretch: onPhone() ? width : Math.max(3 * aspect, 3),
        most: alone ? ALONE * Math.max(1.4, aspect) : width,
        tallest: alone ? ALONE * Math.max(1, 1 / aspect) : Infinity,
        least: [least, alone || onPhone() ? 80 : 130],
        free: isBeforeClass(body),
        around: (wide) => {
          const head = larger(body) * (wide < NARROW ? HEAD_NARROW : HEAD);
          return head + (facts.states.length > 1 ? 46 : 0) + (onPhone() ? 44 : 0);
        },
      };
    },
    fit: (wide, tall) => {
      body.style.width = `${wide}px`;
      high = tall;
      tiles.fit();
    },
    end: tiles.end,
  };
};

KINDS.chart = (body, { pick }) => {
  /** @type {Facts} */
  let facts = {};
  let end = () => {};
  return {
    show: (next) => {
      facts = next;
      end();
      end = drawChart(body, next, (position) => pick({ position }));
    },
    shape: (width) => ({
      aspect: 1.7,
      stretch: 4,
      most: Math.min(width, 900),
      least: [Math.min(width, larger(body) * 220), 90],
      free: isBeforeClass(body),
      around: (wide) => {
        const longest = Math.max(...facts.labels.map((label) => label.length)) * 7 * larger(body);
        const room = (wide - 75) / facts.labels.length;
        const isTurned = longest > room && facts.labels.length <= 40 && room > 11;
        return larger(body) * (36 + (isTurned ? Math.min(LONGEST_NAME, longest) + 8 : 22));
      },
    }),
    fit: (_wide, high) => body.style.setProperty("--chart-high", `${high}px`),
    end: () => end(),
  };
};

KINDS.table = (body) => {
  /** @type {Facts} */
  let facts = {};
  const table = made(body, "table", "");
  return {
    show: (next) => {
      facts = next;
      const row = (cells, tag) => {
        const line = document.createElement("tr");
        cells.forEach((text) => {
          made(line, tag, /^[−\d]/.test(text) ? "number" : "").textContent = text;
        });
        return line;
      };
      table.replaceChildren(row(next.columns, "th"), ...next.rows.map((cells) => row(cells, "td")));
    },
    shape: (width) => {
      const letters = facts.columns.map((name, at) =>
        Math.max(name.length, ...facts.rows.map((cells) => cells[at].length)),
      );
      const wide = letters.reduce((sum, count) => sum + larger(table) * 7.4 * count + 18, 4);
      return {
        fixed: true,
        aspect: 1,
        stretch: 0,
        most: width,
        least: [Math.min(width, Math.ceil(wide)), larger(table) * ROW * (facts.rows.length + 1)],
      };
    },
    fit: () => {},
  };
};
