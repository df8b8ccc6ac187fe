// SPDX-License-Identifier: Apache-2.0

// A plugin made with NRI's own library. It logs each event that it gets, one line of JSON each, and
// does what its flags say. A plugin that a runtime launches has no flags: its configuration has
// them, one word each.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

// An event as it is logged.
type event struct {
	Event      string
	Pods       []*api.PodSandbox   `json:",omitempty"`
	Containers []*api.Container    `json:",omitempty"`
	Resources  *api.LinuxResources `json:",omitempty"`
	Failed     []string            `json:",omitempty"`
	Error      string              `json:",omitempty"`
}

type plugin struct {
	flags  *flag.FlagSet
	stub   stub.Stub
	output *os.File
	lock   sync.Mutex

	// Values of the flags.
	only       string // the container that is adjusted; "": all
	env        string
	annotation string
	mount      string
	device     string
	shares     uint64
	others     uint64
	cpus       string
	refuse     string
	hang       string
	die        string
	flood      int

	running  map[string]string // ids of containers that are there, by name
	outcomes map[string]bool   // of updates, that are logged
}

func newPlugin(output *os.File) *plugin {
	p := &plugin{output: output, running: map[string]string{}, outcomes: map[string]bool{}}
	flags := flag.NewFlagSet("plugin", flag.ContinueOnError)
	flags.Func("log", "`FILE` to log into, appended", func(path string) (err error) {
		p.output, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		return err
	})
	flags.StringVar(&p.only, "only", "", "name of the one `container` that is adjusted")
	flags.StringVar(&p.env, "env", "", "`NAME=VALUE` to set")
	flags.StringVar(&p.annotation, "annotation", "", "`KEY=VALUE` to set")
	flags.StringVar(&p.mount, "mount", "", "`SOURCE:DESTINATION` to bind, read-only")
	flags.StringVar(&p.device, "device", "", "`PATH` of a character device of the host to add")
	flags.Uint64Var(&p.shares, "shares", 0, "CPU shares of the container")
	flags.StringVar(&p.cpus, "cpus", "", "cpuset of the container")
	flags.Uint64Var(&p.others, "others", 0, "CPU shares of all others, at each creation")
	flags.StringVar(&p.refuse, "refuse", "", "`EVENT` to answer with an error")
	flags.StringVar(&p.hang, "hang", "", "`EVENT` to answer never")
	flags.StringVar(&p.die, "die", "", "`EVENT` to die at")
	flags.IntVar(&p.flood, "flood", 0, "calls of UpdateContainers to have under way at any time, without end")
	p.flags = flags
	return p
}

func (p *plugin) log(e event) {
	p.lock.Lock()
	defer p.lock.Unlock()
	line, err := json.Marshal(e)
	if err != nil {
		line = []byte(fmt.Sprintf("{\"Event\":\"unprintable\",\"Error\":%q}", err.Error()))
	}
	fmt.Fprintf(p.output, "%s\n", line)
}

// Logs an event; then the plugin may misbehave. Called first for every event.
func (p *plugin) take(name string, pod *api.PodSandbox, container *api.Container) error {
	e := event{Event: name, Pods: []*api.PodSandbox{pod}}
	if container != nil {
		e.Containers = []*api.Container{container}
	}
	p.log(e)
	if container != nil && p.only != "" && container.Name != p.only {
		return nil
	}
	switch name {
	case p.hang:
		select {}
	case p.die:
		os.Exit(3)
	case p.refuse:
		return fmt.Errorf("the plugin refuses %s", name)
	}
	return nil
}

func (p *plugin) Configure(_ context.Context, config, runtime, version string) (stub.EventMask, error) {
	p.log(event{Event: "Configure", Error: runtime + " " + version})
	return 0, p.flags.Parse(strings.Fields(config))
}

func (p *plugin) Synchronize(_ context.Context, pods []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	p.log(event{Event: "Synchronize", Pods: pods, Containers: containers})
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, container := range containers {
		p.running[container.Name] = container.Id
	}
	for i := 0; i < p.flood; i++ {
		go p.updateWithoutEnd()
	}
	return nil, nil
}

func (p *plugin) Shutdown(context.Context) {
	p.log(event{Event: "Shutdown"})
}

