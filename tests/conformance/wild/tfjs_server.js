// Runs a TensorFlow.js model in Node: node tfjs_server.js TF_JS WASM_JS WASM_FOLDER MODEL_JSON
//
// Each line of standard input is a call, {"inputs": [{"name", "dtype", "shape", "path"}], "outputs": path}; each line of
// standard output its answer, {"outputs": [{"dtype", "shape"}]}. Numbers go through files. What WebAssembly has no
// kernels for runs in plain JavaScript.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const Module = require('module');

const [tfFile, wasmFile, wasmFolder, modelFile] = process.argv.slice(2);
console.warn = console.log = () => {};
const tf = require(tfFile);
const load = Module._load;
Module._load = (name, ...rest) => (name.startsWith('@tensorflow/tfjs') ? tf : load(name, ...rest));
const wasm = require(wasmFile);
const ARRAYS = {float32: Float32Array, int32: Int32Array, bool: Uint8Array};

function readModel() {
  const content = JSON.parse(fs.readFileSync(modelFile, 'utf8'));
  const folder = path.dirname(modelFile);
  const specs = [], parts = [];
  for (const group of content.weightsManifest || []) {
    specs.push(...group.weights);
    parts.push(...group.paths.map((name) => fs.readFileSync(path.join(folder, name))));
  }
  const bytes = Buffer.concat(parts);
  return {
    modelTopology: content.modelTopology,
    format: content.format,
    signature: content.signature,
    userDefinedMetadata: content.userDefinedMetadata,
    modelInitializer: content.modelInitializer,
    weightSpecs: specs,
    weightData: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength),
  };
}

async function main() {
  wasm.setWasmPaths(wasmFolder + path.sep);
  tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
  const artifacts = readModel();
  const isGraph = Array.isArray(artifacts.modelTopology.node);
  const handler = {load: async () => artifacts};
  const open = () => (isGraph ? tf.loadGraphModel(handler) : tf.loadLayersModel(handler));
  await tf.setBackend('wasm');
  await tf.ready();
  let model = await open();

  async function run(call) {
    const given = {}, inOrder = [];
    for (const one of call.inputs) {
      const bytes = fs.readFileSync(one.path);
      const data = new ARRAYS[one.dtype](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
      const tensor = tf.tensor(data, one.shape, one.dtype);
      given[one.name] = tensor;
      inOrder.push(tensor);
    }
    let results;
    if (isGraph) {
      const signature = artifacts.signature || (artifacts.userDefinedMetadata || {}).signature || {};
      const names = {};
      for (const [key, entry] of Object.entries(signature.inputs || {})) names[key.replace(/:0$/, '')] = entry.name;
      const named = Object.fromEntries(Object.entries(given).map(([key, value]) => [names[key] || key, value]));
      const wanted = Object.values(signature.outputs || {}).map((entry) => entry.name);
      results = await model.executeAsync(named, wanted.length ? wanted : undefined);
    } else {
      results = model.predict(inOrder.length === 1 ? inOrder[0] : inOrder);
    }
    results = Array.isArray(results) ? results : [results];
    const described = [], buffers = [];
    for (const one of results) {
      const data = await one.data();
      described.push({dtype: one.dtype, shape: one.shape});
      buffers.push(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    }
    fs.writeFileSync(call.outputs, Buffer.concat(buffers));
    tf.dispose(results);
    tf.dispose(inOrder);
    return described;
  }

  for await (const line of readline.createInterface({input: process.stdin})) {
    const call = JSON.parse(line);
    let answer;
    try {
      try {
        answer = {outputs: await run(call), backend: tf.getBackend()};
      } catch (error) {
        if (tf.getBackend() !== 'wasm') throw error;
        await tf.setBackend('cpu');
        model = await open();
        answer = {outputs: await run(call), backend: tf.getBackend()};
      }
    } catch (error) {
      answer = {error: String(error && error.message || error)};
    }
    process.stdout.write(JSON.stringify(answer) + '\n');
  }
}

main().catch((error) => {
  process.stdout.write(JSON.stringify({error: String(error && error.message || error)}) + '\n');
  process.exit(1);
});
