/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What becomes of a packet: the one type that the steps of tc programs return. Layer: tc programs. */
#ifndef NP_BASE_VERDICT_H
#define NP_BASE_VERDICT_H

#include <stdbool.h>
#include <linux/pkt_cls.h>
#include "maps/counters.h"
#include "base/trace.h"

/* Three ranges that do not meet. The first is the kernel's, with what helpers return that send a packet; the others
 * are ours and end in an entry point (tc_action, slow_path). */
enum verdict {
	/* sent, or for the next program on the hook (tcx: TCX_NEXT); with none behind us the packet passes */
	VERDICT_PASS = TC_ACT_UNSPEC,
	VERDICT_CONSUMED = TC_ACT_SHOT, /* gone, and not lost: it goes on as others, or will */
	VERDICT_TC_LAST = TC_ACT_VALUE_MAX,

	/* on with another step */
	VERDICT_NONE = 0x100, /* with the next */
	VERDICT_SLOW,         /* with the slow path */
	FLOW_PREPARED,        /* s->draft.v is ready to be entered */
	FLOW_MADE,            /* s->draft.v is in the table */
	FLOW_THERE,           /* it was there already */
	FLOW_STALE,           /* its backend is gone: the flow must be made again */
	VERDICT_STEP_LAST = FLOW_STALE,

	VERDICT_DROPPED = 0x200, /* and the reason */
};
_Static_assert((int)VERDICT_TC_LAST < (int)VERDICT_NONE && VERDICT_STEP_LAST < VERDICT_DROPPED, "ranges of verdicts");

static __always_inline enum verdict dropped(enum drop why)
{
	return VERDICT_DROPPED + why;
}

static __always_inline bool is_dropped(enum verdict verdict)
{
	return verdict >= VERDICT_DROPPED;
}

static __always_inline enum drop drop_reason(enum verdict verdict)
{
	return verdict - VERDICT_DROPPED;
}

/* The end of a packet that is dropped, for entry points. */
static __always_inline int drop_counted(enum drop why)
{
	count_slot(why);
	np_trace("drop %d", why);
	return TC_ACT_SHOT;
}

#endif
