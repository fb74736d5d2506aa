import type { AnswerStructure } from '../core/token-rules.ts';
import type { GrammarHost } from './grammar-host.ts';

/**
 * A structure that compiles, and where. Made by the grammar service; any number of answers may follow it at once. Its place is kept
 * until it is disposed of, and its processors are.
 */
export interface CompiledStructure extends Disposable {
  readonly structure: AnswerStructure;
  /** The same for equal structures. */
  readonly key: string;
  readonly host: GrammarHost;
}
