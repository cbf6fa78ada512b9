/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Answers for the pods' gateway: ARP and neighbour solicitation. Layer: slow path of from_workload. */
#ifndef NP_NEIGH_H
#define NP_NEIGH_H

#include "parse.h"

struct arp_v4 {
	struct ethhdr eth;
	__be16 hardware, protocol;
	__u8 hardware_size, protocol_size;
	__be16 operation;
	__u8 sender_mac[ETH_ALEN];
	__be32 sender;
	__u8 target_mac[ETH_ALEN];
	__be32 target;
} __attribute__((packed));

struct nd_message {
	struct ethhdr eth;
	struct ipv6hdr ip;
	struct icmp icmp;
	__be32 target[4];
	__u8 option[2];		/* link-layer address, one unit of 8 bytes */
	__u8 mac[ETH_ALEN];
} __attribute__((packed));

#define ARP_REQUEST bpf_htons(1)
#define ARP_REPLY bpf_htons(2)
#define ND_OPTION_TARGET 2
#define ND_SOLICITED_OVERRIDE bpf_htonl(0x60000000)

static __always_inline int answer_send(struct __sk_buff *skb, const void *bytes, __u32 size)
{
	if (bpf_skb_change_tail(skb, size, 0) || bpf_skb_store_bytes(skb, 0, bytes, size, BPF_F_RECOMPUTE_CSUM))
		return DROPPED(DROP_REWRITE);
	count_slot(DROP_MAX + COUNT_NEIGHBOUR_ANSWERED);
	mark_set_decided(skb);
	return bpf_redirect(skb->ifindex, 0);
}

/* Who has the gateway? This side of the veth. Other ARP is the kernel's. */
static __noinline int arp_answer(struct __sk_buff *skb, struct scratch *s)
{
	__u32 ifindex = skb->ifindex;
	struct arp_v4 *m = (void *)s->buf;
	struct iface *dev;
	__be32 gateway = cfg.gateway_v4.w[3];

	if (bpf_skb_load_bytes(skb, 0, m, sizeof(*m)))
		return NP_PASS;
	dev = bpf_map_lookup_elem(&np_ifaces, &ifindex);
	if (!dev || m->operation != ARP_REQUEST || m->protocol != bpf_htons(ETH_P_IP) || m->target != gateway)
		return NP_PASS;
	m->operation = ARP_REPLY;
	__builtin_memcpy(m->target_mac, m->sender_mac, ETH_ALEN);
	m->target = m->sender;
	__builtin_memcpy(m->eth.h_dest, m->sender_mac, ETH_ALEN);
	__builtin_memcpy(m->eth.h_source, dev->mac, ETH_ALEN);
	__builtin_memcpy(m->sender_mac, dev->mac, ETH_ALEN);
	m->sender = gateway;
	return answer_send(skb, m, sizeof(*m));
}

static __noinline int nd_answer(struct __sk_buff *skb, struct scratch *s)
{
	struct nd_message *m = (void *)s->buf;
	const __u32 body = sizeof(m->icmp) + sizeof(m->target) + 8;
	__u32 ifindex = skb->ifindex;
	struct iface *dev;
	struct addr target;

	/* up to the target: the option is the sender's and may be missing */
	if (bpf_skb_load_bytes(skb, 0, m, offsetof(struct nd_message, option)))
		return NP_PASS;
	addr_from_v6(&target, m->target);
	dev = bpf_map_lookup_elem(&np_ifaces, &ifindex);
	if (!dev || m->icmp.type != ICMP6_SOLICITATION || addr_is_zero(&s->p.t.src) || target.w[0] != cfg.gateway_v6.w[0] ||
	    target.w[1] != cfg.gateway_v6.w[1] || target.w[2] != cfg.gateway_v6.w[2] || target.w[3] != cfg.gateway_v6.w[3])
		return NP_PASS;
	__builtin_memcpy(m->eth.h_dest, m->eth.h_source, ETH_ALEN);
	__builtin_memcpy(m->eth.h_source, dev->mac, ETH_ALEN);
	addr_to_v6(m->ip.daddr.in6_u.u6_addr32, &s->p.t.src);
	addr_to_v6(m->ip.saddr.in6_u.u6_addr32, &target);
	m->ip.hop_limit = 255;
	m->ip.nexthdr = IPPROTO_ICMPV6;
	m->ip.payload_len = bpf_htons(body);
	__builtin_memset(&m->icmp, 0, sizeof(m->icmp));
	m->icmp.type = ICMP6_ADVERTISEMENT;
	m->icmp.word = ND_SOLICITED_OVERRIDE;
	m->option[0] = ND_OPTION_TARGET;
	m->option[1] = 1;
	__builtin_memcpy(m->mac, dev->mac, ETH_ALEN);
	m->icmp.checksum = ~sum_fold16((__u64)(__u32)bpf_csum_diff(0, 0, (void *)&m->ip.saddr, 32 + body, 0) + bpf_htons(body) +
					  bpf_htons(IPPROTO_ICMPV6));
	return answer_send(skb, m, sizeof(*m));
}

#endif
