/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Untracked policy at its earliest: what it denies is dropped before the kernel makes a packet of it. The rest goes
 * on to from_host, which asks again, also about what is not read here: fragments, options, extension headers, ICMP.
 * Layer: attach point. */
#include "policy/host.h"

/* Reads a plain TCP or UDP packet. */
static __always_inline bool xdp_parse(struct xdp_md *ctx, struct ct_tuple *t, __u8 *proto, __u8 *tcp_flags)
{
	void *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct udphdr *ports;

	if ((void *)(eth + 1) > data_end)
		return false;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = (void *)(eth + 1);

		if ((void *)(ip + 1) > data_end || !ipv4_is_plain(ip))
			return false;
		tuple_read_v4(t, ip);
		*proto = ip->protocol;
		ports = (void *)(ip + 1);
	} else if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = (void *)(eth + 1);

		if ((void *)(ip + 1) > data_end)
			return false;
		tuple_read_v6(t, ip);
		*proto = ip->nexthdr;
		ports = (void *)(ip + 1);
	} else {
		return false;
	}
	if ((*proto != IPPROTO_TCP && *proto != IPPROTO_UDP) || (void *)(ports + 1) > data_end)
		return false;
	t->sport = ports->source;
	t->dport = ports->dest;
	if (*proto == IPPROTO_TCP) {
		if ((void *)ports + sizeof(struct tcphdr) > data_end)
			return false;
		*tcp_flags = tcp_flags_of((void *)ports);
	}
	return *proto != IPPROTO_UDP || t->dport != cfg.tunnel_port; /* the tunnel between nodes is not cut */
}

/* The rules for what comes in by the device; 0: there are none. */
static __always_inline __u64 untracked_set(__u32 ifindex)
{
	struct host_sets *sets;
	__u64 *set;

	if (ifindex >= UNTRACKED_DEVICES) {
		sets = host_sets_of(ifindex, HOST_REAL);
		return sets ? sets->untracked_ingress : 0;
	}
	set = bpf_map_lookup_elem(&np_untracked, &ifindex);
	return set ? *set : 0;
}

/* The verdict of the rules. It takes one lookup for a known peer that they judge by its identity alone. */
static __always_inline __u32 untracked_verdict(const struct query *q)
{
	struct bits *bits = q->peer ? bits_of(q, 0, DIMENSION_PEER, q->peer) : 0;
	__u32 rule, action = sure_verdict(bits, &rule);
	struct scratch *s;

	if (action != RULE_NONE)
		return action;
	s = scratch_take();
	if (!s)
		return RULE_OPEN;
	s->eval.query = *q;
	return policy_verdict();
}

SEC("xdp")
int untracked(struct xdp_md *ctx)
{
	struct addr_info *info;
	struct query q = {};
	struct ct_tuple t;
	__u8 flags = 0;

	q.set = untracked_set(ctx->ingress_ifindex);
	if (!q.set || !xdp_parse(ctx, &t, &q.proto, &flags))
		return XDP_PASS;
	q.port = bpf_ntohs(t.dport);
	q.source_port = bpf_ntohs(t.sport);
	q.own = t.dst;
	info = bpf_map_lookup_elem(&np_addrs, &t.src);
	q.peer = info && info->identity ? info->identity : identity_by_net(&t.src);
	if (untracked_verdict(&q) != RULE_DENY)
		return XDP_PASS;
	/* most of what is dropped is for the node itself, and for none of these ports */
	if (is_failsafe(q.proto, &t, FAILSAFE_IN) ||
	    (may_be_answer(q.proto, flags) && is_failsafe_answer(q.proto, &t, FAILSAFE_IN))) {
		info = bpf_map_lookup_elem(&np_addrs, &t.dst);
		if (!info || !info->kind || info->kind == ADDR_SELF)
			return XDP_PASS; /* which is asked again where routes are known */
	}
	count_slot(DROP_POLICY);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
