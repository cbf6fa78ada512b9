/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Connect-time load balancing: sockets that mean a service get a backend at once, and no packet needs translating.
 * Layer: attach point. */
#include "maps/counters.h"
#include "maps/event-map.h"
#include "maps/sockets.h"
#include "lb/affinity.h"

enum {
	REFUSE = 0, /* a cgroup program's answer: EPERM */
	GO_ON = 1,
};

static __always_inline void socket_key_of(struct bpf_sock_addr *ctx, struct socket_key *k, const struct addr *a,
					  __be16 port, enum socket_role role)
{
	__builtin_memset(k, 0, sizeof(*k));
	k->cookie = bpf_get_socket_cookie(ctx);
	k->addr = *a;
	k->port = port;
	k->proto = ctx->protocol;
	k->role = role;
}

/* Does the socket live in the node's own network namespace? */
static __always_inline bool is_host_socket(struct bpf_sock_addr *ctx)
{
	if (!cfg.netns_cookies)
		return false;
	return bpf_get_netns_cookie(ctx) == (cfg.netns ? cfg.netns : bpf_get_netns_cookie(0));
}

/* What becomes of a socket's destination. */
enum sent {
	SENT_AS_MEANT,
	SENT_ELSEWHERE,
	SENT_NOWHERE, /* kube-proxy would send it where nodes take tunnel packets, as from this node */
};

/* A service that the socket means, and whether it is reached here or nowhere: the node's packets to its own
 * addresses never leave the loopback device. */
struct meant {
	struct frontend *fe;
	bool here_only;
	bool to_tunnel; /* by kube-proxy, perhaps */
};

/* To the kernel no address is loopback's: of the socket's own namespace. It is no frontend's, though those of node
 * ports are written so. */
static __always_inline void addr_none_is_loopback(struct addr *a)
{
	if (addr_is_v4(a) && !a->w[3])
		a->w[3] = bpf_htonl(0x7f000001);
	else if (addr_is_zero(a))
		a->w[3] = bpf_htonl(1);
}

/* A pod's rules see node ports as they were asked for (policy/apply.h). Without cookies sockets of pods are not known
 * from those of the node, which reach its own node ports by this alone. */
static __always_inline bool is_pods_node_port(const struct frontend *fe)
{
	return cfg.netns_cookies && fe->flags & FRONTEND_NODE_PORT;
}

/* Does kube-proxy serve it to the socket? Sockets that may be the node's are left alone: of what pods send the packets
 * are translated. */
static __always_inline bool is_proxied(struct bpf_sock_addr *ctx, const struct frontend *fe)
{
	return fe->flags & FRONTEND_PODS && (!cfg.netns_cookies || is_host_socket(ctx));
}

/* The service reached at this address, if it is one to choose a backend of here: not where that depends on the client's
 * address, which the socket may not have yet. */
static __always_inline struct meant service_of(struct bpf_sock_addr *ctx, const struct addr *dst, __be16 port)
{
	const __u32 proto = ctx->protocol;
	struct addr_info info = {};
	struct addr at = *dst;
	struct meant m = {};
	struct frontend *fe;

	if (proto != IPPROTO_TCP && proto != IPPROTO_UDP)
		return m;
	addr_none_is_loopback(&at);
	fe = frontend_find(&at, port, proto, &info, true);
	if (!fe)
		return m;
	if (is_proxied(ctx, fe)) {
		m.to_tunnel = fe->flags & FRONTEND_TUNNEL;
		return m;
	}
	m.here_only = info.kind == ADDR_SELF && is_host_socket(ctx);
	if (m.here_only)
		m.fe = fe;
	else if ((proto == IPPROTO_TCP ? cfg.connect_tcp : cfg.connect_udp) && !addr_is_inner(&at, addr_is_v4(&at)) &&
		 !fe->affinity && !(fe->flags & FRONTEND_RANGES) && !is_pods_node_port(fe))
		m.fe = fe;
	return m;
}

/* With affinity the node is one client, by the address that its packets have. */
static __always_inline struct backend *backend_for(const struct frontend *fe, bool v4)
{
	struct affinity_key k = {};
	struct backend *be = 0;
	struct live *live;
	__u64 now;
	__u32 slot;

	if (!fe->affinity)
		return backend_at_random(&fe->inside, &slot);
	now = np_now();
	k.list = fe->inside.list;
	addr_of_node(&k.client, v4);
	live = affinity_find(&k, fe->affinity, now);
	if (live)
		be = backend_in(k.list, live->slot);
	if (be)
		return be;
	be = backend_at_random(&fe->inside, &slot);
	if (be)
		affinity_put(&k, be, now);
	return be;
}

/* `dst`, `port`: the service going in, the backend coming out. As meant: what goes there has to pass the packet path,
 * which drops it. */
