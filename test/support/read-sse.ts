/** The `data:` values of a finished event stream, in order; the last should be `[DONE]`. */
export function sseData(text: string): readonly string[] {
  const events = text.split('\n\n');
  if (events.pop() !== '') throw new Error('the stream ended inside an event');
  return events.map((event) => {
    const match = /^data: (.*)$/.exec(event);
    if (match === null) throw new Error(`not one data line: ${JSON.stringify(event)}`);
    return match[1]!;
  });
}

/** The payloads before `[DONE]`. */
export function ssePayloads(text: string): readonly Record<string, unknown>[] {
  const data = [...sseData(text)];
  if (data.pop() !== '[DONE]') throw new Error('the stream did not end with [DONE]');
  return data.map((item) => JSON.parse(item) as Record<string, unknown>);
}
