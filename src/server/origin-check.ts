/** Which browser origins may open a WebSocket. */

export interface OriginCheckOptions {
  /** Host and port that the server listens on. */
  readonly host: string;
  readonly port: number;
  /** More origins, each as a browser sends it: `https://example.org`. */
  readonly allowedOrigins: readonly string[];
}

/** True for programs (they send no origin), the server's own origin and the allowed ones. */
export type OriginCheck = (origin: string | undefined) => boolean;

/**
 * The server's own origins come from the address it is bound to and never from the Host header, which a page
 * can choose by pointing its own name at this machine.
 */
export function createOriginCheck(options: OriginCheckOptions): OriginCheck {
  const names = [options.host, 'localhost', '127.0.0.1', '[::1]'];
  const own = names.flatMap((name) => [
    `http://${withBrackets(name)}:${options.port}`,
    `https://${withBrackets(name)}:${options.port}`,
  ]);
  const allowed = new Set([...own, ...options.allowedOrigins].map(normalise));
  return (origin) => origin === undefined || allowed.has(normalise(origin));
}

function withBrackets(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

/** Default ports are left out by browsers, a trailing slash is often typed by people. */
function normalise(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).origin : origin;
}
