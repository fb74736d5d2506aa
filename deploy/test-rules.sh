#!/usr/bin/env bash
# Checks the alerts and runs their cases with Prometheus's own promtool (Debian: package prometheus).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
promtool=${PROMTOOL:-promtool}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$here"
# A PrometheusRule holds a rule file in its spec; JSON is YAML.
node --input-type=module -e '
  import { readFileSync } from "node:fs";
  import { parse } from "yaml";
  process.stdout.write(JSON.stringify(parse(readFileSync(process.argv[1], "utf8")).spec));
' "$here/kubernetes/monitoring/prometheus-rule.yaml" > "$work/rules.yaml"
cp "$here/kubernetes/monitoring/prometheus-rule.test.yaml" "$work/test.yaml"

cd "$work"
"$promtool" --version 2>&1 | head -1
"$promtool" check rules rules.yaml
"$promtool" test rules test.yaml