static __always_inline enum sent socket_sent_to(struct bpf_sock_addr *ctx, struct addr *dst, __be16 *port,
						const struct addr *backend, __be16 backend_port)
{
	struct socket_peer meant = {};
	struct socket_key key;

	if (is_tunnel_end(backend, backend_port, ctx->protocol))
		return SENT_AS_MEANT;
	meant.addr = *dst;
	meant.port = *port;
	*dst = *backend;
	*port = backend_port;
	socket_key_of(ctx, &key, dst, *port, SOCKET_MEANT);
	bpf_map_update_elem(&np_sockets, &key, &meant, BPF_ANY);
	count_slot_of_socket(DROP_MAX + COUNT_CONNECT);
	return SENT_ELSEWHERE;
}

/* Is the backend perhaps the pod itself? What never leaves the pod is asked about by no rule. */
static __always_inline bool is_perhaps_itself(struct bpf_sock_addr *ctx, const struct addr *backend)
{
	struct addr_info *info;

	if (!cfg.cluster_policy || is_host_socket(ctx))
		return false;
	info = bpf_map_lookup_elem(&np_addrs, backend);
	return info && info->kind == ADDR_LOCAL_POD && (info->egress || info->ingress);
}

/* A stream gets its backend once. Datagrams of a connected socket are translated one by one where they can be, for
 * the socket would stay with a backend that is gone. */
static __always_inline enum sent to_backend(struct bpf_sock_addr *ctx, struct addr *dst, __be16 *port)
{
	struct meant m = service_of(ctx, dst, *port);
	struct backend *be;

	if (m.to_tunnel)
		return SENT_NOWHERE;
	if (!m.fe || (ctx->protocol == IPPROTO_UDP && !m.here_only))
		return SENT_AS_MEANT;
	be = backend_for(m.fe, addr_is_v4(dst));
	if (!be || is_perhaps_itself(ctx, &be->addr))
		return SENT_AS_MEANT; /* the packet path answers where there is none */
	return socket_sent_to(ctx, dst, port, &be->addr, be->port);
}

/* A datagram of a socket that is not connected: to the backend of the one before, while there is that. */
static __always_inline enum sent to_same_backend(struct bpf_sock_addr *ctx, struct addr *dst, __be16 *port)
{
	struct meant m = service_of(ctx, dst, *port);
	struct frontend *fe = m.fe;
	struct socket_peer chosen = {}, *last;
	struct socket_key key;
	struct backend *be;
	struct live *live;

	if (m.to_tunnel)
		return SENT_NOWHERE;
	if (!fe)
		return SENT_AS_MEANT;
	socket_key_of(ctx, &key, dst, *port, SOCKET_CHOSEN);
	last = bpf_map_lookup_elem(&np_sockets, &key);
	if (last) {
		live = backend_live(fe->inside.list, &last->addr, last->port);
		if (live && is_perhaps_itself(ctx, &last->addr))
			return SENT_AS_MEANT;
		if (live)
			return socket_sent_to(ctx, dst, port, &last->addr, last->port);
	}
	be = backend_for(fe, addr_is_v4(dst));
	if (!be || is_perhaps_itself(ctx, &be->addr))
		return SENT_AS_MEANT;
	chosen.addr = be->addr;
	chosen.port = be->port;
	bpf_map_update_elem(&np_sockets, &key, &chosen, BPF_ANY);
	return socket_sent_to(ctx, dst, port, &chosen.addr, chosen.port);
}

/* The way back: a peer that is a backend is shown as the service that was meant. */
static __always_inline enum sent to_service(struct bpf_sock_addr *ctx, struct addr *peer, __be16 *port)
{
	struct socket_peer *meant;
	struct socket_key key;

	socket_key_of(ctx, &key, peer, *port, SOCKET_MEANT);
	meant = bpf_map_lookup_elem(&np_sockets, &key);
	if (!meant)
		return SENT_AS_MEANT;
	*peer = meant->addr;
	*port = meant->port;
	return SENT_ELSEWHERE;
}

/* Does a process of the node play the node? Only kernels send to the port where nodes take tunnel packets: what
 * comes there from a node's address is believed. Of what a pod sends the packets are looked at: its answer may go
 * there, to a client that the kernel hides. */
static __always_inline bool plays_node(struct bpf_sock_addr *ctx, const struct addr *dst, __be16 port)
{
	return is_tunnel_end(dst, port, ctx->protocol) && (!cfg.netns_cookies || is_host_socket(ctx));
}

typedef enum sent (*translate_fn)(struct bpf_sock_addr *, struct addr *, __be16 *);

