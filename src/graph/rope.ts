/** Tables of rotary position embeddings. */

/** How the frequencies of a rotary embedding are stretched for long contexts. */
export type RopeScaling =
  | { readonly type: 'default' }
  | { readonly type: 'linear'; readonly factor: number }
  | {
      readonly type: 'llama3';
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      readonly originalContext: number;
    }
  | {
      readonly type: 'yarn';
      readonly factor: number;
      readonly originalContext: number;
      readonly betaFast: number;
      readonly betaSlow: number;
      /** Multiplies cosines and sines; by default 0.1 ln(factor) + 1. */
      readonly attentionFactor: number;
      /** Whether the bounds of the ramp are rounded to whole dimensions. */
      readonly truncate: boolean;
    };

export interface RopeSpec {
  /** Base of the geometric series of wavelengths. */
  readonly theta: number;
  /** Rotated dimensions of a head; the two halves are rotated against each other. */
  readonly dims: number;
  readonly scaling: RopeScaling;
}

/** Angles per position, radians; [dims / 2], fastest first. */
export function inverseFrequencies(spec: RopeSpec): Float64Array {
  const { theta, dims, scaling } = spec;
  const plain = Float64Array.from({ length: dims / 2 }, (_, i) => theta ** ((-2 * i) / dims));
  switch (scaling.type) {
    case 'default':
      return plain;
    case 'linear':
      return plain.map((frequency) => frequency / scaling.factor);
    case 'llama3':
      return plain.map((frequency) => {
        const wavelength = (2 * Math.PI) / frequency;
        const { factor, lowFrequencyFactor, highFrequencyFactor, originalContext } = scaling;
        if (wavelength < originalContext / highFrequencyFactor) return frequency;
        if (wavelength > originalContext / lowFrequencyFactor) return frequency / factor;
        const share = (originalContext / wavelength - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor);
        return (1 - share) * (frequency / factor) + share * frequency;
      });
    case 'yarn': {
      // Peng et al. 2023, eq. 17 to 25: interpolate slow dimensions, keep fast ones, ramp between.
      const dimensionOf = (rotations: number) =>
        (dims * Math.log(scaling.originalContext / (rotations * 2 * Math.PI))) / (2 * Math.log(theta));
      const round = scaling.truncate ? { down: Math.floor, up: Math.ceil } : { down: (x: number) => x, up: (x: number) => x };
      const low = Math.max(round.down(dimensionOf(scaling.betaFast)), 0);
      let high = Math.min(round.up(dimensionOf(scaling.betaSlow)), dims - 1);
      if (high === low) high += 0.001;
      return plain.map((frequency, i) => {
        const ramp = Math.min(Math.max((i - low) / (high - low), 0), 1);
        return (frequency / scaling.factor) * ramp + frequency * (1 - ramp);
      });
    }
  }
}

export interface RopeTables {
  /** [positions, dims / 2] */
  readonly cos: Float32Array<ArrayBuffer>;
  /** [positions, dims / 2] */
  readonly sin: Float32Array<ArrayBuffer>;
}

export function ropeTables(spec: RopeSpec, positions: number): RopeTables {
  const frequencies = inverseFrequencies(spec);
  const amplitude = spec.scaling.type === 'yarn' ? spec.scaling.attentionFactor : 1;
  const half = frequencies.length;
  const cos = new Float32Array(positions * half);
  const sin = new Float32Array(positions * half);
  for (let position = 0; position < positions; position++) {
    for (let i = 0; i < half; i++) {
      const angle = position * (frequencies[i] as number);
      cos[position * half + i] = Math.cos(angle) * amplitude;
      sin[position * half + i] = Math.sin(angle) * amplitude;
    }
  }
  return { cos, sin };
}
