/** The options of `bench-serve`, named as vLLM's `bench serve` names them where it has them. */
import { Argument, Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { integer } from './integer-argument.ts';
import { progressOption } from './progress.ts';
import { BUNDLED_PROMPTS, decimal } from './validate-shared-options.ts';

function list<Item>(parse: (text: string) => Item) {
  return (text: string): readonly Item[] => text.split(',').map((item) => parse(item.trim()));
}

const GOALS = ['ttft', 'tpot', 'e2el'];

function goal(text: string, previous: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const [name = '', value = ''] = text.split(':');
  if (GOALS.includes(name) && Number(value) > 0) return { ...previous, [name]: Number(value) };
  throw new InvalidArgumentError(`Expected ${GOALS.join(', ')} and milliseconds, such as ttft:500.`);
}

export function benchServeCommand() {
  return new Command('bench-serve')
    .description('Measure a server under load: throughput, latency, acceptance, and up to which load speculation pays')
    .addArgument(new Argument('[serve-options...]', 'behind --: options of a server to start for the measurement'))
    .addOption(new Option('--base-url <url>', 'a server that runs, with an OpenAI API').conflicts(['target', 'drafter']))
    .addOption(new Option('--target <folder>', 'start a server with this target'))
    .addOption(
      new Option('--drafter <[name=]drafter>', 'start a server with this drafter; may be repeated')
        .argParser((value: string, previous: readonly string[]) => [...previous, value])
        .default([] as readonly string[], 'none'),
    )
    .addOption(new Option('--model <name>', 'the model to ask (default: the first that the server lists)'))
    .addOption(new Option('--api-key <key>', 'sent as bearer token').env('OPENAI_API_KEY'))
    .addOption(new Option('--dataset-path <file>', 'prompts as JSON lines').default(BUNDLED_PROMPTS, 'bundled, 8 categories'))
    .addOption(
      new Option('--num-prompts <n>', 'prompts at each point, evenly from all categories').argParser(integer(2)).default(16),
    )
    .addOption(
      new Option('--max-concurrency <list>', 'clients at a time, each asking the next question when it has its answer')
        .argParser(list(integer(1, 1024)))
        .default([1, 2, 4, 8] as readonly number[], '1,2,4,8'),
    )
    .addOption(
      new Option(
        '--drafters <list>',
        "drafters of the server by name; none is plain decoding (default: none and the server's own)",
      ).argParser(list(String)),
    )
    .addOption(
      new Option(
        '--draft-tokens <list>',
        "longest drafts to compare (default: the server's); fixed ones need a server with a fixed length",
      )
        .argParser(list(integer(1, 1024)))
        .default([] as readonly number[], "the server's"),
    )
    .addOption(
      new Option(
        '--temperature <list>',
        'the first for all loads; the others measured for acceptance, at the first concurrency',
      )
        .argParser(list(decimal(0, 2)))
        .default([0, 0.8] as readonly number[], '0,0.8'),
    )
    .addOption(
      new Option('--input-len <list>', 'tokens of text before the question, about; measured as other temperatures are')
        .argParser(list(integer(0)))
        .default([0, 512] as readonly number[], '0,512'),
    )
    .addOption(new Option('--output-len <n>', 'longest answer in tokens').argParser(integer(1)).default(64))
    .addOption(new Option('--ignore-eos', 'let all answers be that long').default(false))
    .addOption(
      new Option('--repeats <n>', 'rounds over all points, every other one in reverse').argParser(integer(1, 100)).default(2),
    )
    .addOption(new Option('--seed <n>', 'of sampling, and of which prompts are taken').argParser(integer(0)).default(0))
    .addOption(
      new Option('--goodput <name:ms>', 'what a good answer takes at most: ttft, tpot or e2el; may be repeated')
        .argParser(goal)
        .default({} as Readonly<Record<string, number>>, 'none'),
    )
    .addOption(
      new Option(
        '--metric-percentiles <list>',
        'percentiles of times beside mean and median; tables have those of TTFT and TPOT',
      )
        .argParser(list(decimal(0, 100)))
        .default([99] as readonly number[], '99'),
    )
    .addOption(new Option('--save-result', 'write JSON and HTML').default(false))
    .addOption(new Option('--result-dir <folder>', 'where they go').default('.'))
    .addOption(
      new Option(
        '--result-filename <name>',
        'name of the JSON; the HTML is named alike (default: bench-serve.json; bench-compare.html with --compare)',
      ),
    )
    .addOption(new Option('--compare <files...>', 'print two saved results side by side in place of measuring'))
    .addOption(new Option('--json', 'print the result as JSON in place of tables').default(false))
    .addOption(progressOption())
    .addHelpText(
      'after',
      '\nExample: blockdraft bench-serve --save-result -- --drafter dflash --draft-tokens 5\n' +
        '\nExit code: 0 when it was measured, 1 when requests failed or answers differ from plain decoding, 2 when nothing could be measured,\n130 when it was interrupted (what was done by then is reported).\n',
    );
}

export type BenchServeCommandOptions = ReturnType<ReturnType<typeof benchServeCommand>['opts']>;
