/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The tc programs of a pod's veth, at its host side. Layer: attach point. */
#include "fast.h"
#include "slow.h"
#include "base/tail_call.h"

NP_TAIL(np_tail, workload_slow, from_workload, to_workload);

/* tc ingress: what the pod sends */
SEC("tc")
int from_workload(struct __sk_buff *skb)
{
	return tc_action(skb, fast_path(skb, FROM_WORKLOAD), FROM_WORKLOAD, &np_tail);
}

/* tc egress: what the pod is about to get */
SEC("tc")
int to_workload(struct __sk_buff *skb)
{
	return tc_action(skb, fast_path(skb, TO_WORKLOAD), TO_WORKLOAD, &np_tail);
}

/* behind them, where the kernel has tcx */
SEC("tc")
int standby_from_workload(struct __sk_buff *skb)
{
	return stand_by(skb, FROM_WORKLOAD, &np_tail);
}

SEC("tc")
int standby_to_workload(struct __sk_buff *skb)
{
	return stand_by(skb, TO_WORKLOAD, &np_tail);
}

NP_GLOBAL enum verdict send_decided(struct __sk_buff *skb)
{
	return send_decided_at(skb, FROM_WORKLOAD, TO_WORKLOAD);
}

/* what neither of them sends on at once */
SEC("tc")
int workload_slow(struct __sk_buff *skb)
{
	return slow_path(skb);
}

char LICENSE[] SEC("license") = "GPL";
