# SPDX-License-Identifier: MIT
# Masquerade in a container, for systems other than Debian and Ubuntu:
#     docker build -t masquerade . && docker run -it --rm --cap-add SYS_PTRACE masquerade
# gdb needs SYS_PTRACE. An image for other machines: docker build --build-arg MARCH=x86-64-v3 (arm64: armv8-a).
FROM debian:12 AS tools
# What Debian 12 has is wanted, in any version; and `make deps` reads the package lists, so that they stay.
# hadolint ignore=DL3008,DL3009
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates g++ gdb git make
WORKDIR /masquerade
# The packages of `make deps` are a layer of their own, which stays when the sources change.
COPY Makefile ./
COPY tools/make tools/make
RUN make deps

FROM tools
ARG MARCH=native
COPY . .
RUN make MARCH="$MARCH"
CMD ["bash"]
