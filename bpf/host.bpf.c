/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The tc programs of host devices. Layer: attach point. */
#include "fast.h"
#include "slow.h"
#include "base/tail_call.h"

NP_TAIL(np_tail, host_slow, from_host, to_host);

/* tc ingress: what arrives from the network */
SEC("tc")
int from_host(struct __sk_buff *skb)
{
	return tc_action(skb, fast_path(skb, FROM_HOST), FROM_HOST, &np_tail);
}

/* tc egress: what leaves for the network */
SEC("tc")
int to_host(struct __sk_buff *skb)
{
	return tc_action(skb, fast_path(skb, TO_HOST), TO_HOST, &np_tail);
}

/* behind them, where the kernel has tcx */
SEC("tc")
int standby_from_host(struct __sk_buff *skb)
{
	return stand_by(skb, FROM_HOST, &np_tail);
}

SEC("tc")
int standby_to_host(struct __sk_buff *skb)
{
	return stand_by(skb, TO_HOST, &np_tail);
}

NP_GLOBAL enum verdict send_decided(struct __sk_buff *skb)
{
	return send_decided_at(skb, FROM_HOST, TO_HOST);
}

/* what neither of them sends on at once */
SEC("tc")
int host_slow(struct __sk_buff *skb)
{
	return slow_path(skb);
}

/* tc ingress of the device that announces the tunnel's port: what from_host has left of it ends here. Not from_…, for
 * what removes those must not find it. */
SEC("tc")
int drop_tunnel(struct __sk_buff *skb)
{
	(void)skb;
	return drop_counted(DROP_TUNNEL_FOREIGN);
}

char LICENSE[] SEC("license") = "GPL";
