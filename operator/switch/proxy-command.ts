// SPDX-License-Identifier: Apache-2.0
/** What an administrator does about kube-proxy by hand, on each kind of platform. Layer: operator (pure). */
import type { Computed } from '#lib/render/computed.ts'
import type { Provider } from '#lib/render/providers.ts'
import { STOP_LABEL, STOP_VALUE, type ProxyFound } from './proxy-found.ts'

export interface ProxyCommands {
  readonly stop: string
  readonly start: string
}

const SELECTOR: ProxyCommands = {
  stop: selectorPatch(`"${STOP_VALUE}"`),
  start: selectorPatch('null'),
}

export const PROXY_COMMANDS: Readonly<Record<Provider, ProxyCommands>> = {
  Generic: SELECTOR,
  EKS: SELECTOR,
  KOPS: {
    stop: 'kops edit cluster: spec.kubeProxy.enabled: false; then kops update cluster --yes and kops rolling-update cluster --yes',
    start: 'kops edit cluster: spec.kubeProxy.enabled: true; then kops update cluster --yes and kops rolling-update cluster --yes',
  },
  OpenShift: {
    stop: networkPatch(false),
    start: networkPatch(true),
  },
  AKS: {
    stop: 'it stays: the platform keeps it',
    start: 'the platform keeps it: see why it does not run',
  },
  MKE: {
    stop: 'set kube_proxy_mode = "disabled" in the configuration of MKE',
    start: 'set kube_proxy_mode = "iptables" in the configuration of MKE',
  },
  RKE2: {
    stop: 'disable-kube-proxy: true in /etc/rancher/rke2/config.yaml of every server, and restart rke2-server, then rke2-agent',
    start: 'take disable-kube-proxy out of /etc/rancher/rke2/config.yaml of every server, and restart rke2-server, then rke2-agent',
  },
}

const K3S: ProxyCommands = {
  stop: 'disable-kube-proxy: true in /etc/rancher/k3s/config.yaml of every server, and restart k3s, then k3s-agent',
  start: 'take disable-kube-proxy out of /etc/rancher/k3s/config.yaml of every server, and restart k3s, then k3s-agent',
}

export function proxyCommands({ provider, platform }: Pick<Computed, 'provider' | 'platform'>): ProxyCommands {
  // k3s is no provider of its own
  return provider === 'Generic' && platform.hidesKubeProxy ? K3S : PROXY_COMMANDS[provider]
}

/** How one that is stopped is started, for people. */
export function startText({ state, action, selector }: ProxyFound, { start }: ProxyCommands): string {
  const isBySelector = state === 'stopped-by-hand' && action !== 'platform-operator'
  return isBySelector ? `take away the node selector that no node has${selector === '' ? '' : ` (${selector})`}` : `start it: ${start}`
}

function selectorPatch(value: string): string {
  const patch = `{"spec":{"template":{"spec":{"nodeSelector":{"${STOP_LABEL}":${value}}}}}}`
  return `kubectl -n kube-system patch daemonset kube-proxy --type merge -p '${patch}'`
}

function networkPatch(deploys: boolean): string {
  return `kubectl patch networks.operator.openshift.io cluster --type merge -p '{"spec":{"deployKubeProxy":${deploys}}}'`
}
