import type { FaultCode } from '../diagnosis.ts';
import type { Assumption } from './assumption.ts';

/** One assumption changed, and what it would mean if that helped. */
export interface Counterfactual {
  readonly name: string;
  readonly fault: FaultCode;
  readonly assumption: Assumption;
  /** Compare slot k + this with the label of slot k. */
  readonly slotShift: number;
  /** What to do if it helps. */
  readonly advice: string;
  /** Among equally good ones the larger is named. */
  readonly preference: number;
}
