/** **Port** of whatever measures drafters for the server: it may take long, and must not slow down serving. */

export const VALIDATION_KINDS = ['validate', 'diagnose', 'compare', 'record', 'export-hard', 'watch'] as const;
export type ValidationKind = (typeof VALIDATION_KINDS)[number];

/** A drafter as it is in force now. */
export interface ValidatedDrafter {
  readonly name: string;
  readonly kind: string;
  /** Null: it was not loaded from a folder. */
  readonly folder: string | null;
}

export interface ValidationTask {
  readonly kind: ValidationKind;
  /** One, or for a comparison at least two, the first of which the others are compared with; none for files of earlier jobs and runs. */
  readonly drafters: readonly ValidatedDrafter[];
  /** Lines of a prompt file; null: the bundled set. */
  readonly prompts: readonly object[] | null;
  /** Options of the command, by their names in snake case. */
  readonly settings: Settings;
}

/** `true`: a switch; a list: the option is repeated. */
export type Settings = Readonly<Record<string, string | number | true | readonly string[]>>;

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
