/** What the environment says about the server and the goals; each has a default for the embedded pair on this machine. */

function text(name: string, fallback: string): string {
  const value = __ENV[name];
  return value === undefined || value === '' ? fallback : value;
}

function number(name: string, fallback: number): number {
  const value = Number(text(name, String(fallback)));
  if (Number.isNaN(value)) throw new Error(`Expected a number in ${name}, got ${__ENV[name]}`);
  return value;
}

/** Comma-separated. */
function list(name: string, fallback: string): readonly string[] {
  return text(name, fallback)
    .split(',')
    .map((item) => item.trim());
}

const baseUrl = text('BASE_URL', 'http://127.0.0.1:8000').replace(/\/+$/, '');

export const settings = {
  baseUrl,
  webSocketUrl: baseUrl.replace(/^http/, 'ws'),
  /** Empty: the served one. */
  model: text('MODEL', ''),
  apiKey: text('API_KEY', ''),
  /** Empty: the server's default one. */
  drafter: text('DRAFTER', ''),
  maxTokens: number('MAX_TOKENS', 64),
  text,
  number,
  list,
} as const;

/** What a good answer is; times in milliseconds. */
export const goals = {
  ttft: number('SLO_TTFT_MS', 1000),
  tpot: number('SLO_TPOT_MS', 100),
  /** Share of drafts whose first token is accepted: the one that means the same for drafts of any length. */
  firstAcceptance: number('MIN_FIRST_ACCEPTANCE', 0.2),
  /** Tokens per verification, the target's own included; 1 is no gain at all. */
  acceptanceLength: number('MIN_ACCEPTANCE_LENGTH', 1.2),
  acceptanceRate: number('MIN_ACCEPTANCE_RATE', 0.05),
  goodput: number('MIN_GOODPUT', 0.9),
} as const;

/** Of the HTTP and WebSocket requests. */
export function headers(): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    ...(settings.apiKey === '' ? {} : { Authorization: `Bearer ${settings.apiKey}` }),
  };
}
