#!/usr/bin/env node
// The sources are TypeScript; tsx compiles them as they are imported. So are a user's modules, which Node.js takes for CommonJS, and
// requires, where no package.json says otherwise.
import { register as registerRequire } from 'tsx/cjs/api';
import { register } from 'tsx/esm/api';

registerRequire();
register();
await import('../src/main.ts');
