/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What sockets mean. Layer: connect-time programs. */
#ifndef NP_MAPS_SOCKETS_H
#define NP_MAPS_SOCKETS_H

#include "maps/define.h"
#include "types/conntrack.h"

/* written by connect and sendmsg, read by sendmsg, recvmsg and getpeername; bounded by LRU eviction */
NP_LRU(np_sockets, struct socket_key, struct socket_peer, 32768);

#endif
