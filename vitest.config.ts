import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Machine-readable results beside the readable ones, for whoever counts them.
    ...(process.env['VITEST_JSON'] ? { reporters: ['default', 'json'], outputFile: { json: process.env['VITEST_JSON'] } } : {}),
    setupFiles: ['test/support/fail-on-console.ts'],
    restoreMocks: true,
    // Two suites that each keep two cores busy would only slow each other down.
    fileParallelism: true,
    maxWorkers: 2,
    testTimeout: 30_000,
    projects: [
      {
        extends: true,
        test: { name: 'unit', sequence: { groupOrder: 0 }, include: ['test/unit/**/*.test.ts', 'test/contract/**/*.test.ts'] },
      },
      {
        extends: true,
        test: { name: 'golden', sequence: { groupOrder: 0 }, include: ['test/golden/**/*.test.ts'], testTimeout: 120_000 },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
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
