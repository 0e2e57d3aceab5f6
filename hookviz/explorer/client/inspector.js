// One channel picked up: its map, its place on the photograph, why a cell has its value, and more of
// it. What the browser has is shown at once; the rest is asked for, and comes when it comes.

import { layerOf } from "./address.js";
import { newest } from "./asking.js";
import { bothMaps } from "./both_maps.js";
import { boxOf } from "./boxes.js";
import { cellOf, inLink } from "./cells.js";
import { channelQuestions } from "./channel_questions.js";
import { excites } from "./excites.js";
import { hints, picked as hintsKnown, ofOpening } from "./hints.js";
import { keepMenu } from "./keep.js";
import { ofStep, channelOf as picked } from "./link.js";
import { onPhotograph } from "./on_photograph.js";
import { origin } from "./origin.js";
import { ownPicture } from "./own_picture.js";
import { urls } from "./pictures.js";
import { keysOf } from "./place.js";
import { frame, say } from "./shared.js";
import { sign } from "./signs.js";
import { wayBack } from "./trail.js";

// What Escape ends instead of the channel: a list, what is typed, and what lies over the page.
const ENDS_ITSELF = "select, input[type='text'], input[type='search'], [role='combobox'], [contenteditable], dialog";
const OVER = "[data-testid='stPopoverBody'], [role='dialog'], [role='listbox']";

const FRAME = `
  <section class="inspector">
    <div class="hints-place"></div>
    <div class="hv-picked" hidden>
      <header class="title-line">
        <h3 tabindex="-1"></h3>
        <div class="keep-place"></div>
        <button type="button" class="close" title="Back to all channels"><span class="unseen">Close</span></button>
      </header>
      <p class="opening" hidden></p>
      <button type="button" class="plain trail" hidden></button>
      <div class="two">
        <div class="of-a"><p class="name">A</p><div class="map-a"></div></div>
        <div class="of-b"><p class="name">B</p><div class="map-b"></div></div>
        <div class="of-difference"><p class="name">B − A</p><div class="map-difference"></div></div>
        <div class="photograph-place"></div>
        <div class="in-common"></div>
      </div>
      <p class="small caption"></p>
      <p class="error small" role="status"></p>
      <div class="rest">
        <div class="origin-place"></div>
        <div class="excites-place"></div>
        <div class="own-place"></div>
      </div>
    </div>
  </section>`;

/**
 * The channel that a link names, if it is among those that are shown; else null.
 * @param {string | undefined} text
 * @param {number[]} order
 * @returns {number | null}
 */
export const channelOf = (text, order) => {
  const channel = picked({ channel: text ?? "" });
  return channel !== null && order.includes(channel) ? channel : null;
};

/**
 * What surrounds the inspector.
 * @typedef {object} Context
 * @property {(question: Facts, options?: any) => Promise<{facts: Facts, data: Uint8Array<ArrayBuffer>}>} ask
 * @property {(words: Record<string, string | null>) => void} change writes words of the link
 * @property {(facts: Facts) => void} opened something that only the page can do
 * @property {import("./channel_questions.js").ChannelQuestion[]} channelQuestions
 * @property {() => import("./explorer.js").Opening | null} opening
 * @property {(channel: number, of?: "a" | "b") => HTMLCanvasElement | null} tileOf a pixel for each cell
 * @property {(channel: number, row: number, column: number) => number | null} valueAt by its colour
 * @property {() => void} closed takes the focus
 */

/**
 * @param {HTMLElement} parent
 * @param {Context} context
 */
