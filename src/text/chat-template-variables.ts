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

/**
 * Names that come from outside: neither loop variables nor macros nor their parameters. A name that the template assigns
 * itself counts only where it also asks whether somebody else has (`is defined`, `default`).
 */
export function templateVariables(template: Template): ReadonlySet<string> {
  const read = new Set<string>();
  const local = new Set<string>();
  const assigned = new Set<string>();
  const optional = new Set<string>();
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) {
      for (const item of value) visit(item);
    } else if (value instanceof Map) {
      for (const [key, item] of value) visit([key, item]);
    } else if (isNode(value)) {
      visitNode(value);
    }
  };
  const visitNode = (node: Node): void => {
    switch (node.type) {
      case 'Identifier':
        read.add(nameOf(node));
        return;
      case 'MemberExpression':
        visit(node['object']);
        if (node['computed'] === true) visit(node['property']);
        return;
      case 'KeywordArgumentExpression':
        visit(node['value']);
        return;
      case 'FilterExpression':
      case 'FilterStatement': {
        const filter = node['filter'] as Node;
        const name = nameOf(filter.type === 'CallExpression' ? (filter['callee'] as Node) : filter);
        if (name === 'default') addName(optional, node['operand']);
        visit([node['operand'], node['body'], filter['args']]);
        return;
      }
      case 'TestExpression':
        if (nameOf(node['test'] as Node) === 'defined') addName(optional, node['operand']);
        visit(node['operand']);
        return;
      case 'For':
        addNames(local, node['loopvar']);
        visit([node['iterable'], node['body'], node['defaultBlock']]);
        return;
      case 'Macro':
        addName(local, node['name']);
        addNames(local, node['args']);
        visit(node['body']);
        return;
      case 'Set':
        addNames(assigned, node['assignee']);
        visit([node['value'], node['body']]);
        return;
      default:
        // Operators are tokens, and those that are words look like names.
        for (const [key, child] of Object.entries(node)) if (key !== 'operator') visit(child);
    }
  };
  visit(template.parsed.body);
  return new Set(
    [...read].filter((name) => !BUILT_IN.has(name) && !local.has(name) && (!assigned.has(name) || optional.has(name))),
  );
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { readonly type?: unknown }).type === 'string';
}

function nameOf(node: Node): string {
  return String(node['value']);
}

function addName(names: Set<string>, value: unknown): void {
  if (isNode(value) && value.type === 'Identifier') names.add(nameOf(value));
}

/** Of an identifier, a tuple of them, or parameters, which may have defaults. */
function addNames(names: Set<string>, value: unknown): void {
  if (Array.isArray(value)) {
    for (const item of value) addNames(names, item);
  } else if (isNode(value)) {
    addName(names, value);
    if (value.type === 'TupleLiteral') addNames(names, value['value']);
    if (value.type === 'KeywordArgumentExpression') addName(names, value['key']);
  }
}
