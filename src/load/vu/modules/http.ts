/** `k6/http`: requests, one by one, several at once, or without waiting. No cookies, redirects, uploads or HTML. */
import { parseDuration } from '../../duration.ts';
import type { Tags } from '../../metrics/metric.ts';
import type { HttpBridge } from '../http-bridge.ts';
import type { HttpCall, HttpResult } from '../protocol.ts';
import { requirePhase } from '../require-phase.ts';
import type { VuState } from '../vu-state.ts';

interface Params {
  readonly headers?: Readonly<Record<string, string>>;
  readonly tags?: Tags;
  readonly timeout?: string | number;
  readonly responseType?: 'text' | 'binary' | 'none';
  readonly responseCallback?: ExpectedStatuses;
}
type Body = string | ArrayBuffer | Readonly<Record<string, unknown>> | null | undefined;
type BatchRequest =
  | string
  | readonly [string, string, Body?, Params?]
  | { readonly method: string; readonly url: string; readonly body?: Body; readonly params?: Params };

const DEFAULT_TIMEOUT = '60s';
const KNOWN_PARAMS = ['headers', 'tags', 'timeout', 'responseType', 'responseCallback'];

class ExpectedStatuses {
  readonly ranges: readonly (number | { readonly min: number; readonly max: number })[];

  constructor(ranges: ExpectedStatuses['ranges']) {
    this.ranges = ranges;
  }

  includes(status: number): boolean {
    return this.ranges.some((range) =>
      typeof range === 'number' ? status === range : range.min <= status && status <= range.max,
    );
  }
}

interface Prepared {
  readonly call: HttpCall;
  readonly params: Params;
}

export function httpModule(state: VuState, bridge: HttpBridge) {
  let expected = new ExpectedStatuses([{ min: 200, max: 399 }]);

  const prepare = (method: string, url: string, body: Body = null, params: Params | null = null): Prepared => {
    requirePhase(state, 'a request', ['setup', 'iteration', 'teardown', 'summary']);
    const unknown = Object.keys(params ?? {}).find((name) => !KNOWN_PARAMS.includes(name));
    if (unknown !== undefined) throw new Error(`Expected request parameters that this runner knows, got ${unknown}`);
    const isForm = typeof body === 'object' && body !== null && !(body instanceof ArrayBuffer);
    const headers = { ...(isForm ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {}), ...params?.headers };
    return {
      params: params ?? {},
      call: {
        method: method.toUpperCase(),
        url: String(url),
        headers,
        body: isForm ? new URLSearchParams(stringValues(body)).toString() : body,
        timeoutMs: parseDuration(params?.timeout ?? DEFAULT_TIMEOUT, 'timeout of a request'),
        wantsBody: params?.responseType ?? (state.start.discardResponseBodies ? 'none' : 'text'),
      },
    };
  };

  const settle = ({ call, params }: Prepared, result: HttpResult) => {
    const callback = params.responseCallback ?? expected;
    const isExpected = callback.includes(result.status);
    const tags = {
      method: call.method,
      url: call.url,
      name: call.url,
      status: String(result.status),
      proto: result.protocol,
      expected_response: String(isExpected),
      ...(result.error === '' ? {} : { error: result.error }),
      ...(result.errorCode === 0 ? {} : { error_code: String(result.errorCode) }),
      ...params.tags,
    };
    state.add('http_reqs', 1, tags);
    state.add('http_req_failed', isExpected ? 0 : 1, tags);
    for (const [phase, ms] of Object.entries(result.timings)) state.add(`http_req_${phase}`, ms, tags);
    state.add('data_sent', result.bytesSent, tags);
    state.add('data_received', result.bytesReceived, tags);
    state.flush();
    if (result.error !== '') state.send({ type: 'log', level: 'warn', text: `Request failed: ${result.error} (${call.url})` });
    return response(call, result);
  };

  /** What was measured before is not lost when the user is interrupted while it waits. */
  const answersTo = (prepared: readonly Prepared[]): readonly HttpResult[] => {
    state.flush();
    return bridge.sync(prepared.map(({ call }) => call));
  };

  const request = (method: string, url: string, body?: Body, params?: Params | null) => {
    const prepared = prepare(method, url, body, params);
    return settle(prepared, answersTo([prepared])[0]!);
  };

  return {
    request,
    get: (url: string, params?: Params | null) => request('GET', url, null, params),
    head: (url: string, params?: Params | null) => request('HEAD', url, null, params),
    post: (url: string, body?: Body, params?: Params | null) => request('POST', url, body, params),
    put: (url: string, body?: Body, params?: Params | null) => request('PUT', url, body, params),
    patch: (url: string, body?: Body, params?: Params | null) => request('PATCH', url, body, params),
    del: (url: string, body?: Body, params?: Params | null) => request('DELETE', url, body, params),
    options: (url: string, body?: Body, params?: Params | null) => request('OPTIONS', url, body, params),

    async asyncRequest(method: string, url: string, body?: Body, params?: Params | null) {
      const prepared = prepare(method, url, body, params);
      state.flush();
      const [result] = await bridge.async([prepared.call], state.pending);
      return settle(prepared, result!);
    },

    batch(requests: readonly BatchRequest[] | Readonly<Record<string, BatchRequest>>) {
      const names = Object.keys(requests);
      const prepared = Object.values(requests).map((entry) => {
        if (typeof entry === 'string') return prepare('GET', entry);
        if (isTuple(entry)) return prepare(...entry);
        return prepare(entry.method, entry.url, entry.body, entry.params);
      });
      const results = answersTo(prepared);
      const responses = prepared.map((entry, i) => settle(entry, results[i]!));
      return Array.isArray(requests) ? responses : Object.fromEntries(names.map((name, i) => [name, responses[i]]));
    },

    expectedStatuses: (...ranges: ExpectedStatuses['ranges'][number][]) => new ExpectedStatuses(ranges),
    setResponseCallback(callback: ExpectedStatuses): void {
      expected = callback;
    },
  };
}

function isTuple(entry: BatchRequest): entry is readonly [string, string, Body?, Params?] {
  return Array.isArray(entry);
}

function stringValues(body: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [name, String(value)]));
}

function response(call: HttpCall, result: HttpResult) {
  return {
    url: call.url,
    status: result.status,
    status_text: result.statusText,
    headers: result.headers,
    body: result.body,
    error: result.error,
    error_code: result.errorCode,
    proto: result.protocol,
    remote_ip: result.remoteIp,
    remote_port: result.remotePort,
    timings: result.timings,
    request: { method: call.method, url: call.url, headers: call.headers, body: call.body },
    /** @param selector names joined by dots */
    json(selector?: string): unknown {
      const whole: unknown = JSON.parse(String(result.body));
      const names = selector === undefined ? [] : selector.split('.');
      return names.reduce<unknown>((value, name) => (value as Record<string, unknown> | null | undefined)?.[name], whole);
    },
  };
}
