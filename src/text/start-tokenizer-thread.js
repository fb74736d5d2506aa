// Starts the worker's TypeScript, as bin/blockdraft.js starts the program's: a worker does not inherit the loader.
import { register } from 'tsx/esm/api';

register();
await import('./tokenizer-thread.ts');
