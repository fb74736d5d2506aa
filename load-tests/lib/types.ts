/** What a request is made of, and what came of it. */
export type Tags = Readonly<Record<string, string>>;

export interface Message {
  readonly role: string;
  readonly content: string;
}

export interface Prompt {
  readonly id: string;
  /** Kind of task; how well drafts are accepted differs between them. */
  readonly category: string;
  readonly messages: readonly Message[];
}

/** Fields of the request's body that a scenario decides. */
export interface Sampling {
  readonly temperature?: number;
  readonly seed?: number;
  readonly max_tokens?: number;
  readonly drafter?: string;
  readonly draft_tokens?: number;
}

/** `metrics.speculative_decoding` of an answer. */
export interface Speculation {
  readonly drafter?: string;
  readonly num_spec_steps: number;
  readonly num_accepted_draft_tokens: number;
  readonly num_draft_tokens: number;
  /** For each length of draft that occurred: rounds that accepted 0, 1, 2, … tokens. */
  readonly acceptance_histogram_by_draft_length: Readonly<Record<string, readonly number[]>>;
  readonly no_draft_rounds?: Readonly<Record<string, number>>;
}

export type ErrorType = 'network' | 'timeout' | 'http_4xx' | 'http_5xx' | 'overloaded' | 'stream' | 'decode';

export interface Gap {
  readonly ms: number;
  /** In the delivery that ended it; 0 where a text came without a new token. */
  readonly tokens: number;
}

export interface Answer {
  readonly error: { readonly type: ErrorType; readonly message: string } | null;
  readonly text: string;
  readonly tokens: number;
  /** Milliseconds; null where there was no token, or only one. */
  readonly ttft: number | null;
  readonly tpot: number | null;
  readonly e2e: number;
  /** From each delivery to the next one; empty where the client cannot see them. */
  readonly gaps: readonly Gap[];
  readonly speculation: Speculation | null;
}

/** Of a chunk in an event stream or a frame of a WebSocket. */
export interface Chunk {
  readonly type?: string;
  readonly request_id?: string;
  readonly cancelled?: boolean;
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null; readonly reasoning?: string | null } }[];
  readonly usage?: { readonly completion_tokens: number } | null;
  readonly metrics?: {
    readonly time_to_first_token_ms: number | null;
    readonly mean_itl_ms: number | null;
    readonly speculative_decoding?: Speculation | null;
  };
  readonly error?: { readonly message: string; readonly type?: string; readonly code?: string | null };
}
