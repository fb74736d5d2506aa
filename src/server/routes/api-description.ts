/** `GET /openapi.json`, and `GET /docs`: a page that shows it, without anything from another server. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Hono } from 'hono';
import type { AppEnv } from '../app-env.ts';
import { type DocumentOptions, openApiDocument } from '../openapi/document.ts';

const ASSETS = { 'swagger-ui.css': 'text/css', 'swagger-ui-bundle.js': 'text/javascript' } as const;

export const DESCRIPTION_PATHS: readonly string[] = [
  '/openapi.json',
  '/docs',
  '/docs/start.js',
  ...Object.keys(ASSETS).map((name) => `/docs/${name}`),
];

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>blockdraft</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<div id="page"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</html>
`;

// The bundle would otherwise ask a validator on the internet.
const START = "SwaggerUIBundle({ url: 'openapi.json', dom_id: '#page', validatorUrl: null, deepLinking: true });\n";

const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
} as const;

/** Registers the routes. */
export function addDescriptionRoutes(app: Hono<AppEnv>, options: DocumentOptions): void {
  const require = createRequire(import.meta.url);
  let document: string | undefined;
  app.get('/openapi.json', (context) => {
    document ??= JSON.stringify(openApiDocument(options));
    return context.body(document, 200, { 'content-type': 'application/json' });
  });
  app.get('/docs', (context) => context.body(PAGE, 200, { ...PAGE_HEADERS, 'content-type': 'text/html; charset=utf-8' }));
  app.get('/docs/start.js', (context) => context.body(START, 200, { ...PAGE_HEADERS, 'content-type': 'text/javascript' }));
  for (const [name, type] of Object.entries(ASSETS)) {
    app.get(`/docs/${name}`, async (context) =>
      context.body(await readFile(require.resolve(`swagger-ui-dist/${name}`)), 200, { ...PAGE_HEADERS, 'content-type': type }),
    );
  }
}
