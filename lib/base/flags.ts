// SPDX-License-Identifier: Apache-2.0
/** The numbers of bpf/include that rows and knobs carry, which all layers speak of; a test of agent/maps compares them with the objects' BTF. Layer: lib/base. */

/** enum frontend_flag */
export const FRONTEND_NODE_PORT = 1
export const FRONTEND_EXTERNAL = 2
export const FRONTEND_RANGES = 4
export const FRONTEND_MAGLEV = 8
export const FRONTEND_INSIDE_LOCAL = 16
export const FRONTEND_OUTSIDE_LOCAL = 32

/** enum live_flag */
export const LIVE_CHOSEN = 1

/** enum range_set */
export const RANGE_INSIDE = 1
export const RANGE_TUNNEL_BACK = 2

/** enum addr_kind */
export const ADDR_LOCAL_POD = 1
export const ADDR_SELF = 2
export const ADDR_NODE = 3
export const ADDR_SERVICE = 4

/** enum addr_flag */
export const ADDR_NODE_PORTS = 1
export const ADDR_MASQUERADE = 2

/** enum source_check */
export const SOURCE_ANY = 0
export const SOURCE_LOOSE = 1
export const SOURCE_STRICT = 2

/** enum stray_service */
export const STRAY_PASS = 0
export const STRAY_DROP = 1
export const STRAY_REFUSE = 2

/** enum iface_kind */
export const IFACE_WORKLOAD = 1
export const IFACE_HOST = 2

/** Slots of Maglev's table; a prime. */
export const MAGLEV_SIZE = 16349
