// The explorer's questions, answered from the values that the network puts out in this very page.

import { say, written } from "../../explorer/client/shared.js";
import { softmax } from "../../explorer/client/softmax.js";
import { anyCell } from "./any_cell.js";
import { channelFacts, LEVELS, limitsOf, statisticsOf, tileFacts } from "./channel_numbers.js";
import { float32Text, wholeFloats } from "./halves.js";
import { mosaic, quantised } from "./levels.js";
import { palettesOf, wantedOf } from "./page_colours.js";
import { indexedPng } from "./png.js";
import { chosen, rowOf } from "./recorded.js";

const AUTOMATIC = "automatic";
const USUAL = "balanced"; // the scale that is automatic
const CLASSES = 5;
const LOOKS = 4; // of which statistics and limits are there
const FLOAT32 = 2 ** -23; // rounding of a value, as a share of it
const NONE = new Uint8Array(0);

/**
 * An image that the page shows.
 * @typedef {object} Picture
 * @property {string} id tells it from others
 * @property {string} title
 * @property {string} alt
 * @property {number} height
 * @property {number} width
 * @property {{top: number, left: number, bottom: number, right: number}} crop which the network sees, in pixels
 * @property {Uint8Array<ArrayBuffer>} photograph as a small file
 * @property {Uint8Array<ArrayBuffer>} input which the network sees, as a small file
 */

/** A share as people write it. @param {number} share */
const percent = (share) =>
  share < 0.001
    ? say("< {least:.1f} %").replace("{least:.1f}", decimal(0.1))
    : say("{share:.1f} %").replace("{share:.1f}", decimal(100 * share));
const decimal = (/** @type {number} */ value) => value.toFixed(1).replace(".", window.hookvizPoint ?? ".");

/** A layer's input with zeros around it. @param {Float32Array} values @param {any} call */
const padded = (values, { input: [channels, rows, columns], corner: [top, left], size: [height, width] }) => {
  const all = new Float32Array(channels * rows * columns);
  for (let line = 0; line < channels * height; line += 1) {
    const row = Math.floor(line / height) * rows + top + (line % height);
    all.set(values.subarray(line * width, (line + 1) * width), row * columns + left);
  }
  return all;
};

/**
 * What answers a live page's questions.
 * @param {any} page what it says whatever the image is
 * @param {ReturnType<typeof import("./blocks.js").blocksOf>} blocks
 * @param {Awaited<ReturnType<typeof import("./live_network.js").startNetwork>>} network
 * @param {{bytesOf: (text: string) => Uint8Array, pictureOf: (id: string) => Picture}} reads
 */
