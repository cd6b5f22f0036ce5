# One image for all functions and for the Jobs' command; its first argument chooses. `make image` builds it.
#
# What is in it: Node, the libraries that it is linked with, and the bundles. No shell, no package manager.
# Reproducible: the lock file names every package, and the bundles are the same byte for byte from the same commit. Name NODE and
# BASE by digest for the rest. The compile cache, in a layer of its own, differs with each build: V8 puts a random seed into it.

# Node 24.12 or later with npm, on a glibc system: it builds, and gives its own Node to the image.
ARG NODE=node:24-trixie-slim
# What the bundles are laid on: that Node alone, or a distroless image of the same version of Node.
ARG BASE=node-alone

FROM ${NODE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY scripts/build.ts scripts/bundle-options.ts scripts/warm-up.ts ./scripts/
COPY functions functions/
COPY shared shared/
RUN node scripts/build.ts && node scripts/warm-up.ts
RUN mkdir -p node-alone/usr/local/bin && cp -L "$(command -v node)" node-alone/usr/local/bin/
RUN cp -L --parents $(ldd "$(command -v node)" | grep -o '/[^ ]*\.so[^ ]*') node-alone/
# One commit, one time of its files.
ARG SOURCE_DATE_EPOCH=0
RUN find dist node-alone -exec touch -h -d "@${SOURCE_DATE_EPOCH}" {} +

FROM scratch AS node-alone
COPY --from=build /build/node-alone/ /

FROM ${BASE}
# The second is where distroless images have it.
ENV PATH=/usr/local/bin:/nodejs/bin:/usr/bin:/bin NODE_ENV=production
COPY LICENSE /app/
COPY --from=build /build/dist/main.cjs /app/
COPY --from=build /build/dist/parts /app/parts/
COPY --from=build /build/dist/.cache /app/.cache/
# Numeric: the kubelet cannot tell from a name that it isn't root.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["node", "/app/main.cjs"]
