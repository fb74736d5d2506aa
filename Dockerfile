# syntax=docker/dockerfile:1
#   docker build -t blockdraft .
#   docker build -t blockdraft:cuda --build-arg DEVICE=cuda .     for a host with NVIDIA's container runtime
# Models are not part of the image; they come by a volume:
#   docker run --rm --init -p 8000:8000 -v ./models/smollm2-135m-instruct:/models/target:ro \
#     -v ./models/smollm2-135m-instruct-dflash:/models/target-dflash:ro -v blockdraft-cache:/cache blockdraft
ARG DEVICE=cpu
ARG NODE_IMAGE=node:20-bookworm-slim
# Of the major version of CUDA that ONNX Runtime's provider links.
ARG CUDA_IMAGE=nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04

FROM ${NODE_IMAGE} AS modules-cpu
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

# The npm package has no CUDA provider: its install script fetches it from outside the registry.
FROM modules-cpu AS modules-cuda
WORKDIR /app/node_modules/onnxruntime-node
RUN ONNXRUNTIME_NODE_INSTALL=true node script/install.js

# A stage above, not an image without a tag.
# hadolint ignore=DL3006
FROM modules-${DEVICE} AS modules

FROM ${NODE_IMAGE} AS base-cpu

FROM ${CUDA_IMAGE} AS base-cuda
COPY --from=modules /usr/local/bin/node /usr/local/bin/node

# hadolint ignore=DL3006
FROM base-${DEVICE} AS server
ARG DEVICE
WORKDIR /app
COPY --from=modules /app/node_modules ./node_modules
COPY package.json tsconfig.json LICENSE ./
COPY bin ./bin
COPY src ./src
# Whoever the container runs as may prepare weights there.
RUN mkdir --mode=0777 /cache
ENV NODE_ENV=production \
    BLOCKDRAFT_DEVICE=${DEVICE} \
    BLOCKDRAFT_HOST=0.0.0.0 \
    BLOCKDRAFT_PORT=8000 \
    BLOCKDRAFT_TARGET=/models/target \
    BLOCKDRAFT_CACHE_DIR=/cache \
    BLOCKDRAFT_LOG_FORMAT=json
USER 1000:1000
VOLUME ["/cache"]
EXPOSE 8000
HEALTHCHECK --start-period=10m --interval=10s --timeout=5s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.BLOCKDRAFT_PORT}/ready`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "bin/blockdraft.js"]
CMD ["serve"]
