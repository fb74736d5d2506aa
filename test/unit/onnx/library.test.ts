import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { LIBRARY_VARIABLE, loadLibrary, resolveLibraryPath } from '../../../src/onnx/library.ts';
import { OnnxRuntimeError } from '../../../src/onnx/onnx-runtime-error.ts';
import { openRuntime } from '../../../src/onnx/runtime.ts';
import { TEST_THREADS, testRuntime } from '../../support/runtime.ts';
import { ONE_SENTENCE, thrownBy } from './thrown-by.ts';

const folder = mkdtempSync(join(tmpdir(), 'library-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('which library is loaded', () => {
  it.each([
    ['linux', 'x64', /^libonnxruntime\.so/],
    ['linux', 'arm64', /^libonnxruntime\.so/],
    ['darwin', 'arm64', /^libonnxruntime.*\.dylib$/],
    ['win32', 'x64', /^onnxruntime\.dll$/],
  ] as const)('on %s-%s it is the installed package’s', (platform, arch, name) => {
    const path = resolveLibraryPath({}, platform, arch);
    expect(path).toContain(join('onnxruntime-node', 'bin', 'napi-v6', platform, arch));
    expect(basename(path)).toMatch(name);
  });

  it('is the one that the environment names, whatever the platform', () => {
    const file = join(folder, 'libanything.so');
    writeFileSync(file, '');
    expect(resolveLibraryPath({ [LIBRARY_VARIABLE]: file }, 'sunos', 'sparc')).toBe(file);
  });

  it('is not the environment’s when the variable is empty', () => {
    expect(resolveLibraryPath({ [LIBRARY_VARIABLE]: '' }, 'linux', 'x64')).toContain('onnxruntime-node');
  });

  it('says what to do where the package has none', async () => {
    const error = await thrownBy(() => resolveLibraryPath({}, 'sunos', 'sparc'));
    expect(error).toBeInstanceOf(OnnxRuntimeError);
    expect(error.message).toMatch(ONE_SENTENCE);
    expect(error.message).toContain('No ONNX Runtime library for sunos-sparc');
    expect(error.message).toContain(LIBRARY_VARIABLE);
  });

  it('says that the named file does not exist', async () => {
    const missing = join(folder, 'missing.so');
    const error = await thrownBy(() => resolveLibraryPath({ [LIBRARY_VARIABLE]: missing }));
    expect(error).toMatchObject({ name: 'OnnxRuntimeError', code: 'onnx_runtime', status: 'LIBRARY' });
    expect(error.message).toMatch(ONE_SENTENCE);
    expect(error.message).toContain(`${LIBRARY_VARIABLE} names ${missing}, which does not exist`);
  });
});

describe('a library that cannot be used', () => {
  it('says so when the file is no library', async () => {
    const file = join(folder, 'text.so');
    writeFileSync(file, 'not a library at all');
    const error = await thrownBy(() => loadLibrary(file));
    expect(error).toMatchObject({ name: 'OnnxRuntimeError', status: 'LIBRARY' });
    expect(error.message).toMatch(ONE_SENTENCE);
    expect(error.message).toContain(`Cannot load ${file} as a shared library`);
  });

  const otherLibraries: Partial<Record<NodeJS.Platform, string>> = {
    linux: 'libc.so.6',
    darwin: '/usr/lib/libSystem.B.dylib',
    win32: 'kernel32.dll',
  };
  const other = otherLibraries[process.platform];
  it.skipIf(other === undefined)('says so when it is another library', async () => {
    const error = await thrownBy(() => loadLibrary(other as string));
    expect(error).toMatchObject({ name: 'OnnxRuntimeError', status: 'LIBRARY' });
    expect(error.message).toMatch(ONE_SENTENCE);
    expect(error.message).toContain(`${other} is not an ONNX Runtime library`);
  });

  it('says so when it is too old, with both versions', async () => {
    const path = resolveLibraryPath();
    const error = await thrownBy(() => loadLibrary(path, 999));
    expect(error).toMatchObject({ name: 'OnnxRuntimeError', status: 'LIBRARY' });
    expect(error.message).toMatch(ONE_SENTENCE);
    expect(error.message).toMatch(/is ONNX Runtime 1\.\d+\.\d+, but 1\.999 or newer is needed$/);
  });
});

describe('the runtime', () => {
  it('is opened once and given to all who ask for the same threads', () => {
    expect(testRuntime()).toBe(testRuntime());
    expect(testRuntime().version).toMatch(/^1\.\d+\.\d+$/);
  });

  it('refuses another number of threads', async () => {
    testRuntime();
    const error = await thrownBy(() => openRuntime({ threads: TEST_THREADS + 1 }));
    expect(error).toMatchObject({ name: 'OnnxRuntimeError', status: 'INVALID_ARGUMENT' });
    expect(error.message).toContain(
      `Expected ${TEST_THREADS} threads, as the runtime is already open, got ${TEST_THREADS + 1}`,
    );
  });
});