export function inspector(parent, context) {
  const find = frame(parent, FRAME);
  const [place, title, error] = [".hv-picked", "h3", ".error"].map(find);
  // About what is shown, be the page's newest view another, whose answers are on their way.
  const asks = (/** @type {Facts} */ question, options = {}) => context.ask(question, { ...options, view, subject });
  const questions = newest(asks);
  const url = urls("image/jpeg");
  let [view, layers, tiles] = [/** @type {Record<string, string>} */ ({}), null, null].map(
    (each) => /** @type {any} */ (each),
  );
  let subject = "";
  /** @type {Facts | null} */
  let field = null;
  /** @type {Facts | null} */
  let ground = null; // of the photograph
  let wasPut = false; // no channel was picked up a while ago
  /** @type {{channel: number, rows: number, columns: number, cell: [number, number], isOfA: boolean} | null} */
  let at = null;

  // What answers depend on beside image and network, which are the subject: the layer; and how it is drawn.
  const seen = () => (layers?.moves ? [subject, ofStep(view)] : subject); // of a clip the frame is
  const ofLayer = () => [subject, layers.listed, layers.layer, layers.step];
  const asDrawn = () => [ofLayer(), tiles.key, view.scale, view.colours, view.held];

  const change = (/** @type {Record<string, string | null>} */ words) => {
    view = Object.fromEntries(Object.entries({ ...view, ...words }).filter(([, word]) => word !== null));
    draw(); // at once; the page around follows
    context.change(words);
  };
  const look = (/** @type {[number, number]} */ cell) => at && change({ cell: inLink(cell, at.rows, at.columns) });
  const close = () => {
    context.closed();
    change({ channel: null });
  };
  // What was pressed for it goes or is about something else then; the title says what is looked at.
  const go = (/** @type {number} */ input, /** @type {string} */ layer) => {
    title.focus({ preventScroll: true });
    context.change({ layer, channel: String(input) });
  };
  const went = (/** @type {number} */ input, /** @type {string} */ address) => go(input, layerOf(address));
  const trail = wayBack(find(".trail"), go);
  const lens = (/** @type {string} */ name, /** @type {Record<string, string>} */ settings = {}) =>
    context.opened({ lens: { lens: name, layer: layers.layer, ...settings } });

  const ofHints = hints(find(".hints-place"), (isFirst) => parent.classList.toggle("hints-first", isFirst));
  const maps = bothMaps(find, {
    tileOf: context.tileOf,
    valueAt: context.valueAt,
    picked: look,
    came: () => drawMaps(),
  });
  const photograph = onPhotograph(find(".photograph-place"));
  const otherImages = () => context.opened({ atlas: true });
  const found = excites(find(".excites-place"), {
    led: (leads) => context.opened({ leads }),
    asked: otherImages,
  });
  const own = ownPicture(find(".own-place"), {
    questions,
    ask: asks,
    change: (made) => change({ made }),
    lens: ({ channel, ...settings }) => {
      const named = Object.entries(settings).map(([name, value]) => [`maximize-${name}`, value]);
      lens("maximize", { channel, ...Object.fromEntries(named) });
    },
  });
  const more = origin(find(".origin-place"), {
    questions,
    followed: (input, layer) => {
      if (at) trail.add(at.channel, layers.layer);
      went(input, layer);
    },
    went,
    picked: look,
    change: (word) => {
      place.style.minHeight = `${place.offsetHeight}px`; // what scrolls stays where it is, be it lower
      change({ origin: word });
    },
  });
  const keep = keepMenu(find(".keep-place"), (kind) => asks({ name: "file", kind, channel: at?.channel }));

  find(".keep .among").onclick = otherImages;
  find(".across").onclick = () => at && lens("across-images", { channel: String(at.channel) });
  find(".close").insertAdjacentHTML("afterbegin", sign("close"));
  find(".close").onclick = close;
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !at || event.defaultPrevented) return;
    const target = /** @type {Element} */ (event.composedPath()[0]);
    const isElsewhere = target.closest?.(ENDS_ITSELF) || document.querySelector(OVER)?.checkVisibility();
    if (!isElsewhere) close();
  };
  const keys = keysOf(place);
  keys.addEventListener("keydown", pressed);

  const asksAbout = channelQuestions(find(".questions"), context.channelQuestions, (words) =>
    context.opened({ lens: words }),
  );
  const isPair = () => Boolean(tiles.compare?.alike && (tiles.pair || tiles.isDifference));

  const drawMaps = () => {
    if (!at) return;
    const answer = questions.known(asked(), asDrawn())?.facts ?? null;
    const picture = maps.show(at, { key: JSON.stringify(asDrawn()), answer, tiles, isPair: isPair() });
    if (at.isOfA) return;
    if (picture) {
      const { alt } = questions.known({ name: "photograph" }, seen())?.facts ?? { alt: "" };
      const says = say("The map of channel {channel} laid over the image: {alt}", { channel: at.channel, alt });
      photograph.lay(picture, at.rows, at.columns, says);
    }
    photograph.frame(field && boxOf(field, at.cell), field?.says);
  };
  const asked = () => ({ name: "channel", channel: at?.channel, ...(at?.isOfA ? { of: "a" } : {}) });
  const failed = (/** @type {string} */ words) => {
    error.textContent = words;
  };

  const ask = () => {
    if (!at) return;
    const { channel, isOfA } = at;
    questions.ask(asked(), asDrawn(), {
      answered: ({ facts }) => {
        find(".caption").textContent = facts.caption ?? "";
        more.numbers(facts, facts.colours ?? "RdBu_r");
        drawMaps();
      },
      failed,
    });
    if (isOfA) return;
    if (!layers.patches && !layers.isUsual) return;
    const question = { name: "excites", channel };
    if (!questions.known(question, ofLayer())) found.waits(Boolean(layers.patches));
    questions.ask(question, ofLayer(), { answered: ({ facts }) => found.show(facts), failed });
  };

  const drawHints = () => {
    at = null;
    for (const name of ["channel", "cell", "kernel", "walk", "excites", "own_picture"]) questions.leave(name);
    keep.close();
    if (tiles.isOfA) ofHints.ofA();
    else if (isPair()) {
      questions.ask({ name: "changes" }, asDrawn(), {
        answered: ({ facts }) => ofHints.ofPair(facts),
        failed: ofHints.fails,
      });
    } else ofHints.ofTiles(layers.shape?.[0] ?? tiles.order.length);
  };

  const draw = () => {
    if (!layers || !tiles) return;
    if (!tiles.isOfA) {
      questions.ask({ name: "photograph" }, seen(), {
        answered: ({ facts, data }) => {
          if (facts === ground) return;
          ground = facts;
          photograph.of(facts, url.of(data));
          drawMaps();
        },
        failed,
      });
    }
    const channel = channelOf(view.channel, tiles.order);
    place.hidden = channel === null;
    find(".hints-place").hidden = channel !== null;
    if (channel === null) {
      wasPut = true;
      drawHints();
      return;
    }
    if (wasPut) hintsKnown();
    parent.classList.remove("hints-first");
    const { rows, columns } = tiles;
    const isOfA = Boolean(tiles.isOfA);
    if (channel !== at?.channel) place.style.minHeight = "";
    at = { channel, rows, columns, cell: cellOf(view.cell, rows, columns, tiles.strongest[channel]), isOfA };
    const words = isOfA ? say("Channel {channel} of A", { channel }) : say("Channel {channel}", { channel });
    const isClass = !isOfA && layers.classes?.length;
    title.textContent = isClass ? `${words} · ${layers.classes[channel]}` : words;
    const opening = context.opening();
    const isOpening = !isOfA && opening?.layer === layers.layer && opening?.channel === String(channel);
    find(".opening").hidden = !isOpening;
    if (isOpening) ofOpening(find(".opening"), opening.part);
    trail.show(!isOfA);
    place.classList.toggle("of-pair", isPair());
    place.classList.toggle("with-difference", isPair() && Boolean(tiles.isDifference));
    place.classList.toggle("of-a-alone", isOfA);
    find(".excites-place").hidden = find(".keep .among").hidden = !layers.patches && !layers.isUsual;
    error.textContent = "";
    drawMaps();
    ask();
    if (isOfA) return;
    asksAbout.show({ layer: layers.layer, channel, hasWeights: layers.hasWeights });
    own.show(channel, view.made, tiles.order, [subject, layers.layer, layers.step]);
    more.show({ ...at, isConv: layers.isConv, origin: view.origin, about: ofLayer() });
  };

  return {
    /**
     * @param {Record<string, string>} newView a link's words
     * @param {Facts | null} newLayers the answer to the question "layers" about it
     * @param {Facts | null} newTiles the answer to the question "tiles" about it
     * @param {string} newSubject what all three are about
     */
    show(newView, newLayers, newTiles, newSubject) {
      if (newSubject !== subject) questions.forget();
      [view, layers, tiles, subject] = [newView, newLayers, newTiles, newSubject];
      draw();
    },
    /**
     * What the layer's cells see of the photograph, as soon as it is known.
     * @param {Facts | null} facts the answer to the question "field"
     */
    sees(facts) {
      field = facts;
      if (facts) drawMaps();
    },
    end() {
      questions.end();
      more.end();
      own.end();
      keep.end();
      url.end();
      keys.removeEventListener("keydown", pressed);
    },
  };
}
