# SPDX-License-Identifier: Apache-2.0
# One image, several entry points: netplane-agent (started by netplane-start), netplane-mounts, netplane-datastore, netplane-operator, netplane-controllers, netplanectl. amd64 and arm64:
#   docker buildx build --platform linux/amd64,linux/arm64 -t netplane:3.31.5 .
# Which packages and files it has is said in scripts/image alone; `make image` makes the same root file system without Docker.
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends make ca-certificates
WORKDIR /src
COPY scripts scripts
RUN scripts/install-deps.sh build image
COPY . .
# packages first: they change less often
RUN scripts/image/rootfs packages /root-fs
RUN make -s all && scripts/image/rootfs files /root-fs

FROM scratch
COPY --from=build /root-fs /
ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# the agent changes the node's network: it is root, with the few capabilities that the manifest names
USER 0
CMD ["netplane-start"]
