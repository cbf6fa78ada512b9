// SPDX-License-Identifier: Apache-2.0
/** Sends frames by a device as they are, in their order: the kernel's own senders begin with a datagram's first
 * fragment. `send-frames DEVICE HEX...` Layer: lab (tool). */
import { BpfProgram, ifindexOf } from '#native'

const SCHED_CLS = 3

/** `bpf_clone_redirect(skb, ifindex, 0)`, which test runs do indeed. */
function senderTo(ifindex: number): BpfProgram {
  const index = Buffer.alloc(4)
  index.writeUInt32LE(ifindex)
  const text = `b7020000${index.toString('hex')} b703000000000000 850000000d000000 b700000000000000 9500000000000000`
  return BpfProgram.load({ type: SCHED_CLS, instructions: Buffer.from(text.replaceAll(' ', ''), 'hex') })
}

const [device = '', ...frames] = process.argv.slice(2)
const program = senderTo(ifindexOf(device))
for (const frame of frames) program.testRun({ data: Buffer.from(frame, 'hex') })
program.close()
