// SPDX-License-Identifier: Apache-2.0
/** Faults that the gate must find: in each the text `from` of a file becomes `to`. Layer: test. */
export interface Fault {
  readonly name: string
  readonly file: string
  /** stands in the file exactly once */
  readonly from: string
  readonly to: string
  /** the stage that must turn red */
  readonly stage: string
  /** the test file that finds the fault; undefined: the stage is a command */
  readonly test?: string
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'a flipped comparison in C',
    file: 'bpf/include/fast.h',
    from: 'return p->len <= leg->mtu || p->gso;',
    to: 'return p->len > leg->mtu || p->gso;',
    stage: 'kernel',
    test: 'test/kernel/packets.test.ts',
  },
  {
    name: 'a wrong row',
    file: 'agent/compile/services/endpoints.ts',
    from: 'return targets.filter(({ state }) => state.serving && state.terminating)',
    to: 'return targets.filter(({ state }) => state.serving && !state.terminating)',
    stage: 'unit',
    test: 'test/agent/compile/services/endpoints.test.ts',
  },
  {
    name: 'a dropped event',
    file: 'lib/api/watch/kind-watch.ts',
    from: "events = type === 'DELETED' ? held.remove(this.watched, object) : yield* held.put(this.watched, object)",
    to: "events = type === 'DELETED' ? [] : yield* held.put(this.watched, object)",
    stage: 'api',
    test: 'test/apiserver/source.test.ts',
  },
  {
    name: 'a wrong status',
    file: 'operator/status/conditions.ts',
    from: 'Degraded: [state.degraded !== undefined, state.degraded',
    to: 'Degraded: [state.degraded === undefined, state.degraded',
    stage: 'api',
    test: 'test/apiserver/operator/status.test.ts',
  },
  {
    name: 'a wrong answer of the rules',
    file: 'lib/policy/rule.ts',
    from: '!isPort(side.notPorts) &&',
    to: 'isPort(side.notPorts) &&',
    stage: 'oracle',
  },
  {
    name: 'a read past the end of a buffer in the addon',
    file: 'native/map.cc',
    from: `  uint32_t count = ToU32(info[2], op, "count");
  Bytes keys = ToBytes(info[0], op, "keys", size_t{count} * shape_.key_bytes);
  Bytes values = ToBytes(info[1], op, "values", size_t{count} * shape_.value_bytes);
  uint32_t done = 0;`,
    to: `  uint32_t count = ToU32(info[2], op, "count");
  Bytes keys = ToBytes(info[0], op, "keys", size_t{count} * shape_.key_bytes);
  Bytes values = ToBytes(info[1], op, "values", size_t{count});
  uint32_t done = 0;`,
    stage: 'sanitized',
  },
  {
    name: 'a read past the end of a text that ends in a backslash',
    file: 'cni/netplane-cni.c',
    from: "if (*at == '\\\\' && at[1])",
    to: "if (*at == '\\\\')",
    stage: 'fuzz',
  },
  {
    name: 'a wrong type',
    file: 'lib/policy/rule.ts',
    from: 'readonly port: number',
    to: 'readonly port: string',
    stage: 'lint',
  },
  {
    name: 'programs for new kernels on the oldest one',
    file: 'Makefile',
    from: '-DNP_FLOOR -MMD',
    to: '-MMD',
    stage: 'vm',
  },
  {
    name: 'frontends that are written before their endpoints',
    file: 'agent/dataplane/maps/write-order.ts',
    from: 'if (waiting.size + open.size === 0) return undefined',
    to: 'if (waiting.size + open.size >= 0) return undefined',
    stage: 'unit',
    test: 'test/agent/dataplane/maps/write-order.test.ts',
  },
]
