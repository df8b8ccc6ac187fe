// SPDX-License-Identifier: Apache-2.0

// A runtime made with NRI's own library, as far as plugins see one. The one client of its control
// socket says in lines what the runtime tells them:
//
//	inventory SynchronizeRequest    what plugins that connect from now on are synchronized with
//	create CreateContainerRequest   and update, stop; run-pod, stop-pod, remove-pod, post-create,
//	                                start, post-start, post-update, remove with a StateChangeEvent
//
// Each is answered by "ok JSON" or "error TEXT" after its first word. Lines without a question tell
// of plugins: "synchronized" with their answer, "updates" with a call of theirs.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"

	nri "github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

type host struct {
	nri       *nri.Adaptation
	client    net.Conn
	lock      sync.Mutex
	inventory api.SynchronizeRequest
}

func (h *host) tell(word string, answer proto.Message, err error) {
	line := word + " ok " + "{}"
	if err != nil {
		line = word + " error " + strings.ReplaceAll(err.Error(), "\n", " ")
	} else if answer != nil {
		text, _ := protojson.Marshal(answer)
		line = word + " ok " + string(text)
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	fmt.Fprintln(h.client, line)
}

func (h *host) synchronize(ctx context.Context, callback nri.SyncCB) error {
	h.lock.Lock()
	pods, containers := h.inventory.Pods, h.inventory.Containers
	h.lock.Unlock()
	updates, err := callback(ctx, pods, containers)
	go func() {
		h.holdPlugins()() // until it is added
		h.tell("synchronized", &api.SynchronizeResponse{Update: updates}, err)
	}()
	return err
}

// The update of a container whose id begins with "lost" fails.
func (h *host) update(_ context.Context, updates []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
	var failed []*api.ContainerUpdate
	for _, update := range updates {
		if strings.HasPrefix(update.ContainerId, "lost") {
			failed = append(failed, update)
		}
	}
	h.tell("updates", &api.UpdateContainersRequest{Update: updates}, nil)
	return failed, nil
}

// Since 0.7 it is the runtime that keeps plugins from being added in the middle of an event; before,
// the library did.
func (h *host) holdPlugins() (release func()) {
	hold := reflect.ValueOf(h.nri).MethodByName("BlockPluginSync")
	if !hold.IsValid() {
		return func() {}
	}
	held := hold.Call(nil)[0]
	return func() { held.MethodByName("Unblock").Call(nil) }
}

func (h *host) answer(word, text string) (proto.Message, error) {
	ctx := context.Background()
	defer h.holdPlugins()()
	switch word {
	case "inventory":
		var inventory api.SynchronizeRequest
		err := protojson.Unmarshal([]byte(text), &inventory)
		h.lock.Lock()
		h.inventory.Pods, h.inventory.Containers = inventory.Pods, inventory.Containers
		h.lock.Unlock()
		return nil, err
	case "create":
		var request api.CreateContainerRequest
		if err := protojson.Unmarshal([]byte(text), &request); err != nil {
			return nil, err
		}
		return h.nri.CreateContainer(ctx, &request)
	case "update":
		var request api.UpdateContainerRequest
		if err := protojson.Unmarshal([]byte(text), &request); err != nil {
			return nil, err
		}
		return h.nri.UpdateContainer(ctx, &request)
	case "stop":
		var request api.StopContainerRequest
		if err := protojson.Unmarshal([]byte(text), &request); err != nil {
			return nil, err
		}
		return h.nri.StopContainer(ctx, &request)
	}
	events := map[string]func(context.Context, *api.StateChangeEvent) error{
		"run-pod":     h.nri.RunPodSandbox,
		"stop-pod":    h.nri.StopPodSandbox,
		"remove-pod":  h.nri.RemovePodSandbox,
		"post-create": h.nri.PostCreateContainer,
		"start":       h.nri.StartContainer,
		"post-start":  h.nri.PostStartContainer,
		"post-update": h.nri.PostUpdateContainer,
		"remove":      h.nri.RemoveContainer,
	}
	tell, known := events[word]
	if !known {
		return nil, fmt.Errorf("no event is called %q", word)
	}
	var event api.StateChangeEvent
	if err := protojson.Unmarshal([]byte(text), &event); err != nil {
		return nil, err
	}
	return nil, tell(ctx, &event)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	control := flag.String("control", "", "`PATH` of the socket for what is to be done")
	socket := flag.String("socket", "", "`PATH` of the socket for plugins")
	plugins := flag.String("plugins", "", "`DIRECTORY` of plugins to launch")
	version := flag.String("version", "1.7.24", "of containerd, which it claims to be")
	flag.Parse()
	listener, err := net.Listen("unix", *control)
	if err != nil {
		fail(err)
	}
	h := &host{}
	if h.client, err = listener.Accept(); err != nil {
		fail(err)
	}
	h.nri, err = nri.New("containerd", *version, h.synchronize, h.update,
		nri.WithSocketPath(*socket), nri.WithPluginPath(*plugins), nri.WithPluginConfigPath(*plugins))
	if err != nil {
		fail(err)
	}
	if err = h.nri.Start(); err != nil {
		fail(err)
	}
	lines := bufio.NewScanner(h.client)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		word, text, _ := strings.Cut(lines.Text(), " ")
		// Events of several containers come at the same time, as from a kubelet.
		go func() {
			answer, err := h.answer(word, text)
			h.tell(word, answer, err)
		}()
	}
	h.nri.Stop()
}
