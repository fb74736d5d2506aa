import { describe, expect, it } from 'vitest';
import { type RopeConfig, ropeFromConfig } from '../../../src/model/rope-config.ts';

const BASE = { max_position_embeddings: 1024 };
const YARN = { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 256 };
const read = (config: object) => ropeFromConfig({ ...BASE, ...config } as RopeConfig, 8, 'config.json');

describe('rotary settings of a config', () => {
  it.each([
    { title: 'beside the object', config: { rope_theta: 5, rope_scaling: YARN } },
    { title: 'in the newer object', config: { rope_parameters: { ...YARN, rope_theta: 5 } } },
    { title: 'in the older object', config: { rope_theta: null, rope_scaling: { ...YARN, rope_theta: 5 } } },
    {
      title: 'in all places alike',
      config: { rope_theta: 5, rope_parameters: { ...YARN, rope_theta: 5 }, rope_scaling: { ...YARN, type: 'yarn' } },
    },
  ])('have their base $title', ({ config }) => {
    expect(read(config)).toMatchObject({
      theta: 5,
      dims: 8,
      scaling: { type: 'yarn', factor: 4, originalContext: 256, attentionFactor: 0.1 * Math.log(4) + 1 },
    });
  });

  it('are plain without an object, or with one that says so', () => {
    for (const config of [
      {},
      { rope_scaling: null },
      { rope_parameters: { rope_type: 'default', mrope_section: [1, 2, 1] } },
    ]) {
      expect(read({ rope_theta: 5, ...config }).scaling).toEqual({ type: 'default' });
    }
  });

  it.each([
    { title: 'no base', config: {}, message: /has no rope_theta/ },
    {
      title: 'settings for each type of layer',
      config: { rope_theta: 5, rope_parameters: { full_attention: { ...YARN, rope_theta: 5 } } },
      message: /rope_parameters has settings of its own for full_attention/,
    },
    {
      title: 'such settings without a base for all',
      config: { rope_parameters: { full_attention: { ...YARN, rope_theta: 5 } } },
      message: /rope_parameters has settings of its own for full_attention/,
    },
    {
      title: 'two kinds of scaling',
      config: { rope_theta: 5, rope_parameters: { rope_type: 'default' }, rope_scaling: YARN },
      message: /rope_parameters ask for default .* rope_scaling for yarn/,
    },
    {
      title: 'a base in one object and scaling in the other',
      config: { rope_parameters: { rope_theta: 5 }, rope_scaling: YARN },
      message: /rope_parameters ask for default .* rope_scaling for yarn/,
    },
    {
      title: 'two factors',
      config: { rope_theta: 5, rope_parameters: YARN, rope_scaling: { ...YARN, factor: 2 } },
      message: /or with other numbers/,
    },
    {
      title: 'two bases',
      config: { rope_theta: 5, rope_parameters: { rope_type: 'default', rope_theta: 6 } },
      message: /rope_theta is 5 and 6 in two places/,
    },
    {
      title: 'two parts of a head',
      config: { rope_theta: 5, partial_rotary_factor: 1, rope_parameters: { partial_rotary_factor: 0.5 } },
      message: /partial_rotary_factor is 1 and 0.5 in two places/,
    },
    {
      title: 'two names of a type',
      config: { rope_theta: 5, rope_scaling: { ...YARN, type: 'linear' } },
      message: /type yarn and linear/,
    },
    { title: 'a factor of nothing', config: { rope_theta: 5, rope_scaling: { factor: 4 } }, message: /without its rope_type/ },
    {
      title: 'another type',
      config: { rope_theta: 5, rope_scaling: { rope_type: 'longrope', long_factor: [1] } },
      message: /type longrope/,
    },
  ])('are refused with $title', ({ config, message }) => {
    expect(() => read(config)).toThrowError(
      expect.objectContaining({ code: 'invalid_checkpoint', message: expect.stringMatching(message) }),
    );
  });
});
