/** Groups of a test and the checks in them, as a summary tells them. */
export interface CheckResult {
  readonly name: string;
  readonly path: string;
  passes: number;
  fails: number;
}

export interface CheckGroup {
  readonly name: string;
  /** `::outer::inner`; empty at the root. */
  readonly path: string;
  readonly groups: CheckGroup[];
  readonly checks: CheckResult[];
}

const SEPARATOR = '::';

export class CheckTree {
  readonly root: CheckGroup = { name: '', path: '', groups: [], checks: [] };

  /** @param path of the group */
  add(path: string, name: string, passed: boolean): void {
    const group = this.#group(path);
    let check = group.checks.find((known) => known.name === name);
    if (check === undefined) {
      check = { name, path: `${path}${SEPARATOR}${name}`, passes: 0, fails: 0 };
      group.checks.push(check);
    }
    if (passed) check.passes += 1;
    else check.fails += 1;
  }

  #group(path: string): CheckGroup {
    let group = this.root;
    for (const name of path.split(SEPARATOR).slice(1)) {
      let inner = group.groups.find((known) => known.name === name);
      if (inner === undefined) {
        inner = { name, path: `${group.path}${SEPARATOR}${name}`, groups: [], checks: [] };
        group.groups.push(inner);
      }
      group = inner;
    }
    return group;
  }
}
