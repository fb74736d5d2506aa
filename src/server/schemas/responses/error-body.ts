import { z } from 'zod';

/** What every refusal and failure answers. */
export const errorBody = z.strictObject({
  error: z.strictObject({
    message: z.string().meta({ description: 'What was expected, what came, what to do.' }),
    type: z.string(),
    param: z.string().nullable().meta({ description: 'The field that is at fault.' }),
    code: z.string(),
  }),
});
