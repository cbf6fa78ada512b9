// SPDX-License-Identifier: Apache-2.0
/** The numbers of bpf/include/maps.h that rows carry, which all layers speak of; a test of agent/maps compares them with the objects' BTF. Layer: lib/base. */

/** enum frontend_flag */
export const FRONTEND_NODE_PORT = 1
export const FRONTEND_EXTERNAL = 2

/** enum addr_kind */
export const ADDR_LOCAL_POD = 1
export const ADDR_SELF = 2
export const ADDR_NODE = 3

/** enum iface_kind */
export const IFACE_WORKLOAD = 1
export const IFACE_HOST = 2
