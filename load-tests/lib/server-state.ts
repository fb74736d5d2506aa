/** What the server says of itself. */
import { check, sleep } from 'k6';
import http from 'k6/http';
import { headers, settings } from './settings.ts';

/** Ends the test with words when nobody is there; returns the name of the model. */
export function requireServer(): string {
  const response = http.get(`${settings.baseUrl}/v1/models`, { headers: headers(), timeout: '10s' });
  if (response.status !== 200) {
    throw new Error(
      `Expected a server at ${settings.baseUrl} (BASE_URL, API_KEY), got status ${response.status} ${response.error}`,
    );
  }
  const { data } = response.json() as unknown as { readonly data: readonly { readonly id: string }[] };
  return data[0]?.id ?? '';
}

/** What answers, for those who read the figures later; null where the server does not tell. */
export function serverFacts(): Readonly<Record<string, unknown>> {
  const facts = { version: '/version', models: '/v1/models', drafters: '/v1/drafters' };
  return Object.fromEntries(
    Object.entries(facts).map(([name, path]) => {
      const response = http.get(settings.baseUrl + path, { headers: headers(), timeout: '10s' });
      return [name, response.status === 200 ? response.json() : null];
    }),
  );
}

/** Whoever leaves takes all that was theirs along: within a moment nothing may run or wait any more. */
export function checkIdle(): void {
  const LOOKS = 20;
  let busy = Number.NaN;
  let reserved = Number.NaN;
  for (let look = 0; look < LOOKS; look++) {
    const response = http.get(`${settings.baseUrl}/metrics`, { headers: headers(), tags: { name: '/metrics' } });
    busy = gauge(String(response.body), 'num_requests_running') + gauge(String(response.body), 'num_requests_waiting');
    reserved = gauge(String(response.body), 'kv_cache_usage_perc');
    if (busy === 0 && reserved === 0) break;
    sleep(0.25);
  }
  check(busy, { 'nothing runs or waits when all have left': (count) => count === 0 });
  check(reserved, { 'no memory is reserved when all have left': (share) => share === 0 });
}

function gauge(text: string, name: string): number {
  return Number(new RegExp(`^\\w+:${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]);
}