static __always_inline int on_v4(struct bpf_sock_addr *ctx, translate_fn translate)
{
	__be16 port = ctx->user_port;
	enum sent sent;
	struct addr a;

	addr_from_v4(&a, ctx->user_ip4);
	if (translate != to_service && plays_node(ctx, &a, port))
		return REFUSE;
	sent = translate(ctx, &a, &port);
	if (sent == SENT_NOWHERE)
		return REFUSE;
	if (sent == SENT_ELSEWHERE) {
		ctx->user_ip4 = a.w[3];
		ctx->user_port = port;
	}
	return GO_ON;
}

/* An IPv6 socket may mean an IPv4 service by a mapped address, which is how we write IPv4 anyway. */
static __always_inline int on_v6(struct bpf_sock_addr *ctx, translate_fn translate)
{
	__be16 port = ctx->user_port;
	enum sent sent;
	struct addr a;

	a.w[0] = ctx->user_ip6[0];
	a.w[1] = ctx->user_ip6[1];
	a.w[2] = ctx->user_ip6[2];
	a.w[3] = ctx->user_ip6[3];
	if (translate != to_service && plays_node(ctx, &a, port))
		return REFUSE;
	sent = translate(ctx, &a, &port);
	if (sent == SENT_NOWHERE)
		return REFUSE;
	if (sent == SENT_ELSEWHERE) {
		ctx->user_ip6[0] = a.w[0];
		ctx->user_ip6[1] = a.w[1];
		ctx->user_ip6[2] = a.w[2];
		ctx->user_ip6[3] = a.w[3];
		ctx->user_port = port;
	}
	return GO_ON;
}

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	return on_v4(ctx, to_backend);
}

SEC("cgroup/connect6")
int connect6(struct bpf_sock_addr *ctx)
{
	return on_v6(ctx, to_backend);
}

SEC("cgroup/sendmsg4")
int sendmsg4(struct bpf_sock_addr *ctx)
{
	return on_v4(ctx, to_same_backend);
}

SEC("cgroup/sendmsg6")
int sendmsg6(struct bpf_sock_addr *ctx)
{
	return on_v6(ctx, to_same_backend);
}

SEC("cgroup/recvmsg4")
int recvmsg4(struct bpf_sock_addr *ctx)
{
	return on_v4(ctx, to_service);
}

SEC("cgroup/recvmsg6")
int recvmsg6(struct bpf_sock_addr *ctx)
{
	return on_v6(ctx, to_service);
}

/* since 5.8 */
SEC("cgroup/getpeername4")
int getpeername4(struct bpf_sock_addr *ctx)
{
	return on_v4(ctx, to_service);
}

SEC("cgroup/getpeername6")
int getpeername6(struct bpf_sock_addr *ctx)
{
	return on_v6(ctx, to_service);
}

/* The compiler must not make one read of two at different places: the verifier lets the context be read at places that
 * it knows. */
#define CTX_READ(field) (*(volatile __u32 *)&(field))

static __always_inline void ends_of(struct bpf_sock_ops *ctx, struct ct_tuple *t)
{
	if (ctx->family == AF_INET) {
		addr_from_v4(&t->src, CTX_READ(ctx->local_ip4));
		addr_from_v4(&t->dst, CTX_READ(ctx->remote_ip4));
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++) {
		t->src.w[i] = CTX_READ(ctx->local_ip6[i]);
		t->dst.w[i] = CTX_READ(ctx->remote_ip6[i]);
	}
}

/* A socket sends its SYN: its addresses and ports are settled, and packets will not say which service it meant. */
SEC("sockops")
int sock_ops(struct bpf_sock_ops *ctx)
{
	struct flow_event e = {};
	struct socket_key key = {};
	struct socket_peer *meant;

	if (ctx->op != BPF_SOCK_OPS_TCP_CONNECT_CB || !accounts())
		return GO_ON;
	ends_of(ctx, &e.flow);
	e.flow.sport = bpf_htons(ctx->local_port);
	/* in network order, in the upper or lower half of the word as the machine has it */
	e.flow.dport = bpf_htons(bpf_ntohl(ctx->remote_port));
	key.cookie = bpf_get_socket_cookie(ctx);
	key.addr = e.flow.dst;
	key.port = e.flow.dport;
	key.proto = IPPROTO_TCP;
	key.role = SOCKET_MEANT;
	meant = bpf_map_lookup_elem(&np_sockets, &key);
	if (!meant)
		return GO_ON;
	e.at = np_now();
	e.sent = e.flow;
	e.sent.dst = meant->addr;
	e.sent.dport = meant->port;
	e.kind = EVENT_MEANT;
	e.proto = IPPROTO_TCP;
	if (event_send(ctx, &e))
		count_slot_of_socket(DROP_MAX + COUNT_EVENT_UNTOLD);
	return GO_ON;
}

char LICENSE[] SEC("license") = "GPL";
