import type { EngineSummary } from '../engine/open-engine.ts';
import { formatBytes } from './format.ts';

/** What is served, and how to try it. */
export function banner(summary: EngineSummary, url: string, model: string, apiKeyNeeded: boolean): string {
  const drafters = summary.drafters.map(({ name, kind, taps, draftTokens, length }) =>
    [
      name === kind ? name : `${name} (${kind})`,
      ...(taps.length > 0 ? [`block ${draftTokens + 1}`, `taps ${taps.join(' ')}`] : []),
      length === 'auto' ? `up to ${draftTokens} draft tokens, as many as pay` : `${draftTokens} draft tokens`,
    ].join(' · '),
  );
  const lines: readonly (readonly [string, string])[] = [
    ['target', `${summary.target} · ${summary.family} · ${summary.weights}`],
    ...(drafters.length > 0 ? drafters : ['none (plain decoding)']).map((text) => ['drafter', text] as const),
    ['device', `${summary.device} · ${summary.threads} threads · ONNX Runtime ${summary.runtimeVersion}`],
    ['context', `${summary.maxContext} positions · ${summary.maxSequences} sequences`],
    [
      'memory',
      [
        `models ${formatBytes(summary.modelBytes)}`,
        `caches up to ${formatBytes(summary.cacheBytes)}`,
        summary.prefixCacheBytes === 0
          ? 'no prefix cache'
          : `prefix cache up to ${formatBytes(summary.prefixCacheBytes)}${summary.prefixCacheNote === null ? '' : ` (${summary.prefixCacheNote})`}`,
        `${formatBytes(summary.availableBytes)} available`,
      ].join(' · '),
    ],
    ['listening', url],
  ];
  const key = apiKeyNeeded ? ` -H 'authorization: Bearer <key>'` : '';
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'What is gravity?' }], max_tokens: 64 });
  return [
    'blockdraft',
    ...lines.map(([name, value]) => `  ${name.padEnd(10)} ${value}`),
    '',
    `  curl ${url}/v1/chat/completions -H 'content-type: application/json'${key} -d '${body}'`,
    '',
  ].join('\n');
}
