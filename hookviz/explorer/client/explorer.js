// The explorer: which layer, its channels as tiles, and the one that is picked up. All that is chosen is
// one view, in one place; what a view looks like is asked for, and what is known is shown at once.

import { newest } from "./asking.js";
import { compareRow } from "./compare_row.js";
import { inspector } from "./inspector.js";
import { layerRow, stepKeys } from "./layer_row.js";
import { changed, channelOf, faceOf, isSame, ofLayer, ofStep } from "./link.js";
import { networkMap } from "./network_map.js";
import { keysOf, roomBelow } from "./place.js";
import { keepRevealed } from "./reveal.js";
import { explain, frame, make, say } from "./shared.js";
import { tileGrid } from "./tile_grid.js";
import { arranged } from "./tiles.js";
import { onPhone } from "./tiling.js";
import { treePlace } from "./tree_place.js";
import { viewRow } from "./view_row.js";
import { waits } from "./waits.js";

const PAGER = 52; // pixels for what turns the pages on a phone
const LEAST = 240; // pixels down that the tiles take, however small the window is

const FRAME = `
  <div class="explorer">
    <p class="warning" role="alert" hidden></p>
    <div class="first-row"><button type="button" class="seen-as"></button><div class="layer-place"></div><div class="view-place"></div></div>
    <div class="compare-place"></div>
    <div class="columns">
      <div class="main">
        <div class="whole-place"></div>
        <p class="error" role="alert" hidden></p>
        <div class="grid-place"></div>
        <p class="caption legend"></p>
        <div class="notes"></div>
        <p class="caption field"></p>
        <p class="caption cost"></p>
      </div>
      <div class="inspector-place"></div>
    </div>
    <p class="status" role="status" hidden></p>
  </div>`;

const caption = (/** @type {string} */ words) => make("p", { className: "caption" }, words);

/**
 * What is around the explorer: it knows nothing of it but this.
 * @typedef {object} Surroundings
 * @property {Record<string, string>} view what a link says of the explorer
 * @property {import("./link.js").Field[]} fields all that can be chosen
 * @property {string} subject tells what questions are about from what they were about before
 * @property {(question: Facts, options: {signal: AbortSignal, view: Record<string, string>, subject: string,
 *   on: (message: any) => void}) => Promise<{facts: Facts, data: Uint8Array<ArrayBuffer>}>} ask fails with
 *   an Error in a person's words
 * @property {(view: Record<string, string>, how: "push" | "replace", words: string[]) => void} changed a
 *   person chose: the view as it is now, and the words of it that the choice is about
 * @property {(facts: Facts) => void} opened something that only the page can do
 * @property {import("./channel_questions.js").ChannelQuestion[]} [questions] what can be asked about a channel elsewhere
 * @property {HTMLElement | ShadowRoot | null} [treeElement] where the tree of layers is to stand, if anywhere
 * @property {Opening | null} [opening] where a view begins that says nothing
 * @property {() => string[]} [early] the keys that were pressed before layers and tiles were there
 */

/**
 * A layer's channel that is worth a look, and the part of the image that it answers to.
 * @typedef {{layer: string, channel: string, part: string}} Opening
 */

/**
 * Put the explorer into an element.
 * @param {ParentNode & Node} element
 * @param {Surroundings} surroundings
 */
