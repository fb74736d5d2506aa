/** The two ends of the target by themselves: its embedding, and its final norm and head, as for the logit lens. */
import { AppError } from '../../core/app-error.ts';
import type { TokenId } from '../../core/token.ts';
import type { BorrowedTarget } from '../../drafter/borrowed-target.ts';
import { embedding } from '../../graph/embedding.ts';
import { GraphBuilder } from '../../graph/graph-builder.ts';
import { linear } from '../../graph/linear.ts';
import { rmsNorm } from '../../graph/norm.ts';
import { StepTensors } from '../../model/step-tensors.ts';
import type { IoBinding } from '../../onnx/io-binding.ts';
import type { OnnxRuntime } from '../../onnx/runtime.ts';
import { Session } from '../../onnx/session.ts';

const IO = { ids: 'ids', embedded: 'embedded', stream: 'stream', normalised: 'normalised', chosen: 'chosen' } as const;

export interface FinalNorm {
  /** Name of its weight among the target's. */
  readonly weight: string;
  readonly epsilon: number;
}

export class TargetHead implements Disposable {
  readonly #hidden: number;
  readonly #tensors: StepTensors;
  readonly #embedding: Loaded;
  readonly #lens: Loaded;

  private constructor(runtime: OnnxRuntime, hidden: number, embeddingSession: Session, lensSession: Session) {
    this.#hidden = hidden;
    this.#tensors = new StepTensors(runtime);
    this.#embedding = { session: embeddingSession, binding: embeddingSession.createBinding() };
    this.#lens = { session: lensSession, binding: lensSession.createBinding() };
  }

  static async open(runtime: OnnxRuntime, target: BorrowedTarget, norm: FinalNorm): Promise<TargetHead> {
    const size = target.hiddenSize;
    const embed = new GraphBuilder();
    const embedded = embedding(embed, embed.input(IO.ids, 'i64', ['rows']), target.embedding);
    embed.nodes('Identity', [embedded], [IO.embedded]);
    embed.output(IO.embedded, 'f32', ['rows', size]);
    const lens = new GraphBuilder();
    const stream = lens.input(IO.stream, 'f32', ['rows', size]);
    const [normalised] = lens.nodes('Identity', [rmsNorm(lens, stream, { ...norm, size })], [IO.normalised]) as [string];
    const logits = linear(lens, normalised, target.head);
    lens.nodes('TopK', [logits, lens.ints([1])], ['top', IO.chosen], { attributes: { axis: -1n, largest: 1n, sorted: 1n } });
    lens.output(IO.normalised, 'f32', ['rows', size]);
    lens.output(IO.chosen, 'i64', ['rows', 1]);
    const open = (graph: GraphBuilder) => {
      const built = graph.build();
      const initializers = new Map(built.weights.map(({ name }) => [name, target.weight(name)]));
      return Session.create(runtime, built.model, { initializers, prepacked: target.prepacked });
    };
    return new TargetHead(runtime, size, await open(embed), await open(lens));
  }

  /** @returns [tokens, hidden] */
  async embed(tokens: readonly TokenId[]): Promise<Float32Array> {
    const ids = this.#tensors.shaped(IO.ids, 'i64', [tokens.length]);
    for (const [i, token] of tokens.entries()) ids.data[i] = BigInt(token);
    const embedded = this.#tensors.shaped(IO.embedded, 'f32', [tokens.length, this.#hidden]);
    this.#embedding.binding.input(IO.ids, ids);
    this.#embedding.binding.output(IO.embedded, embedded);
    await this.#embedding.binding.run();
    return embedded.data.slice();
  }

  /**
   * @param stream [rows, hidden], before the final norm
   * @returns [rows, hidden], after it
   */
  async finalNorm(stream: Float32Array): Promise<Float32Array> {
    return (await this.#runLens(stream)).normalised;
  }

  /**
   * The token that norm and head make of each row: the target's choice for its last layer, the logit lens for others
   * (nostalgebraist 2020).
   * @param stream [rows, hidden], before the final norm
   */
  async choose(stream: Float32Array, signal?: AbortSignal): Promise<Int32Array> {
    return (await this.#runLens(stream, signal)).chosen;
  }

  async #runLens(stream: Float32Array, signal?: AbortSignal) {
    const rows = stream.length / this.#hidden;
    if (!Number.isInteger(rows) || rows === 0) {
      throw new AppError('internal', `Expected rows of ${this.#hidden} values, got ${stream.length} values`);
    }
    const input = this.#tensors.shaped(IO.stream, 'f32', [rows, this.#hidden]);
    input.data.set(stream);
    const normalised = this.#tensors.shaped(IO.normalised, 'f32', [rows, this.#hidden]);
    const chosen = this.#tensors.shaped(IO.chosen, 'i64', [rows, 1]);
    const { binding } = this.#lens;
    binding.input(IO.stream, input);
    binding.output(IO.normalised, normalised);
    binding.output(IO.chosen, chosen);
    await binding.run(signal);
    return { normalised: normalised.data.slice(), chosen: Int32Array.from(chosen.data, Number) };
  }

  [Symbol.dispose](): void {
    for (const { session, binding } of [this.#embedding, this.#lens]) {
      binding[Symbol.dispose]();
      session[Symbol.dispose]();
    }
    this.#tensors[Symbol.dispose]();
  }
}

interface Loaded {
  readonly session: Session;
  readonly binding: IoBinding;
}
