import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { chosenWeights } from '../../../src/cli/chosen-weights.ts';

const FIXTURES = join(import.meta.dirname, '../../golden/fixtures');
const [IN_F32, IN_BF16] = [join(FIXTURES, 'qwen3-untied'), join(FIXTURES, 'qwen3-bf16')];

describe('without a format', () => {
  it('takes int8 on a CPU, and a 16-bit type on CUDA', async () => {
    expect(await chosenWeights({ target: IN_BF16, device: 'cpu' })).toBe('int8');
    expect(await chosenWeights({ target: IN_BF16, device: 'cuda' })).toBe('bf16');
    expect(await chosenWeights({ target: IN_F32, device: 'cuda' })).toBe('bf16');
  });
});

describe('with a format', () => {
  it.each([
    ['cpu', 'int8'],
    ['cpu', 'f32'],
    ['cuda', 'f16'],
    ['cuda', 'int4'],
  ] as const)('keeps on %s what that computes with: %s', async (device, weights) => {
    expect(await chosenWeights({ target: IN_F32, device, weights })).toBe(weights);
  });

  it.each([
    ['cpu', 'bf16', 'Expected --weights int8, int4 or f32 with --device cpu, got bf16: a CPU has no kernels of bf16'],
    ['cpu', 'f16', 'got f16: a CPU has no kernels of bf16 and computes f16 by way of f32'],
    ['cuda', 'f32', 'Expected --weights bf16, f16, int8 or int4 with --device cuda, got f32: attention on CUDA'],
  ] as const)('refuses on %s by name what that does not: %s', async (device, weights, message) => {
    await expect(chosenWeights({ target: IN_F32, device, weights })).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining(message),
      details: { param: 'weights' },
    });
  });
});