// Updates that the runtime did not ask for, each with other values than the one before. Logs each
// outcome that was not there before.
func (p *plugin) updateWithoutEnd() {
	time.Sleep(time.Millisecond) // the plugin is asked nothing until Synchronize is answered
	for count := uint64(0); ; count++ {
		failed, err := p.stub.UpdateContainers(p.updates("", 1000+count%1000))
		e := event{Event: "updated"}
		for _, update := range failed {
			e.Failed = append(e.Failed, update.ContainerId)
		}
		if err != nil {
			e.Error = err.Error()
		}
		outcome := fmt.Sprint(e.Error, e.Failed)
		p.lock.Lock()
		known := p.outcomes[outcome]
		p.outcomes[outcome] = true
		p.lock.Unlock()
		if !known {
			p.log(e)
		}
	}
}

func (p *plugin) updates(except string, shares uint64) []*api.ContainerUpdate {
	p.lock.Lock()
	defer p.lock.Unlock()
	var updates []*api.ContainerUpdate
	for name, id := range p.running {
		if name == except {
			continue
		}
		update := &api.ContainerUpdate{}
		update.SetContainerId(id)
		update.SetLinuxCPUShares(shares)
		updates = append(updates, update)
	}
	return updates
}

func (p *plugin) CreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	if err := p.take("CreateContainer", pod, container); err != nil {
		return nil, nil, err
	}
	var updates []*api.ContainerUpdate
	if p.others != 0 {
		updates = p.updates(container.Name, p.others)
	}
	p.lock.Lock()
	p.running[container.Name] = container.Id
	p.lock.Unlock()
	if p.only != "" && container.Name != p.only {
		return nil, updates, nil
	}
	return p.adjustment(), updates, nil
}

func (p *plugin) adjustment() *api.ContainerAdjustment {
	adjustment := &api.ContainerAdjustment{}
	if key, value, ok := strings.Cut(p.env, "="); ok {
		adjustment.AddEnv(key, value)
	}
	if key, value, ok := strings.Cut(p.annotation, "="); ok {
		adjustment.AddAnnotation(key, value)
	}
	if source, destination, ok := strings.Cut(p.mount, ":"); ok {
		adjustment.AddMount(&api.Mount{Source: source, Destination: destination, Type: "bind",
			Options: []string{"rbind", "rprivate", "ro"}})
	}
	if p.device != "" {
		addDevice(adjustment, p.device)
	}
	if p.shares != 0 {
		adjustment.SetLinuxCPUShares(p.shares)
	}
	if p.cpus != "" {
		adjustment.SetLinuxCPUSetCPUs(p.cpus)
	}
	return adjustment
}

func (p *plugin) UpdateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container, resources *api.LinuxResources) ([]*api.ContainerUpdate, error) {
	p.log(event{Event: "UpdateContainer resources", Resources: resources})
	return nil, p.take("UpdateContainer", pod, container)
}

func (p *plugin) StopContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) ([]*api.ContainerUpdate, error) {
	p.lock.Lock()
	delete(p.running, container.Name)
	p.lock.Unlock()
	return nil, p.take("StopContainer", pod, container)
}

func (p *plugin) RunPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return p.take("RunPodSandbox", pod, nil)
}

func (p *plugin) StopPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return p.take("StopPodSandbox", pod, nil)
}

func (p *plugin) RemovePodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return p.take("RemovePodSandbox", pod, nil)
}

func (p *plugin) PostCreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	return p.take("PostCreateContainer", pod, container)
}

func (p *plugin) StartContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	return p.take("StartContainer", pod, container)
}

func (p *plugin) PostStartContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	return p.take("PostStartContainer", pod, container)
}

func (p *plugin) PostUpdateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	return p.take("PostUpdateContainer", pod, container)
}

func (p *plugin) RemoveContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	return p.take("RemoveContainer", pod, container)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	p := newPlugin(os.Stdout)
	name := p.flags.String("name", "test", "of the plugin")
	index := p.flags.String("index", "50", "of the plugin, two digits")
	socket := p.flags.String("socket", "/var/run/nri/nri.sock", "of the runtime")
	if err := p.flags.Parse(os.Args[1:]); err != nil {
		os.Exit(1)
	}
	var options []stub.Option
	// A runtime that launches a plugin tells it name, index and socket by the environment.
	if _, launched := os.LookupEnv(api.PluginSocketEnvVar); !launched {
		options = []stub.Option{stub.WithPluginName(*name), stub.WithPluginIdx(*index),
			stub.WithSocketPath(*socket)}
	}
	var err error
	if p.stub, err = stub.New(p, options...); err != nil {
		fail(err)
	}
	if err = p.stub.Run(context.Background()); err != nil {
		fail(err)
	}
}
