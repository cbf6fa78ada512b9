/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The tc programs of pods' veths, at their host side, and of host devices. Layer: attach point. */
#include "fast.h"
#include "slow.h"
#include "base/tail_call.h"

/* What the entry point of a hook answers. */
static __always_inline int tc_action(struct __sk_buff *skb, const enum hook hook)
{
	enum verdict verdict = fast_path(skb, hook);

	if (verdict == VERDICT_SLOW) {
		bpf_tail_call(skb, &np_tail, TAIL_SLOW);
		return drop_counted(DROP_PROGRAM_MISSING);
	}
	return is_dropped(verdict) ? drop_counted(drop_reason(verdict)) : passed_on(skb, verdict, hook);
}

/* tc ingress of a pod's veth: what the pod sends */
SEC("tc")
int from_workload(struct __sk_buff *skb)
{
	return tc_action(skb, FROM_WORKLOAD);
}

/* tc egress: what the pod is about to get */
SEC("tc")
int to_workload(struct __sk_buff *skb)
{
	return tc_action(skb, TO_WORKLOAD);
}

/* tc ingress of a host device: what arrives from the network */
SEC("tc")
int from_host(struct __sk_buff *skb)
{
	return tc_action(skb, FROM_HOST);
}

/* tc egress: what leaves for the network */
SEC("tc")
int to_host(struct __sk_buff *skb)
{
	return tc_action(skb, TO_HOST);
}

/* behind them, where the kernel has tcx */
SEC("tc")
int standby_from_workload(struct __sk_buff *skb)
{
	return stand_by(skb, FROM_WORKLOAD);
}

SEC("tc")
int standby_to_workload(struct __sk_buff *skb)
{
	return stand_by(skb, TO_WORKLOAD);
}

SEC("tc")
int standby_from_host(struct __sk_buff *skb)
{
	return stand_by(skb, FROM_HOST);
}

SEC("tc")
int standby_to_host(struct __sk_buff *skb)
{
	return stand_by(skb, TO_HOST);
}

/* what none of them sends on at once; one for all hooks, for the verifier takes longest for it */
SEC("tc")
int slow(struct __sk_buff *skb)
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
