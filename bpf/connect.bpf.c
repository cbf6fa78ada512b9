/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Connect-time load balancing: sockets that mean a service get a backend at once, and no packet needs translating. Layer: attach point. */
#define NP_NO_FLOWS
#define NP_SOCKETS
#include "service.h"

enum {
	GO_ON = 1,	/* a cgroup program's "allow" */
};

static __always_inline bool wanted(__u32 proto)
{
	return (proto == IPPROTO_TCP && cfg.connect_tcp) || (proto == IPPROTO_UDP && cfg.connect_udp);
}

static __always_inline void socket_key_of(struct bpf_sock_addr *ctx, struct socket_key *k, const struct addr *backend, __be16 port)
{
	__builtin_memset(k, 0, sizeof(*k));
	k->cookie = bpf_get_socket_cookie(ctx);
	k->backend = *backend;
	k->port = port;
	k->proto = ctx->protocol;
}

/* `dst`, `port`: the service going in, the backend coming out. False: leave the socket alone. */
static __always_inline bool to_backend(struct bpf_sock_addr *ctx, struct addr *dst, __be16 *port)
{
	struct socket_service meant = {};
	struct addr_info info;
	struct socket_key key;
	struct frontend *fe;
	struct backend *be;

	fe = frontend_find(dst, *port, ctx->protocol, &info);
	if (!fe)
		return false;
	be = backend_choose(fe);
	if (!be)
		return false;	/* no backend: the packet path refuses it with an answer */
	meant.addr = *dst;
	meant.port = *port;
	*dst = be->addr;
	*port = be->port;
	socket_key_of(ctx, &key, dst, *port);
	bpf_map_update_elem(&np_sockets, &key, &meant, BPF_ANY);
	count_slot(DROP_MAX + COUNT_CONNECT);
	return true;
}

/* The way back: a peer that is a backend is shown as the service that was meant. */
static __always_inline bool to_service(struct bpf_sock_addr *ctx, struct addr *peer, __be16 *port)
{
	struct socket_service *meant;
	struct socket_key key;

	socket_key_of(ctx, &key, peer, *port);
	meant = bpf_map_lookup_elem(&np_sockets, &key);
	if (!meant)
		return false;
	*peer = meant->addr;
	*port = meant->port;
	return true;
}

typedef bool (*translate_fn)(struct bpf_sock_addr *, struct addr *, __be16 *);

static __always_inline int on_v4(struct bpf_sock_addr *ctx, translate_fn translate)
{
	__be16 port = ctx->user_port;
	struct addr a;

	if (!wanted(ctx->protocol))
		return GO_ON;
	addr_from_v4(&a, ctx->user_ip4);
	if (translate(ctx, &a, &port)) {
		ctx->user_ip4 = a.w[3];
		ctx->user_port = port;
	}
	return GO_ON;
}

/* An IPv6 socket may mean an IPv4 service by a mapped address, which is how we write IPv4 anyway. */
static __always_inline int on_v6(struct bpf_sock_addr *ctx, translate_fn translate)
{
	__be16 port = ctx->user_port;
	struct addr a;

	if (!wanted(ctx->protocol))
		return GO_ON;
	a.w[0] = ctx->user_ip6[0];
	a.w[1] = ctx->user_ip6[1];
	a.w[2] = ctx->user_ip6[2];
	a.w[3] = ctx->user_ip6[3];
	if (translate(ctx, &a, &port)) {
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
	return on_v4(ctx, to_backend);
}

SEC("cgroup/sendmsg6")
int sendmsg6(struct bpf_sock_addr *ctx)
{
	return on_v6(ctx, to_backend);
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

char LICENSE[] SEC("license") = "GPL";
