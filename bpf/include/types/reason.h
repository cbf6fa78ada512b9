/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Why a packet ended: the one list behind return values, counters, metrics and the CLI. Layer: shared by all
 * programs. */
#ifndef NP_TYPES_REASON_H
#define NP_TYPES_REASON_H

/* TypeScript reads these names from BTF: DROP_NO_BACKEND becomes the metric label "no_backend". Append only, before
 * DROP_MAX; values are counter slots, which an upgrade carries over by their names. */
enum drop {
	DROP_NONE = 0,
	DROP_SHORT,             /* headers end before they should */
	DROP_MALFORMED,         /* impossible header field, or a fragment that would write over headers */
	DROP_MAPPED_ADDRESS,    /* IPv6 packet that carries a v4-mapped address */
	DROP_EXTENSION_HEADERS, /* more IPv6 extension headers than we follow */
	DROP_FRAGMENT_UNKNOWN,  /* fragment whose first part was not seen */
	DROP_NO_BACKEND,        /* service without a ready backend: answered with port unreachable */
	DROP_NO_FLOW,           /* mid-flow TCP to a service address, no flow known */
	DROP_TCP_RST_WINDOW,    /* RST outside the receive window */
	DROP_TTL,               /* hop limit reached: answered with time exceeded */
	DROP_TOO_BIG,           /* does not fit the way ahead: answered with fragmentation needed / packet too big */
	DROP_PORT_COLLISION,    /* no free source port after address translation */
	DROP_FLOW_INSERT,       /* flow table refused the entry */
	DROP_TUNNEL_SOURCE,    /* sender is no node of the cluster; or a pod or service leads to a node's tunnel port */
	DROP_TUNNEL_HEADER,    /* tunnel header that is not ours */
	DROP_ENCAP,            /* no room for the tunnel header */
	DROP_NO_ROUTE,         /* no way to the backend's node; of a tunnelled packet: no such pod here */
	DROP_REWRITE,          /* header rewrite refused by the kernel */
	DROP_PROGRAM_MISSING,  /* slow path not in its slot */
	DROP_NO_LOCAL_BACKEND, /* traffic policy Local, and no endpoint on this node */
	DROP_SOURCE_RANGE,     /* source outside a load balancer's source ranges */
	DROP_STRAY_SERVICE,    /* a service's address on a port that it does not have */
	DROP_SPOOFED,      /* source, or ICMP error, that is not the sender's own; or a pod's address from elsewhere */
	DROP_REVERSE_PATH, /* no route back to the source, or by another device */
	DROP_POD_GONE,     /* TCP flow to a pod that is gone, or whose address is another's: answered with RST */
	DROP_VLAN,         /* a pod's frame with a VLAN tag, or more tags of VLAN 0 than are taken off */
	DROP_POLICY,       /* a rule, or the end of a tier, says no */
	DROP_MARTIAN, /* an address that no network has: loopback's, none, a group as source, the link's beyond it */
	DROP_TUNNEL_FOREIGN, /* VXLAN on the tunnel's port that is not ours, on its way into the node */
	DROP_TUNNEL_ECN, /* congestion marked on the tunnel's header of a packet that knows no such marks (RFC 6040) */
	DROP_SERVICE_LOOP, /* translated by a node before, and would go to another service's place, or back */
	DROP_MAX,
};

/* Counters that are no drops share the array: slot DROP_MAX + counter. */
enum counter {
	COUNT_FLOW_NEW = 0,       /* flows entered that are not translated and came by no tunnel */
	COUNT_FLOW_SERVICE,       /* flows translated to a backend */
	COUNT_TUNNEL_SENT,        /* of those, sent to another node in the tunnel */
	COUNT_TUNNEL_TAKEN,       /* flows that came in the tunnel from another node */
	COUNT_ICMP_SENT,          /* ICMP errors made */
	COUNT_ICMP_RELATED,       /* ICMP errors translated for a flow */
	COUNT_NEIGHBOUR_ANSWERED, /* ARP / neighbour solicitations for the pods' gateway answered */
	COUNT_CONNECT,            /* sockets sent to a backend at connect or sendmsg */
	COUNT_MASQUERADED,        /* flows that leave with the node's address, of pods or of clients */
	COUNT_DSR,                /* flows whose answers go to the client directly */
	COUNT_MOVED,              /* flows taken from a backend that is gone to another */
	COUNT_EVICTED,            /* flows that a full table gave up for new ones */
	COUNT_PATH_LEARNED,       /* ICMP errors about the tunnel's own packets that were believed */
	COUNT_FRAGMENTED,         /* packets cut into fragments that fit the tunnel */
	COUNT_FRAGMENT_HELD,      /* fragments that came before their first, and wait for it */
	COUNT_EVENT_UNTOLD,       /* events of flows that were not told: too many at a time, or their buffer was full */
	COUNT_MAX,
};

#endif
