/** `answers.jsonl`: measured answers as they come, so that an interrupted measurement can go on where it stopped. */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { AppError } from '../../core/app-error.ts';
import { answerSchema, type ForcedAnswer, type MeasuredAnswer, type ServedAnswer } from './answer-records.ts';

/** What answers depend on; equal for the answers of one file. */
export type AnswerConditions = Readonly<Record<string, unknown>>;

export class AnswerStore {
  readonly #file: string | null;
  readonly #answers = new Map<string, MeasuredAnswer>();

  private constructor(file: string | null, answers: readonly MeasuredAnswer[]) {
    this.#file = file;
    for (const answer of answers) this.#answers.set(keyOf(answer), answer);
  }

  /**
   * @param file null: kept in memory only
   * @param resume go on with the answers that are there; otherwise they are replaced
   * @throws AppError `invalid_config` when the file's answers were made under other conditions
   */
  static open(file: string | null, conditions: AnswerConditions, resume: boolean): AnswerStore {
    if (file === null) return new AnswerStore(null, []);
    const header = JSON.stringify({ conditions });
    if (resume && existsSync(file)) {
      const answers = readAnswers(file, header);
      // Without the torn line that an end in the middle of writing leaves, which nothing could be appended to.
      writeFileSync(file, [header, ...answers.map((answer) => JSON.stringify(answer))].map((line) => `${line}\n`).join(''));
      return new AnswerStore(file, answers);
    }
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${header}\n`);
    return new AnswerStore(file, []);
  }

  has(pass: MeasuredAnswer['pass'], id: string, temperature: number): boolean {
    return this.#answers.has(keyOf({ pass, id, temperature }));
  }

  add(answer: MeasuredAnswer): void {
    this.#answers.set(keyOf(answer), answer);
    if (this.#file !== null) appendFileSync(this.#file, `${JSON.stringify(answer)}\n`);
  }

  served(temperature: number): readonly ServedAnswer[] {
    return this.#of(temperature).filter((answer) => answer.pass === 'served');
  }

  forced(temperature: number): readonly ForcedAnswer[] {
    return this.#of(temperature).filter((answer) => answer.pass === 'forced');
  }

  #of(temperature: number): readonly MeasuredAnswer[] {
    return [...this.#answers.values()].filter((answer) => answer.temperature === temperature);
  }
}

/**
 * The answers of a finished or interrupted measurement.
 * @param header null: whatever the conditions were
 * @throws AppError `invalid_config` naming the file and the line
 */
export function readAnswers(file: string, header: string | null = null): readonly MeasuredAnswer[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new AppError('invalid_config', `Cannot read ${file}: ${(cause as Error).message}; run validate with --out first`, {
      cause,
    });
  }
  const [first = '', ...lines] = text.split('\n');
  if (header !== null && first !== header) {
    throw new AppError(
      'invalid_config',
      `Expected ${file} to have been made with the same models and settings, got others; choose another --out, or leave --resume out to start again`,
    );
  }
  // The last line may be torn by whatever ended the process.
  const torn = text.endsWith('\n') ? null : lines.length - 1;
  return lines.flatMap((line, i) => {
    if (line === '' || i === torn) return [];
    try {
      return [answerSchema.parse(JSON.parse(line))];
    } catch (cause) {
      throw new AppError(
        'invalid_config',
        `Expected a measured answer in line ${i + 2} of ${file}, got something else; measure again`,
        { cause },
      );
    }
  });
}

function keyOf({ pass, id, temperature }: Pick<MeasuredAnswer, 'pass' | 'id' | 'temperature'>): string {
  return `${pass} ${temperature} ${id}`;
}