export const liveAnswers = (page, blocks, network, { bytesOf, pictureOf }) => {
  const palettes = palettesOf(page.palettes, bytesOf);
  const firstField = page.steps.map((_, at) => page.steps.slice(0, at).flat().length);

  // The layer that a view means, and which of its outputs; another than it asks for is the first.
  const resolved = (/** @type {Record<string, string>} */ view) => {
    const at = Math.max(0, page.names.indexOf(view.layer));
    const word = view.after ?? view.output;
    const index = Math.max(
      0,
      page.steps[at].findIndex((step) => step.word === word),
    );
    return { at, index, step: page.steps[at][index] };
  };

  /** @type {Map<string, any>} */
  const looks = new Map();
  const lookOf = (
    /** @type {string} */ key,
    /** @type {Float32Array} */ values,
    /** @type {number} */ channels,
    /** @type {string} */ scale,
  ) => {
    const known = looks.get(key);
    if (known) return known;
    const stats = statisticsOf(values, channels);
    const look = { stats, limits: limitsOf(values, stats, scale) };
    looks.set(key, look);
    for (const oldest of [...looks.keys()].slice(0, -LOOKS)) looks.delete(oldest);
    return look;
  };
  /** The maps that a view shows, with their numbers and their colours. */
  const drawn = async (/** @type {any} */ { view, wanted, image }) => {
    const { step } = resolved(view);
    const { values, shape } = await network.output(image, step.output);
    const scale = !view.scale || view.scale === AUTOMATIC ? USUAL : view.scale;
    const look = lookOf(`${image} ${step.output} ${scale}`, values, shape[0], scale);
    const { diverging, sequential } = page.themes[wanted[".theme"]];
    const isSigned = look.stats.lowest.some((/** @type {number} */ lowest) => lowest < 0);
    const colormap = palettes.has(view.colours) ? view.colours : isSigned ? diverging : sequential;
    return { values, shape, look, colormap, diverging };
  };

  const layers = (/** @type {any} */ { view, wanted }) => {
    const { at, step } = resolved(view);
    const facts = chosen(rowOf(page.layers, at), wanted);
    const isHere = !view.layer || page.names.includes(view.layer);
    const warning = say("This page has no layer {layer}: this is its first.", { layer: view.layer });
    const steps = facts.steps && { ...facts.steps, chosen: step.word };
    return { ...facts, steps, step: step.address, warning: isHere ? "" : warning };
  };

  const tiles = async (/** @type {any} */ about) => {
    const began = performance.now();
    const { values, shape, look, colormap } = await drawn(about);
    const [, rows, columns] = shape;
    const { step } = resolved(about.view);
    const names = page.colourMaps[colormap];
    const facts = tileFacts(values, shape, {
      ...look,
      scale: look.limits.scale,
      colormap: names,
      alt: pictureOf(about.image).alt,
      title: step.address,
    });
    const picture = mosaic(quantised(values, facts), facts.geometry, page.gap);
    const answer = {
      ...facts,
      key: `${about.image} ${step.output} ${colormap} ${look.limits.scale}`,
      palette: palettes.numbers(colormap),
      bar: palettes.bar(colormap, facts.levels),
      picksStrongest: false,
      exact: (/** @type {number} */ channel, /** @type {number} */ row, /** @type {number} */ column) =>
        values[(channel * rows + row) * columns + column],
      cost: say("computed in this page in {milliseconds} ms", { milliseconds: Math.round(performance.now() - began) }),
    };
    return { facts: answer, data: indexedPng(picture, facts.geometry.width, palettes.bytes(colormap)) };
  };

  const channel = async (/** @type {any} */ about, /** @type {number} */ index) => {
    const { values, shape, look, colormap, diverging } = await drawn(about);
    const cells = shape[1] * shape[2];
    return {
      ...channelFacts(values, shape, index, look.limits, look.stats),
      colours: diverging,
      values: float32Text(values.slice(index * cells, (index + 1) * cells)),
      bar: palettes.bar(colormap, LEVELS),
    };
  };

  const kernelOf = async (/** @type {number} */ at, /** @type {any} */ { weights, kernel }) => {
    if (weights === null) return wholeFloats((await blocks.unpacked(`kernel-${at}`)) ?? NONE);
    const count = kernel.reduce((/** @type {number} */ one, /** @type {number} */ other) => one * other);
    return new Float32Array(network.weights.buffer.slice(weights, weights + 4 * count));
  };

  const cell = async (/** @type {any} */ about, /** @type {any} */ asked) => {
    const { at, step } = resolved(about.view);
    const call = chosen(page.calls[at], about.wanted);
    if (call.info) return { info: call.info, hasKernel: false, canWalk: false };
    const { image } = about;
    const [kernel, own, input, ofView, ...after] = await Promise.all([
      kernelOf(at, call),
      network.output(image, page.steps[at][0].output),
      network.output(image, call.taken),
      network.output(image, step.output),
      ...call.steps.map(({ output }) => output && network.output(image, output)),
    ]);
    // The map that a view shows may be of a pooling that followed, and smaller.
    const [, rows, columns] = own.shape;
    const row = Math.min(rows - 1, Math.floor(((asked.row + 0.5) * rows) / ofView.shape[1]));
    const column = Math.min(columns - 1, Math.floor(((asked.column + 0.5) * columns) / ofView.shape[2]));
    const of = (/** @type {any} */ output) => output?.values[(asked.channel * rows + row) * columns + column];
    const numbers = { input: padded(input.values, call), weights: kernel };
    const facts = anyCell(call, numbers, [asked.channel, row, column], of(own), after.map(of), FLOAT32);
    return { ...facts, colours: page.themes[about.wanted[".theme"]].diverging };
  };

  const head = async (/** @type {any} */ { wanted, image }) => {
    const { title, alt, input } = pictureOf(image);
    const facts = { ...chosen({ note: page.note, model: page.model }, wanted), image: title };
    facts.alt = say("What the model sees: {alt}", { alt });
    facts.classes = [];
    if (page.hasScores) {
      const names = chosen(page.classes, wanted);
      const scores = [...(await network.output(image, "scores")).values];
      const shares = page.isSoftmax ? softmax(scores, null).chances : scores;
      const first = [...shares.keys()].sort((one, other) => shares[other] - shares[one] || one - other);
      facts.classes = first.slice(0, CLASSES).map((number) => ({
        name: names[number],
        number,
        share: page.hasShares ? Number(shares[number].toPrecision(4)) : 0,
        says: page.hasShares ? percent(shares[number]) : written(shares[number]),
      }));
    }
    return { facts, data: input };
  };

  const photograph = (/** @type {any} */ { image }) => {
    const { alt, height, width, crop, photograph: data } = pictureOf(image);
    const shares = {
      top: crop.top / height,
      left: crop.left / width,
      bottom: crop.bottom / height,
      right: crop.right / width,
    };
    return { facts: { alt, width, height, crop: shares, missing: "" }, data };
  };

  // Which part of the input a cell sees is known, in shares of it; the photograph is more than the input.
  const field = (/** @type {any} */ { view, wanted, image }) => {
    const { at, index } = resolved(view);
    const facts = chosen(rowOf(page.fieldsOf, firstField[at] + index), wanted);
    const { height, width, crop } = pictureOf(image);
    const down = (/** @type {number} */ share) => (crop.top + share * (crop.bottom - crop.top)) / height;
    const across = (/** @type {number} */ share) => (crop.left + share * (crop.right - crop.left)) / width;
    return {
      ...facts,
      rows: facts.rows?.map((ends) => ends.map(down)) ?? null,
      columns: facts.columns?.map((ends) => ends.map(across)) ?? null,
      boxes:
        facts.boxes?.map((line) =>
          line.map(([top, left, bottom, right]) => [down(top), across(left), down(bottom), across(right)]),
        ) ?? null,
    };
  };

  const kinds = /** @type {Record<string, (about: any, question: any) => any>} */ ({
    layers: (about) => ({ facts: layers(about), data: NONE }),
    tree: ({ wanted }) => ({ facts: chosen(page.tree, wanted), data: NONE }),
    field: (about) => ({ facts: field(about), data: NONE }),
    tiles,
    head,
    photograph,
    channel: async (about, question) => ({ facts: await channel(about, question.channel), data: NONE }),
    cell: async (about, question) => ({ facts: await cell(about, question), data: NONE }),
    excites: () => ({ facts: { known: false, patches: [], error: "" }, data: NONE }),
  });

  /** @type {import("../../explorer/client/explorer.js").Surroundings["ask"]} */
  return async (question, { signal, view, subject }) => {
    const answerer = kinds[question.name];
    if (!answerer) throw new Error(say("This page has no answer to that; the app has it, which hookviz run starts."));
    const image = subject.split(" ")[2];
    const answer = await answerer({ view, wanted: wantedOf(subject), image }, question);
    signal?.throwIfAborted();
    return answer;
  };
};
