/** The options of `serve`, from the command line and the environment. */

import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { DEFAULT_ENGINE_LIMITS } from '../engine/engine-limits.ts';
import { LOG_FORMATS, LOG_LEVELS } from '../server/logger.ts';
import {
  cacheDirOption,
  deviceIdOption,
  deviceOption,
  maxContextOption,
  threadsOption,
  weightsOption,
} from './compute-options.ts';
import { allowUnclaimedOption, finalTapsOption } from './inspect-options.ts';
import { integer } from './integer-argument.ts';
import { collect } from './list-argument.ts';

const MODELS = resolve(import.meta.dirname, '../../models');
export const DEFAULT_DRAFTERS: readonly string[] = ['dflash'];
export const DEFAULT_TARGET = resolve(MODELS, 'smollm2-135m-instruct');

export function share(text: string): number {
  const value = Number(text);
  if (/^(\d+(\.\d*)?|\.\d+)$/.test(text) && value <= 1) return value;
  throw new InvalidArgumentError('Expected a number from 0 to 1.');
}

const BYTE_UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

export function bytes(text: string): number {
  const [, digits = '', unit = ''] = /^(\d+)([A-Za-z]*)$/.exec(text) ?? [];
  const factor = BYTE_UNITS[unit];
  if (digits !== '' && factor !== undefined) return Number(digits) * factor;
  throw new InvalidArgumentError('Expected a number of bytes, such as 536870912, 512MiB or 2GiB.');
}

export function otlpEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new InvalidArgumentError('Expected a URL such as http://collector:4318.');
  }
  // Options are shown to who may ask; headers are not among them.
  if (url.username !== '' || url.password !== '') {
    throw new InvalidArgumentError('Expected a URL without user and password; put them into OTEL_EXPORTER_OTLP_HEADERS.');
  }
  return text;
}

/** A variable that is not set would otherwise leave the server open, and nobody the wiser. */
function apiKeys(text: string, previous: readonly string[]): readonly string[] {
  const keys = collect(text, previous);
  if (keys.length > previous.length) return keys;
  throw new InvalidArgumentError('Expected a key, got none; leave the option out for a server that is open to all.');
}

