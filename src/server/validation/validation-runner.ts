/** **Port** of whatever measures drafters for the server: it may take long, and must not slow down serving. */

export type ValidationKind = 'validate' | 'diagnose' | 'compare';

/** A drafter as it is in force now. */
export interface ValidatedDrafter {
  readonly name: string;
  readonly kind: string;
  /** Null: it was not loaded from a folder. */
  readonly folder: string | null;
}

export interface ValidationTask {
  readonly kind: ValidationKind;
  /** One, or for a comparison at least two; the first is what the others are compared with. */
  readonly drafters: readonly ValidatedDrafter[];
  /** Lines of a prompt file; null: the bundled set. */
  readonly prompts: readonly object[] | null;
  /** Options of the command, by their names in snake case. */
  readonly settings: Readonly<Record<string, string | number>>;
}

export interface ValidationProgress {
  readonly stage: string;
  readonly done: number;
  readonly total: number;
}

export interface ValidationOutcome {
  /** As the command's: 0 when there is nothing to complain of. */
  readonly exitCode: number;
  /** What the command prints with --json. */
  readonly result: unknown;
}

export interface ValidationRunner {
  /**
   * @param signal ends it at once
   * @throws AppError `invalid_request` when a drafter is of a kind that cannot be measured so, or any error that says why there
   *   is no result
   */
  run(
    task: ValidationTask,
    onProgress: (progress: ValidationProgress) => void,
    signal: AbortSignal,
  ): Promise<ValidationOutcome>;
}
