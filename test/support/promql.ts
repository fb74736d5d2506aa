/** What a PromQL query asks for, by Prometheus's own grammar. */
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

export interface PromqlSelector {
  readonly metric: string;
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[];
  /** Of all aggregations around it. */
  readonly groupedBy: readonly string[];
}

/**
 * All selectors of a query.
 * @throws Error when it is no PromQL
 */
export function promqlSelectors(query: string): readonly PromqlSelector[] {
  const text = (node: SyntaxNode): string => query.slice(node.from, node.to);
  const selectors: PromqlSelector[] = [];
  const visit = (node: SyntaxNode, groupedBy: readonly string[]): void => {
    if (node.type.isError) throw new Error(`no PromQL at ${node.from}, ${JSON.stringify(query.slice(node.from))}: ${query}`);
    if (node.name === 'VectorSelector') selectors.push({ ...readSelector(node, text), groupedBy });
    const modifier = node.getChild('AggregateModifier');
    const labels = modifier?.getChild('GroupingLabels')?.getChildren('LabelName') ?? [];
    for (let child = node.firstChild; child !== null; child = child.nextSibling) {
      visit(child, [...groupedBy, ...labels.map(text)]);
    }
  };
  visit(parser.parse(query).topNode, []);
  return selectors;
}

function readSelector(node: SyntaxNode, text: (node: SyntaxNode) => string): Omit<PromqlSelector, 'groupedBy'> {
  const name = node.getChild('Identifier');
  const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
  return {
    metric: name === null ? '' : text(name),
    matchers: matchers.map((matcher) => ({
      label: text(matcher.getChild('LabelName')!),
      operator: text(matcher.getChild('MatchOp')!),
      value: JSON.parse(text(matcher.getChild('StringLiteral')!)),
    })),
  };
}
