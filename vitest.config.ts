import { defineConfig } from 'vitest/config';

/**
 * They compare bits, which may depend on how threads share out the work of a kernel; so they have two, as the server would,
 * and the machine alone.
 */
const TO_THE_BIT = [
  'test/golden/hybrid-rollback.test.ts',
  'test/golden/moe-targets.test.ts',
  'test/golden/target-invariance.test.ts',
  'test/unit/target/attended-rows.test.ts',
];
/**
 * For files that run two at a time on two cores: the threads of one that wait for work spin, and keep the other's from it.
 * Three heavy files together took 62 to 67 s of processor time with a thread each, and 123 s with two.
 */
const ONE_THREAD = { TEST_THREADS: '1' };

export default defineConfig({
  test: {
    // Machine-readable results beside the readable ones, for whoever counts them.
    ...(process.env['VITEST_JSON'] ? { reporters: ['default', 'json'], outputFile: { json: process.env['VITEST_JSON'] } } : {}),
    setupFiles: ['test/support/fail-on-console.ts'],
    restoreMocks: true,
    // A file keeps a core busy.
    fileParallelism: true,
    maxWorkers: 2,
    testTimeout: 30_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          sequence: { groupOrder: 0 },
          include: ['test/unit/**/*.test.ts', 'test/contract/**/*.test.ts'],
          exclude: TO_THE_BIT,
          env: ONE_THREAD,
        },
      },
      {
        extends: true,
        test: {
          name: 'golden',
          sequence: { groupOrder: 0 },
          include: ['test/golden/**/*.test.ts'],
          exclude: TO_THE_BIT,
          env: ONE_THREAD,
          testTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts', ...TO_THE_BIT],
          testTimeout: 240_000,
          hookTimeout: 240_000,
          fileParallelism: false,
          // Alone on the machine: some of these measure what an event loop gets of it.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
