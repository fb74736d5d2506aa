/** The header of a safetensors file: eight bytes of length, JSON, then the data. */
import { type FileHandle, open } from 'node:fs/promises';
import { AppError } from '../core/app-error.ts';
import { readFully } from './file-io.ts';
import { duplicateKey } from './json-duplicate-key.ts';
import { elementCount, formatShape, isTensorDtype, tensorBytes } from './tensor-dtype.ts';
import type { TensorLocation } from './tensor-location.ts';

/** The limit of the reference implementation: a length beyond it is an attack or not a safetensors file. */
const MAX_HEADER_BYTES = 100_000_000;

/** The format allows no holes, so the writer fills the gaps before aligned tensors with entries of this name. */
export const PADDING_PREFIX = '__padding_';

/** One safetensors file, header only. */
export interface SafetensorsHeader {
  readonly file: string;
  /** Offset of the first data byte. */
  readonly dataStart: number;
  /** Size of the whole file. */
  readonly fileBytes: number;
  /** The JSON as written, without the eight bytes of length. */
  readonly headerBytes: Uint8Array;
  readonly metadata: Readonly<Record<string, string>>;
  /** In the order of the header. */
  readonly tensors: ReadonlyMap<string, TensorLocation>;
}

/**
 * Reads and checks the header of `file`.
 *
 * @throws AppError `invalid_checkpoint` for anything but a complete safetensors file
 */
export async function readSafetensorsHeader(file: string): Promise<SafetensorsHeader> {
  await using handle = await open(file, 'r');
  return await readHeaderOf(handle, file);
}

/** As `readSafetensorsHeader`, of an open file. */
export async function readHeaderOf(handle: FileHandle, file: string): Promise<SafetensorsHeader> {
  const fileBytes = (await handle.stat()).size;
  if (fileBytes < 8) throw invalid(file, 'at least 8 bytes', `${fileBytes}`);
  const prefix = Buffer.alloc(8);
  await readFully(handle, prefix, 0, file);
  const length = prefix.readBigUInt64LE(0);
  if (length > BigInt(MAX_HEADER_BYTES)) {
    throw invalid(file, `a header of at most ${MAX_HEADER_BYTES} bytes`, `a length of ${length}`);
  }
  if (8 + Number(length) > fileBytes) {
    throw invalid(file, `a header of ${length} bytes`, `a file of ${fileBytes} bytes, which ends inside it`);
  }
  const headerBytes = new Uint8Array(Number(length));
  await readFully(handle, headerBytes, 8, file);
  return parseSafetensorsHeader(headerBytes, fileBytes, file);
}

/**
 * Checks a header against the size of its file.
 *
 * @param headerBytes the JSON, without the eight bytes of length
 * @param fileBytes size of the whole file
 * @throws AppError `invalid_checkpoint`
 */
export function parseSafetensorsHeader(headerBytes: Uint8Array, fileBytes: number, file: string): SafetensorsHeader {
  const dataStart = 8 + headerBytes.byteLength;
  const { entries, metadata } = parseJson(headerBytes, file);
  const tensors = new Map<string, TensorLocation>();
  const spans: { readonly name: string; readonly begin: number; readonly end: number }[] = [];
  for (const [name, entry] of entries) {
    const { location, begin, end } = parseEntry(name, entry, dataStart, file);
    spans.push({ name, begin, end });
    if (!name.startsWith(PADDING_PREFIX)) tensors.set(name, location);
  }
  spans.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let end = 0;
  let last = '';
  for (const span of spans) {
    if (span.begin < end) throw invalid(file, 'tensors that do not overlap', `${last} and ${span.name} on the same bytes`);
    end = span.end;
    last = span.name;
  }
  if (dataStart + end !== fileBytes) {
    throw invalid(file, `${dataStart + end} bytes, as its header says,`, `${fileBytes}`);
  }
  return { file, dataStart, fileBytes, headerBytes, metadata, tensors };
}

function parseJson(
  headerBytes: Uint8Array,
  file: string,
): { entries: readonly (readonly [string, unknown])[]; metadata: Readonly<Record<string, string>> } {
  let text: string;
  let json: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(headerBytes);
    json = JSON.parse(text);
  } catch (error) {
    throw invalid(file, 'a JSON header', 'something that cannot be parsed', error);
  }
  if (!isRecord(json)) throw invalid(file, 'a JSON object as header', Array.isArray(json) ? 'an array' : typeof json);
  const twice = duplicateKey(text);
  if (twice !== null) throw invalid(file, 'each tensor once', `${twice} twice`);
  const metadata: Record<string, string> = {};
  const given = json['__metadata__'] ?? {};
  if (!isRecord(given)) throw invalid(file, 'an object as __metadata__', typeof given);
  for (const [key, value] of Object.entries(given)) {
    if (typeof value !== 'string') throw invalid(file, `text as metadata ${key}`, typeof value);
    metadata[key] = value;
  }
  return { entries: Object.entries(json).filter(([name]) => name !== '__metadata__'), metadata };
}

function parseEntry(
  name: string,
  entry: unknown,
  dataStart: number,
  file: string,
): { location: TensorLocation; begin: number; end: number } {
  if (!isRecord(entry)) throw invalid(file, `an object for tensor ${name}`, typeof entry);
  const { dtype, shape, data_offsets: offsets } = entry;
  if (!isTensorDtype(dtype)) throw invalid(file, `a known dtype for tensor ${name}`, shown(dtype));
  if (!isSizes(shape)) throw invalid(file, `a shape of whole numbers for tensor ${name}`, shown(shape));
  if (!isSizes(offsets) || offsets.length !== 2 || offsets[0]! > offsets[1]!) {
    throw invalid(file, `data_offsets [begin, end] for tensor ${name}`, shown(offsets));
  }
  const [begin, end] = offsets as [number, number];
  const byteLength = tensorBytes(dtype, elementCount(shape));
  if (byteLength !== end - begin) {
    throw invalid(file, `${byteLength ?? 'whole'} bytes for tensor ${name} (${dtype} ${formatShape(shape)})`, `${end - begin}`);
  }
  return { location: { file, offset: dataStart + begin, byteLength, dtype, shape }, begin, end };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? 'nothing';
}

function invalid(file: string, expected: string, got: string, cause?: unknown): AppError {
  return new AppError(
    'invalid_checkpoint',
    `expected ${expected} in ${file}, got ${got}; it is damaged or no safetensors file, so fetch it again`,
    { cause },
  );
}
