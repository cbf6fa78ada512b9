// SPDX-License-Identifier: Apache-2.0
import { Notifier } from '#lib/base/async/wait.ts'
import { expect, test } from 'vitest'
import type { Sink, SourceEvent } from '#lib/store/source.ts'
import { nodeSink } from '#agent/run/node-sink.ts'
import { model, namespace, pod, service } from '../../support/build.ts'

/** Writes down what comes to it. */
class ListSink implements Sink {
  readonly heard: string[] = []

  apply(events: readonly SourceEvent[]): void {
    const text = (event: SourceEvent): string => {
      const { kind, name } = event.kind === 'upsert' ? event.object : event.ref
      return `${event.kind} ${kind} ${name}`
    }
    this.heard.push(events.map(text).join(', '))
  }

  synced(): void {
    this.heard.push('synced')
  }

  status(): void {
    this.heard.push('status')
  }
}

function upsert(manifest: Parameters<typeof model>[0]): SourceEvent {
  return { kind: 'upsert', object: model(manifest) }
}

test('pods alone are looked at on their way into the store, and the order of events stays', () => {
  const store = new ListSink()
  const seen: string[] = []
  const sink = nodeSink({
    sink: store,
    pods: {
      changed: new Notifier(),
      passOn: (event) => {
        const { name } = event.kind === 'upsert' ? event.object : event.ref
        seen.push(name)
        return { kind: 'delete', ref: { kind: 'Pod', namespace: 'default', name: `${name} as here` } }
      },
    },
    beforeSynced: () => {
      store.heard.push('all is there')
    },
  })
  sink.apply([upsert(namespace('shop')), upsert(pod('web')), upsert(service('web'))])
  sink.apply([{ kind: 'delete', ref: { kind: 'Pod', namespace: 'default', name: 'db' } }])
  sink.synced()
  sink.status({ unavailable: undefined, problems: [] })
  expect(seen).toEqual(['web', 'db'])
  expect(store.heard).toEqual([
    'upsert Namespace shop, delete Pod web as here, upsert Service web',
    'delete Pod db as here',
    'all is there',
    'synced',
    'status',
  ])
})
