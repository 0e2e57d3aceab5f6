// The explorer's questions, answered from what the page keeps. What is asked of it in the app, and is not
// kept here, says so.

import { say } from "../../explorer/client/shared.js";
import { anyCell } from "./any_cell.js";
import { float32Text, halves, wholeFloats } from "./halves.js";
import { mosaic, quantised } from "./levels.js";
import { palettesOf, wantedOf } from "./page_colours.js";
import { indexedPng } from "./png.js";
import { chosen, rowOf } from "./recorded.js";
import { wholeOf } from "./whole.js";

const OPEN = 3; // layers whose values stay unpacked: a large one's take a few million bytes
const DIGITS = 4; // of a value that was kept as float16
const NONE = new Uint8Array(0);

/**
 * What answers a page's questions.
 * @param {any} page what it keeps as a whole
 * @param {ReturnType<typeof import("./blocks.js").blocksOf>} blocks
 * @param {(text: string) => Uint8Array} bytesOf base64
 */
export const answering = (page, blocks, bytesOf) => {
  /** @type {Map<string, Promise<any>>} */
  const open = new Map();
  // Unpacked once, and the oldest of a kind are let go.
  const kept = (/** @type {string} */ kind, /** @type {number} */ at, /** @type {() => Promise<any>} */ unpack) => {
    const key = `${kind}-${at}`;
    const known = open.get(key) ?? unpack();
    open.delete(key);
    open.set(key, known);
    const alike = [...open.keys()].filter((each) => each.startsWith(`${kind}-`));
    if (alike.length > OPEN) open.delete(alike[0]);
    return known;
  };
  const facts = (/** @type {string} */ kind, /** @type {number} */ at) =>
    kept(kind, at, () => blocks.facts(`${kind}-${at}`));
  const numbersIn = async (/** @type {string} */ name) => (await blocks.unpacked(name)) ?? NONE;
  const valuesOf = (/** @type {number} */ at) =>
    kept("values", at, async () => halves(await numbersIn(`values-${at}`), (await facts("layer", at)).power));
  const numbersOf = (/** @type {number} */ at) =>
    kept("numbers", at, async () => {
      const [input, weights] = await Promise.all(
        ["input", "weights"].map(async (name) => wholeFloats(await numbersIn(`${name}-${at}`))),
      );
      return { input, weights };
    });
  const followedOf = (/** @type {number} */ at, /** @type {any} */ call) =>
    kept("steps", at, () =>
      Promise.all(call.steps.map(async (_, step) => halves(await numbersIn(`step-${step}-${at}`), call.powers[step]))),
    );

  const palettes = palettesOf(page.palettes, bytesOf);
  const coloursOf = (/** @type {any} */ wanted) => page.diverging[wanted[".theme"]];

  // The layer that a view means; another than it asks for is the first.
  const layerAt = (/** @type {Record<string, string>} */ view) => Math.max(0, page.names.indexOf(view.layer));

  const layers = (/** @type {any} */ { view, wanted, at }) => {
    const isHere = !view.layer || page.names.includes(view.layer);
    const warning = say("This page has no layer {layer}: this is its first.", { layer: view.layer });
    return { ...chosen(rowOf(page.layers, at), wanted), warning: isHere ? "" : warning };
  };

  const tiles = async (/** @type {any} */ { wanted, at }) => {
    const [{ tiles: said, call }, values] = await Promise.all([facts("layer", at), valuesOf(at)]);
    const answer = chosen(said, wanted);
    const { colormap, geometry, levels, rows, columns } = answer;
    const picture = mosaic(quantised(values, answer), geometry, page.gap);
    const ofTiles = {
      ...answer,
      key: `${at} ${colormap}`,
      palette: palettes.numbers(colormap),
      bar: palettes.bar(colormap, levels),
      picksStrongest: !call,
      exact: (/** @type {number} */ channel, /** @type {number} */ row, /** @type {number} */ column) =>
        values[(channel * rows + row) * columns + column],
    };
    return { facts: ofTiles, data: indexedPng(picture, geometry.width, palettes.bytes(colormap)) };
  };

  const channel = async (/** @type {any} */ { wanted, at }, /** @type {number} */ index) => {
    const [{ tiles: said }, ofChannels, values] = await Promise.all([
      facts("layer", at),
      facts("channels", at),
      valuesOf(at),
    ]);
    const { rows, columns, colormap, levels } = chosen(said, wanted);
    const map = values.slice(index * rows * columns, (index + 1) * rows * columns);
    const answer = chosen(rowOf(ofChannels, index), wanted);
    return {
      ...answer,
      colours: coloursOf(wanted),
      values: float32Text(map),
      digits: DIGITS,
      bar: palettes.bar(colormap, levels),
    };
  };

  const cell = async (/** @type {any} */ { wanted, at }, /** @type {any} */ place) => {
    const layer = await facts("layer", at);
    const { call, tiles: said } = chosen({ call: layer.call, tiles: layer.tiles }, wanted);
    const { rows, columns, strongest } = said;
    const { channel: index, row, column } = place;
    const colours = coloursOf(wanted);
    if (call) {
      const [numbers, values, after] = await Promise.all([numbersOf(at), valuesOf(at), followedOf(at, call)]);
      const of = (/** @type {Float32Array} */ all) => all[(index * rows + row) * columns + column];
      return { ...anyCell(call, numbers, [index, row, column], of(values), after.map(of)), colours };
    }
    const recorded = chosen(rowOf(await facts("cells", at), index), wanted);
    if (recorded.info || strongest[index] === row * columns + column) return { ...recorded, colours };
    const [down, across] = [Math.floor(strongest[index] / columns), strongest[index] % columns];
    const info = say(
      "This page has the sum of each channel's strongest cell, here row {row}, column {column}. " +
        "Saved with --sums {layer} it has that of every cell.",
      { row: down, column: across, layer: page.names[at] },
    );
    return { info, hasKernel: false, canWalk: false };
  };

  const excites = async (/** @type {any} */ { wanted, at }, /** @type {number} */ index) => {
    const found = await facts("excites", at);
    return found ? chosen(rowOf(found, index), wanted) : { known: false, patches: [], error: "" };
  };

  const kinds = /** @type {Record<string, (about: any, question: any) => any>} */ ({
    layers: (about) => ({ facts: layers(about), data: NONE }),
    tiles: (about) => tiles(about),
    tree: ({ wanted }) => ({ facts: chosen(page.tree, wanted), data: NONE }),
    whole: ({ wanted }) => wholeOf(blocks, wanted, palettes.bytes(coloursOf(wanted))),
    head: async ({ wanted }) => ({ facts: chosen(page.head, wanted), data: (await blocks.bytes("head")) ?? NONE }),
    photograph: async ({ wanted }) => ({
      facts: chosen(page.photograph, wanted),
      data: (await blocks.bytes("photograph")) ?? NONE,
    }),
    field: async ({ wanted, at }) => ({ facts: chosen((await facts("layer", at)).field, wanted), data: NONE }),
    channel: async (about, question) => ({ facts: await channel(about, question.channel), data: NONE }),
    cell: async (about, question) => ({ facts: await cell(about, question), data: NONE }),
    excites: async (about, question) => ({ facts: await excites(about, question.channel), data: NONE }),
  });

  /** @type {import("../../explorer/client/explorer.js").Surroundings["ask"]} */
  const ask = async (question, { signal, view, subject }) => {
    const answerer = kinds[question.name];
    if (!answerer) throw new Error(say("This page has no answer to that; the app has it, which hookviz run starts."));
    const answer = await answerer({ view, wanted: wantedOf(subject), at: layerAt(view) }, question);
    signal?.throwIfAborted();
    return answer;
  };
  return ask;
};
