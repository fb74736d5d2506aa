/** A stray console call in a test is a defect: the product writes through its logger only. */
import { afterEach, beforeEach, expect, vi } from 'vitest';

const METHODS = ['log', 'info', 'warn', 'error', 'debug'] as const;

beforeEach(() => {
  for (const method of METHODS) vi.spyOn(console, method).mockImplementation(() => undefined);
});

afterEach(() => {
  for (const method of METHODS) expect(console[method], `console.${method} was called`).not.toHaveBeenCalled();
});