export const mount = (element, surroundings) => {
  const { fields, opened } = surroundings;
  const find = frame(element, FRAME);
  const [root, main, side] = [".explorer", ".main", ".inspector-place"].map(find);
  let { view, subject, opening = null } = surroundings;
  /** @type {any} */
  let layers = null;
  /** @type {any} */
  let answer = null; // to the question "tiles"
  /** @type {any} */
  let tiles = null; // as the view has them in order
  let letLie = () => {}; // leaves the tile of the channel that is picked up where it is
  const shown = { layers: "", tiles: "", step: "", compare: "", order: "" }; // what they are of
  /** @type {string | undefined} */
  let stayed; // the layer, while another subject was chosen
  /** @type {(() => string[]) | undefined} */
  let early = surroundings.early;

  const waiting = waits(find(".status"));
  const over = new AbortController(); // of all that is asked
  const ask = async (
    /** @type {Facts} */ question,
    /** @type {any} */ { signal, on, view: ofView, subject: of } = {},
  ) => {
    if ((of ?? subject) !== subject) throw new DOMException("nobody is asked about it any more", "AbortError");
    return waiting.during(question.name, (heard) =>
      surroundings.ask(question, {
        signal: signal ?? over.signal,
        view: ofLayer(ofView ?? view),
        subject,
        on: (message) => {
          heard(message);
          on?.(message);
        },
      }),
    );
  };
  const questions = newest(ask);

  const change = (/** @type {Record<string, string | number | null>} */ choices, how = "push") => {
    const next = changed(view, choices, fields);
    if (isSame(next, view)) return;
    view = next;
    try {
      surroundings.changed(view, /** @type {"push" | "replace"} */ (how), Object.keys(choices));
    } finally {
      refresh();
    }
  };

  const unpin = () => {
    grid.focus(); // the button goes
    opened({ unpin: true });
  };
  const layer = layerRow(find(".layer-place"), { change });
  const steps = stepKeys(layer.turn, keysOf(root));
  const compare = compareRow(find(".compare-place"), { change, unpin });
  // Of those in order of their maxima one looks at the maximum.
  const look = viewRow(find(".view-place"), {
    change: (choices) => change(choices.sort === "max" ? { ...choices, cell: null } : choices),
  });
  const grid = tileGrid(find(".grid-place"), {
    pick: (channel, cell) => {
      if (shown.step !== aboutStep()) return; // another layer is on its way
      const size = [tiles.rows, tiles.columns];
      if (cell && !tiles.isPatches && !tiles.picksStrongest) change({ channel, cell: [...cell, ...size].join(",") });
      else change({ channel, cell: null }); // at its strongest
    },
    room: (place) => Math.max(LEAST, roomBelow(place) - (onPhone() ? PAGER : 16)),
    turn: (by) => layer.turn(by),
    painted: () => picked(),
    failed: (words) => {
      shown.tiles = ""; // so that they are tried again
      failed(words);
    },
  });
  const inspected = inspector(side, {
    ask,
    change,
    opened,
    channelQuestions: surroundings.questions ?? [],
    opening: () => opening,
    tileOf: grid.tileOf,
    valueAt: grid.valueAt,
    closed: () => grid.focus(),
  });
  const about = (of = view) => JSON.stringify([subject, ofLayer(of)]);
  const aboutStep = () => JSON.stringify([subject, ofStep(view)]);
  const tree = treePlace({ ask, change, about });
  const seenAs = find(".seen-as");
  seenAs.onclick = () => change({ inside: view.inside === undefined ? "/" : null });
  const hasMap = fields.some(({ word }) => word === "inside"); // a saved page may have none
  /** @type {ReturnType<typeof networkMap> | null} */
  let map = null; // until somebody looks at it
  const drawMap = () =>
    networkMap(find(".whole-place"), {
      ask: (question, options) => ask(question, { view, ...options }),
      change,
      view: () => view,
      saysWhy: fields.some(({ word }) => word === "why"), // a saved page does not
    });
  const seeAs = () => {
    const isWhole = view.inside !== undefined;
    const wasWhole = root.classList.contains("is-whole");
    root.classList.toggle("is-whole", isWhole);
    seenAs.hidden = !hasMap;
    seenAs.title = isWhole ? say("All channels") : say("Whole network");
    const icon = make("i", { className: `icon ${isWhole ? "tiles" : "network"}`, ariaHidden: "true" });
    seenAs.replaceChildren(icon, make("span", {}, seenAs.title));
    if (isWhole) map ??= drawMap();
    map?.show(isWhole, subject);
    if (wasWhole && !isWhole) grid.fit(); // they had no room while they were hidden
  };
  tree.stand(surroundings.treeElement ?? null);

  // The channel beside the tiles; of tiles that are on their way it comes with them.
  const picked = () => {
    if (channelOf(view) === null) side.classList.remove("picked"); // at once, whatever is on its way
    if (shown.layers !== aboutStep() || shown.tiles !== about()) return;
    const at = () => tiles.order.indexOf(channelOf(view));
    const isOpened = at() >= 0 && !side.classList.contains("picked");
    side.classList.toggle("picked", at() >= 0);
    inspected.show(view, layers, tiles, subject);
    const isSheet = getComputedStyle(side).bottom !== "auto"; // which may lie over the tile
    if (!isOpened || !isSheet) return;
    letLie();
    letLie = keepRevealed(find(".stage"), side, at);
  };

  const write = (selector, words) => {
    const place = find(selector);
    place.hidden = !words;
    if (place.textContent !== words) place.textContent = words; // else it would be read out again
  };
  // Without an answer what is shown is of another view, and looks so.
  const fails = (/** @type {boolean} */ is) => root.classList.toggle("failed", is);
  const failed = (words) => {
    write(".error", words);
    main.classList.remove("stale");
    fails(true);
  };

  // A link can ask for a channel that the layer lacks.
  const warn = () => {
    const last = (layers.shape?.[0] ?? 0) - 1;
    const index = view.channel;
    const isThere = !index || last < 0 || (/^\d+$/.test(index) && Number(index) <= last);
    const lacks = () =>
      say("{layer} has no channel {index}: its channels are 0 to {last}.", {
        layer: layers.layer,
        index: index.slice(0, 40),
        last,
      });
    write(".warning", layers.warning || (isThere ? "" : lacks()));
  };

  const showLayers = (facts) => {
    if (facts.warning && view.layer && view.layer === stayed) {
      // of the network before: no link asks for it
      change({ layer: facts.layer === facts.options[0].name ? null : facts.layer }, "replace");
      return;
    }
    layers = facts;
    shown.layers = aboutStep();
    layer.show(layers);
    look.show(layers, view);
    warn();
    tree.show(layers, view, subject);
    picked();
    replay();
  };

  // Keys that were pressed early: for the row of the layer and for the tiles, so when both are there.
  const replay = () => {
    if (!early || !layers || !tiles) return;
    const keys = early();
    early = undefined;
    for (const key of keys) steps.press(key) || grid.press(key);
  };

  // Which tiles are shown, and in which order: for that nobody is asked.
  const order = () => `${view.sort} ${view.top}`;
  const arrange = () => {
    tiles = arranged(answer.facts, view);
    shown.order = order();
    explain(find(".legend"), [...tiles.legend, [say("{text} {sentence}", { text: "", sentence: tiles.shown }), ""]]);
    grid.show(tiles, answer.data, channelOf(view));
  };

  const showTiles = (/** @type {import("./asking.js").Answered} */ answered) => {
    answer = answered;
    Object.assign(shown, { tiles: about(), step: aboutStep(), compare: view.compare });
    main.classList.remove("stale");
    write(".error", "");
    fails(false);
    const seen = { name: "field" };
    inspected.sees(questions.known(seen, aboutStep())?.facts ?? null);
    const { facts } = answer;
    compare.show(facts.compare);
    find(".notes").replaceChildren(...facts.notes.map(caption));
    find(".cost").textContent = facts.cost;
    arrange();
    picked();
    replay();
    // after all else: it takes a while for a network that is seen first
    questions.ask(seen, aboutStep(), {
      answered: ({ facts: field }) => {
        explain(find(".field"), field.facts);
        inspected.sees(field);
      },
      failed: (words) => explain(find(".field"), [[words, ""]]),
    });
  };

  // The picture of a pair's tiles holds both: to show the other one nobody is asked.
  const turnFace = () => {
    const face = faceOf(view);
    if (!tiles?.pair || !face || shown.tiles !== about({ ...view, compare: shown.compare })) return;
    const turned = (/** @type {any} */ facts) => ({
      ...facts,
      pair: { ...facts.pair, face },
      compare: { ...facts.compare, chosen: view.compare ?? "B" },
    });
    answer = { ...answer, facts: turned(answer.facts) };
    tiles = turned(tiles);
    Object.assign(shown, { tiles: about(), compare: view.compare });
    compare.show(tiles.compare);
    grid.turn(face);
  };

  const refresh = () => {
    seeAs();
    grid.choose(channelOf(view));
    if (view.layer) layer.mark(view.layer);
    turnFace();
    if (shown.layers === aboutStep()) {
      questions.leave("layers");
      layer.show(layers);
      look.show(layers, view);
      warn();
    } else questions.ask({ name: "layers" }, aboutStep(), { answered: ({ facts }) => showLayers(facts), failed });
    if (shown.tiles === about()) {
      questions.leave("tiles");
      if (shown.order !== order()) arrange();
      write(".error", "");
      fails(false);
    } else questions.ask({ name: "tiles" }, about(), { answered: showTiles, failed });
    main.classList.toggle("stale", shown.tiles !== about());
    picked();
  };

  // A view that says nothing begins with the channel that is kept for its image and network. On a phone, where
  // a channel covers the tiles, with its layer.
  const begin = () => {
    if (!opening || Object.keys(view).length) return refresh();
    const { layer, channel } = opening;
    change(onPhone() ? { layer } : { layer, channel }, "replace");
  };

  root.dataset.mounted = "yes";
  begin();
  return {
    /**
     * Show another view, or another subject: the link or the page around has changed.
     * @param {Record<string, string>} next
     * @param {string} [other]
     * @param {Opening | null} [begins]
     */
    show: (next, other = subject, begins = opening) => {
      if (isSame(next, view) && other === subject) return;
      stayed = other !== subject && next.layer === view.layer ? next.layer : undefined;
      if (other !== subject) questions.forget();
      [view, subject, opening] = [next, other, begins];
      begin();
    },
    tree: tree.stand,
    end: () => {
      steps.end();
      look.end();
      letLie();
      over.abort();
      questions.end();
      inspected.end();
      grid.end();
      map?.end();
      tree.end();
      root.remove();
    },
  };
};
