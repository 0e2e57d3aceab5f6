// Runs the network, in a worker: a pass takes tens of milliseconds and more, and the page goes on meanwhile.

import { prepared } from "./preprocessing.js";

const INPUTS = 2; // images whose input is there; of others nothing is asked any more

/** Begin to answer. What the engine's script exports is the worker's `ort`. */
export const begin = () => {
  const worker = /** @type {any} */ (globalThis);
  const { ort } = worker;
  /** @type {any} */
  let session = null;
  /** @type {any} */
  let steps = null;
  const inputs = new Map();

  /** @type {Record<string, (facts: any) => Promise<[any, Transferable[]]>>} */
  const answers = {
    open: async ({ wasm, graph, weights, weightsName, preprocess }) => {
      steps = preprocess;
      ort.env.wasm.numThreads = 1;
      ort.env.wasm.wasmBinary = wasm;
      session = await ort.InferenceSession.create(graph, {
        executionProviders: ["wasm"],
        graphOptimizationLevel: "disabled", // else layers are merged, and their own outputs gone
        externalData: weights.length ? [{ path: weightsName, data: weights }] : [],
      });
      return [null, []];
    },
    picture: async ({ image, rgba, size }) => {
      const { input, shape, picture, crop } = prepared(rgba, size, steps);
      inputs.set(image, new ort.Tensor("float32", input, [1, ...shape]));
      for (const oldest of [...inputs.keys()].slice(0, -INPUTS)) inputs.delete(oldest);
      return [{ picture, crop }, [picture.buffer]];
    },
    run: async ({ image, names }) => {
      const input = inputs.get(image);
      if (!input) throw new Error("the image is gone");
      const outputs = await session.run({ [session.inputNames[0]]: input }, names);
      const answer = names.map((/** @type {string} */ name) => ({
        values: outputs[name].data,
        shape: outputs[name].dims,
      }));
      return [answer, answer.map((/** @type {any} */ each) => each.values.buffer)];
    },
  };
  worker.onmessage = async (/** @type {MessageEvent} */ { data: { turn, question, ...facts } }) => {
    try {
      const [answer, moved] = await answers[question](facts);
      worker.postMessage({ turn, answer }, moved);
    } catch (error) {
      worker.postMessage({ turn, error: String(/** @type {any} */ (error)?.message ?? error) });
    }
  };
};
