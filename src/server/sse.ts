/** Server-sent events: one `data:` line per chunk, then `[DONE]`. */
import type { ErrorBody } from './error-response.ts';
import type { ChunkStream } from './generation-service.ts';

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  // Asks nginx and its like not to hold events back.
  'x-accel-buffering': 'no',
} as const;

export interface SseHooks {
  /** The reader went away: stop the work behind the chunks. */
  onCancel(): void;
  /** The chunks failed after the status was sent; returns what the stream says about it. */
  onError(error: unknown): ErrorBody;
  /** Called once, when the stream has ended in whatever way. */
  onEnd(): void;
}

/** A response that pulls a chunk when the connection can take one. */
export function sseResponse(chunks: ChunkStream, hooks: SseHooks): Response {
  const encoder = new TextEncoder();
  let isOpen = true;
  const end = (): void => {
    if (!isOpen) return;
    isOpen = false;
    hooks.onEnd();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        let text: string;
        let isLast = false;
        try {
          const next = await chunks.next();
          isLast = next.done === true;
          text = next.done === true ? DONE : dataLine(next.value);
        } catch (error) {
          isLast = true;
          text = dataLine(hooks.onError(error)) + DONE;
        }
        if (!isOpen) return;
        controller.enqueue(encoder.encode(text));
        if (!isLast) return;
        controller.close();
        end();
      },
      async cancel() {
        hooks.onCancel();
        end();
        await chunks.return();
      },
    },
    // Nothing is pulled ahead of the reader: what a slow client has not read is not turned into bytes.
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: HEADERS });
}

const DONE = 'data: [DONE]\n\n';

/** JSON has no raw line breaks, so one line is always enough. */
function dataLine(payload: object): string {
  return `data: ${JSON.stringify(payload)}\n\n`;
}
