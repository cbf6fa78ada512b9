// SPDX-License-Identifier: Apache-2.0
/** The numbers of bpf/include that rows and knobs carry, which all layers speak of; a test of agent/maps compares
 * them with the objects' BTF. Layer: lib/base. */

/** enum frontend_flag */
export const FRONTEND_NODE_PORT = 1
export const FRONTEND_EXTERNAL = 2
export const FRONTEND_RANGES = 4
export const FRONTEND_MAGLEV = 8
export const FRONTEND_INSIDE_LOCAL = 16
export const FRONTEND_OUTSIDE_LOCAL = 32
export const FRONTEND_PODS = 64
export const FRONTEND_TUNNEL = 128

/** Slots of a list from this one on: its backends on this node. */
export const OWN_SLOTS = 0x80000000

/** enum live_flag */
export const LIVE_CHOSEN = 1

/** enum range_set */
export const RANGE_INSIDE = 1
export const RANGE_TUNNEL_BACK = 2
export const RANGE_OWN = 3
export const RANGE_NODE_PORTS = 4

/** enum addr_kind */
export const ADDR_LOCAL_POD = 1
export const ADDR_SELF = 2
export const ADDR_NODE = 3
export const ADDR_SERVICE = 4

/** enum addr_flag */
export const ADDR_NODE_PORTS = 1
export const ADDR_MASQUERADE = 2
export const ADDR_ROUTED = 4
export const ADDR_EXTERNAL = 8

/** enum dimension */
export const DIMENSION_PEER = 0
export const DIMENSION_OWN = 1
export const DIMENSION_PORT = 2
export const DIMENSION_SOURCE_PORT = 3

/** enum ports_flag */
export const PORTS_SOURCE = 1
export const PORTS_OWN = 2
export const PORTS_SMALL = 4

/** enum rule_action */
export const RULE_DENY = 0
export const RULE_ALLOW = 1
export const RULE_PASS = 2
export const RULE_OPEN = 3

/** enum pod_to_host */
export const POD_TO_HOST_ACCEPT = 0
export const POD_TO_HOST_DROP = 1

/** enum host_view */
export const HOST_REAL = 0
export const HOST_STAGED = 1

/** enum failsafe_direction */
export const FAILSAFE_IN = 0
export const FAILSAFE_OUT = 1
export const FAILSAFE_V6 = 2

/** The highest byte of the numbers of ClusterNetworkPolicies' rules. */
export const RULE_OF_CLUSTER = 255

/** Ports of a direction that np_spared tells apart, and devices that np_untracked knows. */
export const FAILSAFE_PORTS = 1024
export const UNTRACKED_DEVICES = 4096

/** enum rule_bits */
export const RULES_UNKNOWN = 0
export const RULES_ALLOW = 1
export const RULES_PASS = 2
export const RULES_BEGIN = 3
export const RULES_CLASS = 4

/** Set in an entry of `ports.at`: it is the number of a page, not a class. */
export const PORTS_PAGE = 0x8000

/** 64-bit words of a block's bits, and rules of a block. */
export const RULE_WORDS = 16
export const RULES_PER_BLOCK = 1024
/** Words in a row of ports; classes whose words fit into that of a set of up to 64 rules. */
export const RULE_CELLS = 5 * RULE_WORDS
export const SMALL_CLASSES = RULE_CELLS - 4
/** In `bits.sure`: it takes more than the peer to know. */
export const SURE_NOT = 0xffffffff

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
