/** What the test and the thread of a virtual user tell each other. */
import type { MessagePort } from 'node:worker_threads';
import type { MetricDefinition, Sample, Tags } from '../metrics/metric.ts';

/** A virtual user at its start. */
export interface VuStart {
  /** The script and what it imports, as one CommonJS module. */
  readonly code: string;
  /** Of the script, for `open` and stack traces. */
  readonly filename: string;
  /** 0 does what belongs to the whole test: options, setup, teardown, the summary. */
  readonly vu: number;
  readonly env: Readonly<Record<string, string>>;
  /** Tags of all samples. */
  readonly tags: Tags;
  readonly discardResponseBodies: boolean;
  /** Elements of each SharedArray as JSON, once they are known. */
  readonly shared: Readonly<Record<string, readonly string[]>>;
  /** `options`, once they are known. */
  readonly options: unknown;
  /** Milliseconds since the epoch. */
  readonly testStarted: number;
  readonly requests: MessagePort;
  /** Counts answers on `requests`, so that a thread can sleep until there is one. */
  readonly answered: SharedArrayBuffer;
}

export interface VuInfo {
  readonly options: unknown;
  /** Names of functions that the script exports. */
  readonly functions: readonly string[];
  readonly metrics: readonly MetricDefinition[];
  readonly shared: Readonly<Record<string, readonly string[]>>;
}

export interface ScenarioFacts {
  readonly name: string;
  readonly executor: string;
  /** Milliseconds since the epoch. */
  readonly startTime: number;
  readonly durationMs: number;
  readonly iterations: number | null;
  readonly env: Readonly<Record<string, string>>;
  readonly tags: Tags;
}

export type Job =
  | {
      readonly kind: 'iteration';
      readonly function: string;
      readonly data: unknown;
      readonly scenario: ScenarioFacts;
      readonly iterationInTest: number;
      readonly iterationInScenario: number;
    }
  | { readonly kind: 'setup' }
  | { readonly kind: 'teardown'; readonly data: unknown }
  | { readonly kind: 'summary'; readonly data: unknown };

export interface ScriptError {
  readonly message: string;
  /** What ended the script on purpose. */
  readonly cause: 'thrown' | 'aborted';
}

export type FromVu =
  | { readonly type: 'ready'; readonly info: VuInfo }
  | { readonly type: 'failed'; readonly error: ScriptError }
  | { readonly type: 'samples'; readonly samples: readonly Sample[] }
  | { readonly type: 'checked'; readonly group: string; readonly name: string; readonly passed: boolean }
  | { readonly type: 'log'; readonly level: 'info' | 'warn' | 'error' | 'debug'; readonly text: string }
  | { readonly type: 'marked-failed'; readonly message: string }
  | { readonly type: 'done'; readonly result: unknown; readonly error: ScriptError | null };

export interface HttpCall {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | ArrayBuffer | null;
  readonly timeoutMs: number;
  readonly wantsBody: 'text' | 'binary' | 'none';
}

/** Milliseconds of the phases of a request. */
export interface HttpTimings {
  readonly blocked: number;
  readonly connecting: number;
  readonly tls_handshaking: number;
  readonly sending: number;
  readonly waiting: number;
  readonly receiving: number;
  readonly duration: number;
}

export interface HttpResult {
  /** 0 when there was no answer. */
  readonly status: number;
  readonly statusText: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | ArrayBuffer | null;
  readonly error: string;
  readonly errorCode: number;
  readonly remoteIp: string;
  readonly remotePort: number;
  readonly protocol: string;
  readonly timings: HttpTimings;
  readonly bytesSent: number;
  readonly bytesReceived: number;
}

/** Requests that are answered together. */
export interface RequestMessage {
  readonly id: number;
  readonly calls: readonly HttpCall[];
}

export interface AnswerMessage {
  readonly id: number;
  readonly results: readonly HttpResult[];
}
