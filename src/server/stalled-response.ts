/** Ends connections whose other end reads nothing any more: without that they hold what their request holds for ever. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Cuts the connection of a response when bytes of it wait and none is taken for so long. A response that has nothing to
 * say yet may wait: that is for its engine to end.
 */
export function cutWhenStalled(response: ServerResponse, stalledMs: number, onCut: () => void): void {
  // The socket's own timer, which sees the operating system take bytes of a write that is under way.
  response.setTimeout(stalledMs);
  response.on('timeout', (socket: Socket) => {
    if (socket.writableLength === 0) {
      socket.setTimeout(stalledMs);
      return;
    }
    onCut();
    socket.destroy();
  });
}
