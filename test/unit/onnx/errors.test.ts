import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { GraphBuilder } from '../../../src/graph/graph-builder.ts';
import { requireDevice } from '../../../src/onnx/device.ts';
import { liveObjects } from '../../../src/onnx/live-objects.ts';
import { OnnxRuntimeError } from '../../../src/onnx/onnx-runtime-error.ts';
import { Session } from '../../../src/onnx/session.ts';
import { OwnedTensor } from '../../../src/onnx/tensor.ts';
import { testRuntime } from '../../support/runtime.ts';
import { ONE_SENTENCE, thrownBy } from './thrown-by.ts';
import { BoundGraph, doublingModel } from './tiny-graphs.ts';

const runtime = testRuntime();
afterEach(() => expect(liveObjects()).toEqual({}));

describe('errors of ONNX Runtime', () => {
  it('carry its message and code when bytes are no graph', async () => {
    const error = await thrownBy(() =>
      Session.create(
        runtime,
        Uint8Array.from({ length: 2048 }, () => 0xff),
      ),
    );
    expect(error).toBeInstanceOf(OnnxRuntimeError);
    expect(error).toMatchObject({ code: 'onnx_runtime', status: 'INVALID_PROTOBUF', details: { status: 'INVALID_PROTOBUF' } });
    expect(error.message).toMatch(/^ONNX Runtime failed to load a graph: .*protobuf parsing failed.* \(INVALID_PROTOBUF\)$/);
  });

  it('name the operator that does not exist', async () => {
    const graph = new GraphBuilder();
    graph.output(graph.node('NoSuchOperator', [graph.input('x', 'f32', [4])], { name: 'y' }), 'f32', [4]);
    const error = await thrownBy(() => Session.create(runtime, graph.build().model));
    expect(error).toMatchObject({ status: 'INVALID_GRAPH' });
    expect(error.message).toContain('NoSuchOperator');
  });

  it('name the weight that the session was not given', async () => {
    const graph = new GraphBuilder();
    const sum = graph.node('Add', [graph.input('x', 'f32', [4]), graph.weight('forgotten', 'f32', [4])], { name: 'y' });
    graph.output(sum, 'f32', [4]);
    const error = await thrownBy(() => Session.create(runtime, graph.build().model));
    expect(error).toBeInstanceOf(OnnxRuntimeError);
    expect(error.message).toContain('forgotten');
  });

  it('reject a run whose operator fails', async () => {
    const graph = new GraphBuilder();
    const rows = graph.node('Gather', [graph.input('x', 'f32', [4]), graph.input('index', 'i64', [1])], { name: 'y' });
    graph.output(rows, 'f32', [1]);
    using session = await Session.create(runtime, graph.build().model);
    using binding = session.createBinding();
    using x = OwnedTensor.over(runtime, 'f32', [4], Float32Array.of(1, 2, 3, 4));
    using index = OwnedTensor.over(runtime, 'i64', [1], BigInt64Array.of(9n));
    using y = OwnedTensor.allocate(runtime, 'f32', [1]);
    binding.input('x', x);
    binding.input('index', index);
    binding.output('y', y);
    const error = await thrownBy(() => binding.run());
    expect(error).toMatchObject({ status: 'INVALID_ARGUMENT' });
    expect(error.message).toMatch(/failed to run a graph: .*indices element out of data bounds, idx=9/s);
    index.data[0] = 2n;
    await binding.run();
    expect(y.data[0]).toBe(3);
  });

  it('reject a run with an input that is not bound', async () => {
    using session = await Session.create(runtime, doublingModel());
    using binding = session.createBinding();
    using y = OwnedTensor.allocate(runtime, 'f32', [4]);
    binding.output('y', y);
    expect((await thrownBy(() => binding.run())).message).toMatch(/Missing Input: x/);
  });
});

describe('names that the graph does not have', () => {
  it('are refused as inputs and outputs, with the ones it has', async () => {
    using graph = await BoundGraph.create(runtime, doublingModel(), [4]);
    const input = await thrownBy(() => graph.binding.input('z', graph.x));
    expect(input).toMatchObject({ name: 'OnnxRuntimeError', status: 'INVALID_ARGUMENT' });
    expect(input.message).toBe('Expected an input among x, got z');
    const output = await thrownBy(() => graph.binding.output('x', graph.y));
    expect(output.message).toBe('Expected an output among y, got x');
  });
});

describe('CUDA', () => {
  const hasCuda = readdirSync(dirname(runtime.libraryPath)).some((name) => name.includes('providers_cuda'));
  it.skipIf(hasCuda)('says in one sentence what is missing, what to install, and that the CPU will do', async () => {
    const error = await thrownBy(() => Session.create(runtime, doublingModel(), { device: { kind: 'cuda', deviceId: 0 } }));
    expect(error).toBeInstanceOf(OnnxRuntimeError);
    expect(error.message).toMatch(ONE_SENTENCE);
    expect(error.message).toMatch(/^CUDA cannot be used \(.+\); install .+, or use --device cpu/);
    expect(error.message).not.toContain('onnxruntime_src');
    expect(error.cause).toBeInstanceOf(OnnxRuntimeError);
    // Before any graph or weight is touched, too.
    expect((await thrownBy(() => requireDevice(runtime, { kind: 'cuda', deviceId: 0 }))).message).toBe(error.message);
  });
});
