// The network of a live page: what its layers put out for an image, by a worker that runs it.

const KEPT = 96e6; // bytes of values; a large layer's are a few million

/** @typedef {{values: Float32Array, shape: number[]}} Output */

/**
 * Start the engine with the network.
 * @param {ReturnType<typeof import("./blocks.js").blocksOf>} blocks
 * @param {any} page
 */
export const startNetwork = async (blocks, page) => {
  const [engine, wasm, graph, weights, script] = await Promise.all([
    blocks.unzipped("engine"),
    blocks.unzipped("wasm"),
    blocks.unpacked("graph"),
    blocks.unpacked("weights"),
    blocks.bytes("worker"),
  ]);
  const source = new Blob([/** @type {any} */ (engine), "\n", /** @type {any} */ (script)]);
  const worker = new Worker(URL.createObjectURL(source));
  /** @type {Map<number, {resolve: (answer: any) => void, reject: (error: Error) => void}>} */
  const open = new Map();
  let turns = 0;
  worker.onmessage = ({ data: { turn, answer, error } }) => {
    const asked = open.get(turn);
    open.delete(turn);
    if (error === undefined) asked?.resolve(answer);
    else asked?.reject(new Error(error));
  };
  worker.onerror = ({ message }) => {
    for (const { reject } of open.values()) reject(new Error(message || "the worker could not start"));
    open.clear();
  };
  const ask = (/** @type {string} */ question, /** @type {object} */ facts, /** @type {Transferable[]} */ moved = []) =>
    new Promise((resolve, reject) => {
      turns += 1;
      open.set(turns, { resolve, reject });
      worker.postMessage({ turn: turns, question, ...facts }, moved);
    });

  // The weights stay here too: the sum of a cell is made of them.
  const { weightsName, preprocess } = page;
  await ask("open", { wasm: wasm?.buffer, graph, weights, weightsName, preprocess });

  /** @type {Map<string, {output: Promise<Output>, bytes: number}>} */
  const kept = new Map(); // 0 bytes while it is computed
  const weigh = (/** @type {string} */ key, /** @type {number} */ bytes) => {
    const mine = kept.get(key);
    if (!mine) return; // its image is gone
    mine.bytes = bytes;
    let all = [...kept.values()].reduce((sum, each) => sum + each.bytes, 0);
    for (const [oldest, each] of kept) {
      if (all <= KEPT || oldest === key) break;
      all -= each.bytes;
      kept.delete(oldest);
    }
  };
  // What is asked for at once is had by one pass.
  /** @type {Map<string, Map<string, {resolve: (output: Output) => void, reject: (error: Error) => void}>>} */
  const waiting = new Map();
  const run = async (/** @type {string} */ image) => {
    const asked = [...(waiting.get(image) ?? [])];
    waiting.delete(image);
    const names = asked.map(([name]) => name);
    try {
      const outputs = await ask("run", { image, names });
      asked.forEach(([name, { resolve }], at) => {
        weigh(`${image} ${name}`, outputs[at].values.byteLength);
        resolve(outputs[at]);
      });
    } catch (error) {
      for (const [name, { reject }] of asked) {
        kept.delete(`${image} ${name}`);
        reject(/** @type {Error} */ (error));
      }
    }
  };
  return {
    /** The bytes of all weights. */
    weights: /** @type {Uint8Array<ArrayBuffer>} */ (weights),
    /** Make an image the network's input: the picture that it sees, and its part of the image. */
    picture: (/** @type {string} */ image, /** @type {ImageData} */ { data, height, width }) =>
      ask("picture", { image, rgba: data, size: [height, width] }, [data.buffer]),
    /** Forget what was put out for other images than these. */
    keepOnly: (/** @type {string[]} */ images) => {
      for (const key of [...kept.keys()]) {
        if (!images.includes(key.split(" ")[0])) kept.delete(key);
      }
    },
    /**
     * One of its outputs for an image.
     * @param {string} image
     * @param {string} name
     */
    output: (image, name) => {
      const key = `${image} ${name}`;
      const known = kept.get(key);
      if (known) return known.output;
      const output = new Promise((resolve, reject) => {
        if (!waiting.has(image)) {
          waiting.set(image, new Map());
          setTimeout(() => run(image));
        }
        waiting.get(image)?.set(name, { resolve, reject });
      });
      kept.set(key, { output: /** @type {Promise<Output>} */ (output), bytes: 0 });
      return /** @type {Promise<Output>} */ (output);
    },
  };
};
