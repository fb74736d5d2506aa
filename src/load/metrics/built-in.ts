import type { MetricDefinition } from './metric.ts';

const counter = (name: string): MetricDefinition => ({ name, type: 'counter', contains: 'default' });
const time = (name: string): MetricDefinition => ({ name, type: 'trend', contains: 'time' });

/** The metrics that k6 documents as built in and that this runner measures. */
export const BUILT_IN_METRICS: readonly MetricDefinition[] = [
  { name: 'vus', type: 'gauge', contains: 'default' },
  { name: 'vus_max', type: 'gauge', contains: 'default' },
  counter('iterations'),
  counter('dropped_iterations'),
  time('iteration_duration'),
  time('group_duration'),
  { name: 'checks', type: 'rate', contains: 'default' },
  counter('http_reqs'),
  { name: 'http_req_failed', type: 'rate', contains: 'default' },
  ...['duration', 'blocked', 'connecting', 'tls_handshaking', 'sending', 'waiting', 'receiving'].map((phase) =>
    time(`http_req_${phase}`),
  ),
  counter('ws_sessions'),
  counter('ws_msgs_sent'),
  counter('ws_msgs_received'),
  time('ws_connecting'),
  time('ws_session_duration'),
  { name: 'data_sent', type: 'counter', contains: 'data' },
  { name: 'data_received', type: 'counter', contains: 'data' },
];

/** Always told apart, threshold or not: answers that are not errors. */
export const BUILT_IN_SUB_METRICS: readonly string[] = ['http_req_duration{expected_response:true}'];
