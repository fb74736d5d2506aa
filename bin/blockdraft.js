#!/usr/bin/env node
// The sources are TypeScript; tsx compiles them as they are imported.
import { register } from 'tsx/esm/api';

register();
await import('../src/main.ts');