/** As a browser sends it: without a path, in lower case, without the port that is meant anyway. */
function origins(text: string, previous: readonly string[]): readonly string[] {
  return collect(text, previous).map((origin) => {
    if (!/^[a-z][a-z\d+.-]*:\/\/[^/*]+\/?$/i.test(origin) || !URL.canParse(origin)) {
      throw new InvalidArgumentError('Expected an origin such as https://app.example.org.');
    }
    const url = new URL(origin);
    // Pages of browser extensions have origins of other schemes, which a URL does not tell.
    return url.origin === 'null' ? origin.replace(/\/$/, '') : url.origin;
  });
}

/** Every option can be given by the environment too; the command line wins. */
export function serveCommand() {
  return new Command('serve')
    .description('Serve a target model with a drafter over an OpenAI-compatible API (the default command)')
    .addOption(
      new Option('--target <folder>', 'Hugging Face folder of the target')
        .env('BLOCKDRAFT_TARGET')
        .default(DEFAULT_TARGET, 'the embedded SmolLM2-135M-Instruct'),
    )
    .addOption(
      new Option(
        '--drafter <[name=]drafter>',
        'none, ngram, dflash (the folder <target>-dflash), or a drafter folder; may be repeated: requests choose by name',
      )
        .env('BLOCKDRAFT_DRAFTER')
        .argParser((value, previous: readonly string[]) => collect(value, previous === DEFAULT_DRAFTERS ? [] : previous))
        .default(DEFAULT_DRAFTERS, 'dflash'),
    )
    .addOption(
      new Option('--drafter-module <[name=]file>', 'your own drafter: a module that exports createDrafter; its code is run')
        .env('BLOCKDRAFT_DRAFTER_MODULE')
        .argParser(collect)
        .default([] as readonly string[], 'none'),
    )
    .addOption(
      new Option('--draft-tokens <n|auto>', 'length of each draft; auto: as long as it pays, measured all the time')
        .env('BLOCKDRAFT_DRAFT_TOKENS')
        .argParser((text): number | 'auto' => (text === 'auto' ? text : integer(1)(text)))
        .default('auto' as const),
    )
    .addOption(
      new Option(
        '--split <shares>',
        'drafters of the requests that name none, by weight, such as a=0.8,b=0.2; none is plain decoding',
      ).env('BLOCKDRAFT_SPLIT'),
    )
    .addOption(
      new Option('--shadow <drafter>', 'score this drafter beside the one that serves, changing nothing; may be repeated')
        .env('BLOCKDRAFT_SHADOW')
        .argParser(collect)
        .default([] as readonly string[], 'none'),
    )
    .addOption(
      new Option('--shadow-rate <share>', 'share of the requests in which --shadow drafters are scored')
        .env('BLOCKDRAFT_SHADOW_RATE')
        .argParser(share)
        .default(0.1),
    )
    .addOption(
      new Option('--audit-rate <share>', 'share of the answers that are decoded again without speculation in idle time')
        .env('BLOCKDRAFT_AUDIT_RATE')
        .argParser(share)
        .default(0),
    )
    .addOption(
      new Option('--audit-dir <folder>', 'where audits leave answers that differ: prompt, tokens, seed').env(
        'BLOCKDRAFT_AUDIT_DIR',
      ),
    )
    .addOption(
      new Option('--allow-trace', 'let requests ask for what happened in each round, token by token')
        .env('BLOCKDRAFT_ALLOW_TRACE')
        .default(false),
    )
    .addOption(
      new Option('--allow-drafter-swap', 'let callers with an API key replace drafters by folders in --drafter-dir')
        .env('BLOCKDRAFT_ALLOW_DRAFTER_SWAP')
        .default(false),
    )
    .addOption(
      new Option(
        '--allow-validation',
        'let callers with an API key measure the drafters that are served and record their training data',
      )
        .env('BLOCKDRAFT_ALLOW_VALIDATION')
        .default(false),
    )
    .addOption(
      new Option('--validation-dir <folder>', 'folder that jobs of --allow-validation may write into').env(
        'BLOCKDRAFT_VALIDATION_DIR',
      ),
    )
    .addOption(
      new Option(
        '--drafter-dir <folder>',
        'folder of the drafters that --allow-drafter-swap may load, and of the training runs that jobs may watch',
      ).env('BLOCKDRAFT_DRAFTER_DIR'),
    )
    .addOption(
      new Option(
        '--watch-drafter <name=folder>',
        'put each new checkpoint that a training run writes into the folder in the place of the named drafter',
      )
        .env('BLOCKDRAFT_WATCH_DRAFTER')
        .argParser(collect)
        .default([] as readonly string[], 'none'),
    )
    .addOption(finalTapsOption())
    .addOption(allowUnclaimedOption())
    .addOption(
      new Option(
        '--synthetic-acceptance <rates>',
        'for capacity tests: keep drafts by rates such as 0.8,0.6,0.4 or length:2.5/5; the text is worth nothing, and says so',
      ).env('BLOCKDRAFT_SYNTHETIC_ACCEPTANCE'),
    )
    .addOption(weightsOption())
    .addOption(
      new Option('--served-model-name <name>', 'name in the API (default: the folder name)').env(
        'BLOCKDRAFT_SERVED_MODEL_NAME',
      ),
    )
    .addOption(cacheDirOption())
    .addOption(deviceOption())
    .addOption(deviceIdOption())
    .addOption(threadsOption())
    .addOption(maxContextOption())
    .addOption(
      new Option('--max-num-seqs <n>', 'sequences decoded together')
        .env('BLOCKDRAFT_MAX_NUM_SEQS')
        .argParser(integer(1, 64))
        .default(8),
    )
    .addOption(
      new Option('--max-num-batched-tokens <n>', 'rows of one step, prompts included')
        .env('BLOCKDRAFT_MAX_NUM_BATCHED_TOKENS')
        .argParser(integer(32))
        .default(256),
    )
    .addOption(
      new Option('--max-step-ms <ms>', 'time of a step while answers are streamed; long prompts get what that leaves')
        .env('BLOCKDRAFT_MAX_STEP_MS')
        .argParser(integer(1))
        .default(DEFAULT_ENGINE_LIMITS.maxStepMs),
    )
    .addOption(
      new Option('--max-num-queued-tokens <n>', 'prompt tokens that may wait; more are refused with 503')
        .env('BLOCKDRAFT_MAX_NUM_QUEUED_TOKENS')
        .argParser(integer(0))
        .default(DEFAULT_ENGINE_LIMITS.maxWaitingTokens),
    )
    .addOption(
      new Option(
        '--max-requests-per-key <n>',
        'requests of one API key (or of all callers without keys) at a time; more get 429',
      )
        .env('BLOCKDRAFT_MAX_REQUESTS_PER_KEY')
        .argParser(integer(1)),
    )
    .addOption(
      new Option('--request-timeout <seconds>', 'time that a request may take, waiting included (default: any)')
        .env('BLOCKDRAFT_REQUEST_TIMEOUT')
        .argParser(integer(1)),
    )
    .addOption(
      new Option(
        '--kv-cache-bytes <bytes>',
        'memory for the caches of running requests (default: for all sequences, if it is there)',
      )
        .env('BLOCKDRAFT_KV_CACHE_BYTES')
        .argParser(bytes),
    )
    .addOption(
      new Option('--prefix-cache-bytes <bytes>', 'memory for prompts and answers that later prompts may begin with; 0: off')
        .env('BLOCKDRAFT_PREFIX_CACHE_BYTES')
        .argParser(bytes)
        .default(DEFAULT_ENGINE_LIMITS.prefixCacheBytes, '512MiB'),
    )
    .addOption(
      new Option('--drafter-timeout-ms <ms>', 'time of a draft; a drafter that takes longer is left out for a minute')
        .env('BLOCKDRAFT_DRAFTER_TIMEOUT_MS')
        .argParser(integer(1))
        .default(DEFAULT_ENGINE_LIMITS.drafterTimeoutMs),
    )
    .addOption(
      new Option('--max-num-queued-reqs <n>', 'requests that may wait; more are refused with 503')
        .env('BLOCKDRAFT_MAX_NUM_QUEUED_REQS')
        .argParser(integer(0))
        .default(256),
    )
    .addOption(new Option('--host <address>', 'address to listen on').env('BLOCKDRAFT_HOST').default('127.0.0.1'))
    .addOption(
      new Option('--port <n>', 'port to listen on; 0 takes a free one')
        .env('BLOCKDRAFT_PORT')
        .argParser(integer(0, 65535))
        .default(8000),
    )
    .addOption(
      new Option('--api-key <key>', 'accept only requests with this key; may be repeated')
        .env('BLOCKDRAFT_API_KEY')
        .argParser(apiKeys)
        .default([] as readonly string[], 'none'),
    )
    .addOption(
      new Option('--api-key-file <path>', 'accept only requests with a key of this file, one a line').env(
        'BLOCKDRAFT_API_KEY_FILE',
      ),
    )
    .addOption(
      new Option('--cors-origin <origin>', 'browser origin whose pages may read answers over HTTP; may be repeated')
        .env('BLOCKDRAFT_CORS_ORIGIN')
        .argParser(origins)
        .default([] as readonly string[], 'none'),
    )
    .addOption(
      new Option(
        '--allowed-origin <origin>',
        'browser origin that may open a WebSocket, and whose host is a name of this server; may be repeated',
      )
        .env('BLOCKDRAFT_ALLOWED_ORIGIN')
        .argParser(origins)
        .default([] as readonly string[], 'none'),
    )
    .addOption(
      new Option(
        '--reasoning-parser <parser>',
        'tell <think> … </think> apart from content; auto: if the model has tokens for it',
      )
        .env('BLOCKDRAFT_REASONING_PARSER')
        .choices(['auto', 'qwen3', 'none'] as const)
        .default('auto' as const),
    )
    .addOption(
      new Option('--per-request-spec-decode-metrics <level>', 'acceptance statistics in each answer')
        .env('BLOCKDRAFT_PER_REQUEST_SPEC_DECODE_METRICS')
        .choices(['none', 'summary', 'detailed'] as const)
        .default('summary' as const),
    )
    .addOption(
      new Option('--vllm-metric-aliases', "repeat metrics under vLLM's own names")
        .env('BLOCKDRAFT_VLLM_METRIC_ALIASES')
        .default(false),
    )
    .addOption(
      new Option('--shutdown-timeout <seconds>', 'time for running answers after SIGTERM')
        .env('BLOCKDRAFT_SHUTDOWN_TIMEOUT')
        .argParser(integer(0))
        .default(30),
    )
    .addOption(
      new Option('--log-format <format>', 'log lines on standard error: for people, or one JSON object each')
        .env('BLOCKDRAFT_LOG_FORMAT')
        .choices(LOG_FORMATS)
        .default('pretty' as const),
    )
    .addOption(
      new Option('--log-level <level>', 'log lines from this level on; debug tells of health checks too')
        .env('BLOCKDRAFT_LOG_LEVEL')
        .choices(LOG_LEVELS)
        .default('info' as const),
    )
    .addOption(
      new Option(
        '--log-stats-interval <seconds>',
        'a log line of throughput and acceptance so often while requests run; 0: none',
      )
        .env('BLOCKDRAFT_LOG_STATS_INTERVAL')
        .argParser(integer(0))
        .default(10),
    )
    .addOption(
      new Option('--otlp-endpoint <url>', 'send a trace of each request to this OpenTelemetry collector, by OTLP over HTTP')
        .env('OTEL_EXPORTER_OTLP_ENDPOINT')
        .argParser(otlpEndpoint),
    );
}

export type ServeOptions = ReturnType<ReturnType<typeof serveCommand>['opts']>;
