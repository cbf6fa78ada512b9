// SPDX-License-Identifier: Apache-2.0

// Kubernetes' own programs and etcd as one binary, so that what they share is linked once: the name it is called by
// (or its first argument) says which of them it is.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	etcd "go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var programs = map[string]func(){
	"etcd":                    func() { etcd.Main(os.Args) },
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllers.NewControllerManagerCommand()) },
	"kube-proxy":              func() { run(proxy.NewProxyCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kubectl":                 func() { run(kubectl.NewDefaultKubectlCommand()) },
	"kubelet":                 func() { run(kubelet.NewKubeletCommand(context.Background())) },
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func main() {
	program, known := programs[filepath.Base(os.Args[0])]
	if !known && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		program, known = programs[os.Args[0]]
	}
	if !known {
		fmt.Fprintf(os.Stderr, "no such program; there are %s\n", strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
		os.Exit(2)
	}
	program()
}
