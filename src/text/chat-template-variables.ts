/** Which variables a chat template reads, so that a request can only set what means something to it. */
import type { Template } from '@huggingface/jinja';

type Node = Readonly<Record<string, unknown>> & { readonly type: string };

/** What the template language brings itself. */
const BUILT_IN: ReadonlySet<string> = new Set([
  'true',
  'false',
  'none',
  'True',
  'False',
  'None',
  'loop',
  'caller',
  'range',
  'namespace',
  'raise_exception',
  'strftime_now',
]);

/** Names that come from outside: the template reads them before it gives them a value itself, if it ever does. */
export function templateVariables(template: Template): ReadonlySet<string> {
  const outside = new Set<string>();
  const own = new Set(BUILT_IN);
  const visitAll = (values: Iterable<unknown>): void => {
    for (const value of values) visit(value);
  };
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) visitAll(value);
    else if (value instanceof Map) visitAll([...value].flat());
    else if (isNode(value)) visitNode(value);
  };
  const visitNode = (node: Node): void => {
    switch (node.type) {
      case 'Identifier':
        if (!own.has(nameOf(node))) outside.add(nameOf(node));
        return;
      case 'MemberExpression':
        visit(node['object']);
        if (node['computed'] === true) visit(node['property']);
        return;
      case 'KeywordArgumentExpression':
        visit(node['value']);
        return;
      case 'FilterExpression':
      case 'FilterStatement':
        // A filter is an identifier, or a call of one.
        visitAll([node['operand'], node['body'], (node['filter'] as Node)['args']]);
        return;
      case 'TestExpression':
        visit(node['operand']);
        return;
      case 'For':
        visit(node['iterable']);
        for (const name of declaredNames(node['loopvar'])) own.add(name);
        visitAll([node['body'], node['defaultBlock']]);
        return;
      case 'Macro':
        visit((node['args'] as readonly Node[]).filter(({ type }) => type === 'KeywordArgumentExpression'));
        for (const name of declaredNames([node['name'], node['args']])) own.add(name);
        visit(node['body']);
        return;
      case 'Set':
        visitAll([node['value'], node['body']]);
        for (const name of declaredNames(node['assignee'])) own.add(name);
        return;
      default:
        // Operators are tokens, and those that are words look like names.
        visitAll(Object.entries(node).flatMap(([key, child]) => (key === 'operator' ? [] : [child])));
    }
  };
  visit(template.parsed.body);
  return outside;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { readonly type?: unknown }).type === 'string';
}

function nameOf(node: Node): string {
  return String(node['value']);
}

/** Of an identifier, a tuple of them, or parameters, which may have defaults; a member of something declares nothing. */
function declaredNames(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(declaredNames);
  if (!isNode(value)) return [];
  if (value.type === 'Identifier') return [nameOf(value)];
  if (value.type === 'TupleLiteral') return declaredNames(value['value']);
  return value.type === 'KeywordArgumentExpression' ? declaredNames(value['key']) : [];
}
