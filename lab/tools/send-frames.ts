// SPDX-License-Identifier: Apache-2.0
/** Sends frames by a device as they are, in their order: the kernel's own senders begin with a datagram's first
 * fragment. `send-frames DEVICE HEX[+ZEROS]...`, for a test run's packet is no longer than a page, and grows then.
 * Layer: lab (tool). */
import { BpfProgram, ifindexOf } from '#native'

const SCHED_CLS = 3

/** `bpf_skb_change_tail(skb, length, 0); bpf_clone_redirect(skb, ifindex, 0)`, which test runs do indeed. */
function senderTo(ifindex: number, length: number): BpfProgram {
  const grow = `bf16000000000000 b7020000${number(length)} b703000000000000 8500000026000000`
  const send = `bf61000000000000 b7020000${number(ifindex)} b703000000000000 850000000d000000`
  const text = `${grow} ${send} b700000000000000 9500000000000000`
  return BpfProgram.load({ type: SCHED_CLS, instructions: Buffer.from(text.replaceAll(' ', ''), 'hex') })
}

function number(value: number): string {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes.toString('hex')
}

const [device = '', ...frames] = process.argv.slice(2)
for (const frame of frames) {
  const [hex = '', zeros = '0'] = frame.split('+')
  const data = Buffer.from(hex, 'hex')
  const program = senderTo(ifindexOf(device), data.length + Number(zeros))
  program.testRun({ data })
  program.close()
}
