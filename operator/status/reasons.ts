// SPDX-License-Identifier: Apache-2.0
/** Every reason that the operator gives in conditions and events, for people who have one before them.
 * Layer: operator (pure). */
import type { ReasonTexts } from '#lib/kube/objects/reasons.ts'

export const REASONS = {
  AllReady: { at: 'all', meaning: 'all of it is in place', remedy: '' },
  Installed: { at: '`preflight`', meaning: 'agents run, and what a preflight said before them is not known any more', remedy: '' },
  Passed: { at: '`preflight`', meaning: 'nothing is in the way', remedy: '' },
  Warnings: {
    at: '`preflight`',
    meaning: 'nothing is in the way; the message has what is worth knowing',
    remedy: 'read it: each warning has its remedy',
  },
  Asking: {
    at: '`preflight`, Installation',
    meaning: 'nodes have not answered yet',
    remedy: 'wait; where it lasts see the pods `netplane-preflight` of the nodes that it names',
  },
  Blocked: {
    at: '`preflight`, Installation',
    meaning: 'something is in the way, and nothing is changed',
    remedy: 'do what the message says of each finding; all is asked again 20 s later',
  },
  ProbeFailed: {
    at: '`preflight`, Installation',
    meaning: 'a node could not be looked at',
    remedy:
      'see the pod `netplane-preflight` of that node: an image that is not there, a policy that forbids such pods, or a kernel or processor on which the program does not start',
  },
  Preflight: {
    at: '`network`, `services`',
    meaning: 'nothing is made, and no node changes its mode, before the preflight has passed',
    remedy: 'see the status `preflight`',
  },
  InstallationInvalid: {
    at: '`network`',
    meaning: 'a field of the spec cannot be read, or asks for what is not there: it is not Available, and what runs stays as it is',
    remedy: 'change the field that the message names',
  },
  OtherInstallation: {
    at: '`network`',
    meaning: 'a DaemonSet of a manifest, or of a version before 3.31, runs agents',
    remedy:
      '`netplanectl upgrade run` where an operator before 3.31 made it; else take it away: [from the manifests of agents](operator.md#from-the-manifests-of-agents)',
  },
  EndpointInvalid: {
    at: '`network`',
    meaning: 'the config map `cluster-services-endpoint` has no usable host or port; agents keep the one that they have',
    remedy: 'put the field right that the message names: `netplanectl install endpoint --apply`',
  },
  EndpointUnproven: {
    at: '`network`',
    meaning: 'the config map has a new endpoint, by which not every node has reached this cluster; agents keep the old one',
    remedy: 'do what the message says of the node or of the address, or put the old endpoint back into the map',
  },
  EndpointSilent: {
    at: '`network`',
    meaning: 'the API server no longer answers the operator at the endpoint that agents use; the operator asks it at its service’s address',
    remedy:
      'put the config map right: `netplanectl install endpoint --apply`, or bring the address back. Nodes whose agents hear nothing go on with what they know',
  },
  PullSecretMissing: {
    at: '`network`',
    meaning: 'a secret of `spec.imagePullSecrets` is not there, or is no pull secret',
    remedy: 'make it in the namespace `netplane-operator`',
  },
  BelongsToAnother: {
    at: '`network`',
    meaning: 'another client has made an object that is to be ours; no DaemonSet comes after it',
    remedy: 'let its owner drop it, or give it the label `app.kubernetes.io/managed-by: netplane-operator`',
  },
  Refused: {
    at: '`network`',
    meaning: 'the API server has refused an object, or the operator may not read what it needs (`GET`)',
    remedy:
      'where it is forbidden apply `deploy/operator/netplane-operator.yaml` of this version; else see the admission webhook or policy that the message names',
  },
  Unreachable: { at: '`network`', meaning: 'the API server did not answer', remedy: 'wait; where it lasts see the API server' },
  DatastoreLocked: {
    at: '`network`, `services`',
    meaning: 'the datastore is locked: agents’ pods are at 1/2 and tell nothing, no pool is made, and no node changes its mode',
    remedy: 'end what has locked it: [a locked datastore](status.md#a-locked-datastore)',
  },
  NotCreated: { at: '`network`, `controllers`', meaning: 'the object has not been made yet', remedy: 'wait' },
  NotObserved: {
    at: '`network`, `controllers`',
    meaning: 'its controller has not seen its last change',
    remedy: 'wait; where it lasts see kube-controller-manager',
  },
  RollingOut: {
    at: '`network`, `controllers`',
    meaning: 'pods are coming, or are not ready yet; the message has their nodes',
    remedy: 'wait; where it lasts `kubectl -n netplane-system describe pod` of those nodes',
  },
  CrashLoop: {
    at: '`network`, `controllers`',
    meaning: 'a container ends again and again',
    remedy: '`kubectl -n netplane-system logs POD -c CONTAINER --previous`',
  },
  ImagePull: {
    at: '`network`, `controllers`',
    meaning: 'an image cannot be pulled',
    remedy: 'see that the registry has it (`netplanectl install images`), and `spec.registry`, `spec.imagePullSecrets`',
  },
  PodFailed: { at: '`network`, `controllers`', meaning: 'a pod was ended, as by eviction', remedy: 'the message is the kubelet’s' },
  PodPending: {
    at: '`network`, `controllers`',
    meaning: 'a pod has no node; conditions say `RollingOut`, and name it',
    remedy: 'see its events: room, taints',
  },
  NotReady: {
    at: '`network`, `controllers`',
    meaning: 'a pod runs and is not ready; conditions say `RollingOut`, and name its node',
    remedy: 'on that node `curl -s 127.0.0.1:9099/readiness`',
  },
  Serving: { at: '`services`', meaning: 'nodes serve in the mode that is asked for', remedy: '' },
  Canary: { at: '`services`', meaning: 'one node changes its mode, alone', remedy: 'wait' },
  Wave: { at: '`services`', meaning: 'nodes change their mode, `maxUnavailable` at a time', remedy: 'wait' },
  Default: { at: '`services`', meaning: 'FelixConfiguration `default` gets the mode that nodes have', remedy: 'wait' },
  Finish: { at: '`services`', meaning: 'overrides of nodes go again', remedy: 'wait' },
  ProxyFirst: {
    at: '`services`',
    meaning: 'on the way to Standard mode kube-proxy is to serve every node first',
    remedy: 'wait; where it lasts see the status `proxy`',
  },
  Hold: { at: '`services`', meaning: 'every node is held in its mode while `default` changes', remedy: 'wait' },
  WaitsForNodes: {
    at: '`services`',
    meaning: 'nodes are not Ready yet, or their agents are to come or to prove services',
    remedy:
      'wait; where it lasts see the nodes that the message names: `kubectl describe node NODE`, `kubectl get nodenetwork NODE -o yaml`',
  },
  ProofFailed: {
    at: '`services`',
    meaning: 'services do not answer on a node in the new mode; it went back, and the others wait',
    remedy:
      'put right what the message says, then `kubectl annotate installation default operator.netplane.io/retry-switch="$(date)" --overwrite`',
  },
  AgentSilent: {
    at: '`services`',
    meaning: 'an agent has not said for `nodeTimeout` what is waited for; no node is taken from us before it does',
    remedy:
      '`kubectl -n netplane-system describe pod` of the nodes that the message names, and the logs of these pods. Where the message names rules of kube-proxy: `iptables-save -t nat`, `ip6tables-save -t nat` (or `nft list ruleset`) on the node, and the logs of its kube-proxy. One that serves one family alone, in a cluster with both, does not count as there',
  },
  CanaryMissing: {
    at: '`services`',
    meaning: '`nodeUpdateStrategy.canary` is no node that has an agent',
    remedy: 'name another, or none',
  },
  KubeProxyMissing: {
    at: '`services`, `proxy`, `network`',
    meaning:
      'Standard mode is asked for, no kube-proxy runs, and the operator may not start one; nodes stay as they are. Of `network`: the Installation is deleted, and agents go without it after two minutes',
    remedy: 'start it as the message says, or set `linuxDataplane: BPF`',
  },
  KubeProxyStopped: { at: '`proxy`', meaning: 'there is no kube-proxy, as BPF mode needs none', remedy: '' },
  KubeProxyServes: { at: '`proxy`', meaning: 'kube-proxy runs, as Standard mode needs it', remedy: '' },
  BesideKubeProxy: {
    at: '`proxy`',
    meaning: 'kube-proxy goes on beside BPF mode; agents leave its rules alone',
    remedy: 'it may stay; to stop it set `kubeProxyManagement: Enabled`, or use the command of the message',
  },
  Stopping: { at: '`proxy`', meaning: 'pods of kube-proxy go, or agents still see rules of it', remedy: 'wait' },
  Starting: {
    at: '`proxy`',
    meaning: 'kube-proxy is not ready on every node yet, or not seen by the agents',
    remedy: 'wait; where it lasts see its pods on the nodes that the message names',
  },
  WaitsForServices: {
    at: '`proxy`',
    meaning: 'kube-proxy is stopped once every node serves in BPF mode',
    remedy: 'wait; where it lasts see the status `services`',
  },
  StopByHand: {
    at: '`proxy`',
    meaning: 'the platform has a way of its own to stop kube-proxy, which is not ours to go',
    remedy: 'the message has the command, for when services are Available',
  },
  ManagedByAnother: {
    at: '`proxy`',
    meaning: 'another program would put kube-proxy back, so it is left as it is',
    remedy: 'stop it there: the message has the name',
  },
  Removing: {
    at: '`network`',
    meaning: 'the Installation is deleted; kube-proxy is to serve again, then what the Installation has made goes',
    remedy:
      'wait; where it lasts see kube-proxy, and the pods `netplane-cleanup` of the nodes that it names. A node that is not clean after `nodeTimeout` is left as it is',
  },
  Removed: { at: 'event', meaning: 'the Installation is gone, and all nodes are clean', remedy: '' },
  NodesLeft: {
    at: 'event',
    meaning: 'the Installation is gone; nodes that did not answer, or were not clean after `nodeTimeout`, were left as they are',
    remedy: 'put right what the message says, then [clean them by hand](operator.md#nodes-that-were-left), or make them anew',
  },
} as const satisfies ReasonTexts
