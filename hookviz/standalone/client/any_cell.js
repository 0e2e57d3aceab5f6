// Why a cell has its value: of a layer whose input and weights the page keeps, the sum of products of any
// of its cells, in the form of the answer to the question "cell".

import { say, written } from "../../explorer/client/shared.js";

const TINY = 2 ** -126; // the least float32 that has all digits
const KEPT = 2 ** -11; // of a value: how far float16 may be from it

/** Parts of a sentence with its numbers. */
const filled = (/** @type {[string, string][]} */ parts, /** @type {Record<string, number>} */ numbers) =>
  parts.map(([text, sentence]) => [
    text.replace(/\{(\w+)\}/g, (whole, name) => (name in numbers ? written(numbers[name]) : whole)),
    sentence,
  ]);

const digits = (/** @type {number} */ value, /** @type {number} */ count) =>
  Number.isFinite(value) ? Number(value.toPrecision(count)) : null;
const largest = (/** @type {Iterable<number>} */ values) => {
  let most = 0;
  for (const value of values) if (Number.isFinite(value)) most = Math.max(most, Math.abs(value));
  return most;
};

/**
 * What is known of a layer's call.
 * @typedef {object} Call
 * @property {[number, number, number, number]} kernel output channels, input channels of each, rows, columns
 * @property {number[] | null} bias
 * @property {[number, number, number]} input channels, rows and columns, padding included
 * @property {[number, number]} stride
 * @property {[number, number]} dilation
 * @property {number} groups
 * @property {[number, number, number]} output
 * @property {number} rounding
 * @property {string | null} upstream
 * @property {number} rows inputs that are written out
 * @property {{agrees: [string, string][], differs: [string, string][]}} sum
 * @property {{says: [string, string][], epsilon: number, norm: number[][] | null, isRelu?: boolean}[]} steps
 */

/**
 * The sum of a cell's products, its terms by input.
 * @param {Call} call
 * @param {{input: Float32Array, weights: Float32Array}} numbers
 * @param {[number, number, number]} place channel, row, column
 */
export const summed = (call, { input, weights }, [channel, row, column]) => {
  const [outputs, count, high, wide] = call.kernel;
  const [, rows, columns] = call.input;
  const first = Math.floor(channel / (outputs / call.groups)) * count;
  const bias = call.bias?.[channel] ?? null;
  let size = Math.abs(bias ?? 0);
  const inputs = Array.from({ length: count }, (_, at) => {
    const [patch, kernel] = [/** @type {number[][]} */ ([]), /** @type {number[][]} */ ([])];
    let term = 0;
    for (let down = 0; down < high; down += 1) {
      const from = ((first + at) * rows + row * call.stride[0] + down * call.dilation[0]) * columns;
      const across = Array.from({ length: wide }, (_, to) => from + column * call.stride[1] + to * call.dilation[1]);
      patch.push(across.map((place) => input[place]));
      const of = ((channel * count + at) * high + down) * wide;
      kernel.push([...weights.subarray(of, of + wide)]);
      across.forEach((place, to) => {
        const product = input[place] * weights[of + to];
        term += product;
        size += Math.abs(product);
      });
    }
    return { input: first + at, patch, kernel, term };
  });
  const sum = inputs.reduce((total, { term }) => total + term, 0);
  return { inputs, bias, sum, total: sum + (bias ?? 0), size };
};

/**
 * The answer to the question "cell".
 * @param {Call} call
 * @param {{input: Float32Array, weights: Float32Array}} numbers
 * @param {[number, number, number]} place channel, row, column
 * @param {number} kept the cell's value as the page has it
 * @param {(number | undefined)[]} after its value after each step, where the page has it
 * @param {number} [precision] how far these may be from their own, as a share: float16 by default
 */
export const anyCell = (call, numbers, place, kept, after, precision = KEPT) => {
  const { inputs, bias, sum, total, size } = summed(call, numbers, place);
  const near = (/** @type {number} */ value, /** @type {number} */ half) =>
    Object.is(value, half) || Math.abs(value - half) <= precision * Math.abs(half) + TINY;
  const tolerance = call.rounding * size + precision * Math.abs(kept) + TINY;
  const agrees = Number.isFinite(total) ? Math.abs(total - kept) <= tolerance : Object.is(total, kept);
  const value = agrees ? total : kept; // with all digits
  const ordered = [...inputs].sort((one, other) => Math.abs(other.term) - Math.abs(one.term));
  const [first, others] = [ordered.slice(0, call.rows), ordered.slice(call.rows)];
  const rest = others.reduce((whole, { term }) => whole + term, 0);
  const [channel, row, column] = place;
  let now = value;
  const steps = call.steps.map(({ says, epsilon, norm, isRelu }, at) => {
    const [mean, variance, scale, shift] = norm ? norm.map((of) => of[channel]) : [0, 1, 1, 0];
    const put = norm ? ((now - mean) / Math.sqrt(variance + epsilon)) * scale + shift : now;
    const next = isRelu ? Math.max(0, put) : put;
    const own = after[at] ?? next;
    now = near(next, own) ? next : own;
    return filled(says, { mean, variance, scale, shift, step: now });
  });
  const all = (/** @type {"patch" | "kernel"} */ name) => inputs.flatMap((each) => each[name].flat());
  return {
    title: say("Why {value} at row {row}, column {column}?", { value: written(value), row, column }),
    rows: first.map(({ input, patch, kernel, term }) => ({
      input,
      patch: patch.map((line) => line.map((each) => digits(each, 5))),
      kernel: kernel.map((line) => line.map((each) => digits(each, 5))),
      term: digits(term, 8),
    })),
    most: largest(inputs.map(({ term }) => term)),
    patchMost: largest(all("patch")),
    kernelMost: largest(all("kernel")),
    upstream: call.upstream,
    rest: others.length
      ? say("the other {count:,} inputs together: {rest}", { count: others.length, rest: written(rest) })
      : "",
    sum: filled(agrees ? call.sum.agrees : call.sum.differs, { sum, bias: bias ?? 0, total }),
    steps,
    hasKernel: false,
    canWalk: false,
  };
};
