// SPDX-License-Identifier: Apache-2.0
/** Messages as other programs write them: bytes by hand, from the numbers of fields. Layer: test. */

/** Pairs of hex digits; from # to the end of a line is a comment. */
export function hex(text: string): Uint8Array<ArrayBuffer> {
  const digits = text.replaceAll(/#.*$/gm, '').replaceAll(/\s+/g, '')
  return new Uint8Array(Buffer.from(digits, 'hex'))
}

/** A field of bytes, text or message, whose length is that of `content`. */
export function field(tag: string, ...content: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const body = Buffer.concat(content)
  return new Uint8Array(Buffer.concat([hex(tag), varint(body.length), body]))
}

function varint(value: number): Uint8Array {
  return value < 0x80 ? new Uint8Array([value]) : new Uint8Array([(value & 0x7f) | 0x80, ...varint(value >> 7)])
}

/** What a node of 3.32 sends: the end of a tier denies what comes from shop to the database. */
export const UPDATE_OF_332 = field(
  '0a', // FlowUpdate.flow
  field(
    '0a', // Flow.Key
    hex(`0a 05 7765622d2a      # source_name = 1: web-*
         12 04 73686f70        # source_namespace = 2: shop
         18 01                 # source_type = 3: WorkloadEndpoint
         22 02 6462            # dest_name = 4: db
         2a 04 64617461        # dest_namespace = 5: data
         30 01                 # dest_type = 6: WorkloadEndpoint
         38 b8 2a              # dest_port = 7: 5432
         42 02 6462            # dest_service_name = 8: db
         4a 04 64617461        # dest_service_namespace = 9: data
         52 02 7067            # dest_service_port_name = 10: pg
         58 b9 2a              # dest_service_port = 11: 5433
         62 03 746370          # proto = 12: tcp
         68 02                 # reporter = 13: Dst
         70 02                 # action = 14: Deny
    `),
    field(
      '7a', // policies = 15
      field(
        '0a', // enforced_policies = 1
        hex(`08 0a                         # kind = 1: EndOfTier
             22 07 64656661756c74          # tier = 4: default
             28 02                         # action = 5: Deny
             30 01                         # policy_index = 6: 1
             38 ff ff ff ff ff ff ff ff ff 01  # rule_index = 7: -1
        `),
        field(
          '42', // trigger = 8
          hex(`08 06                       # kind = 1: NetworkPolicy
               12 04 64617461              # namespace = 2: data
               1a 05 64622d696e            # name = 3: db-in
               22 07 64656661756c74        # tier = 4: default
          `),
        ),
      ),
      field(
        '0a', // enforced_policies = 1, of the place before
        hex(`08 02                         # kind = 1: GlobalNetworkPolicy
             1a 01 67                      # name = 3: g
             22 03 736563                  # tier = 4: sec
             28 03                         # action = 5: Pass
             38 02                         # rule_index = 7: 2
        `),
      ),
      field(
        '12', // pending_policies = 2
        hex(`08 07                         # kind = 1: AdminNetworkPolicy, up to 3.31
             1a 03 616e70                  # name = 3: anp
             28 01                         # action = 5: Allow
        `),
      ),
      field(
        '12', // pending_policies = 2
        hex(`08 63                         # kind = 1: 99, of a version to come
             28 01                         # action = 5: Allow
        `),
      ),
    ),
  ),
  hex(`10 95 9a ef 3a      # start_time = 2: 123456789
       18 95 9a ef 3a      # end_time = 3: the same
       22 03 613d62        # source_labels = 4: a=b
       22 03 633d64        # source_labels = 4: c=d
       2a 03 653d66        # dest_labels = 5: e=f
       30 01               # packets_in = 6
       38 02               # packets_out = 7
       40 ac 02            # bytes_in = 8: 300
       48 04               # bytes_out = 9
       50 05               # num_connections_started = 10
       58 06               # num_connections_completed = 11
       60 07               # num_connections_live = 12
       6a 08 31302e302e302e31  # 13: a field of a version to come
  `),
)
