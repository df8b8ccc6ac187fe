// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/docker_door.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "pkg/config/config.h"
#include "pkg/docker/call_watch.h"
#include "pkg/docker/docker_front.h"
#include "pkg/docker/engine_inspector.h"
#include "pkg/docker/engine_runtime.h"
#include "pkg/docker/proxy.h"
#include "pkg/node/door_parts.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

// Docker creates the pause container by a normal request, so pods have resources, too.
HookHostingOptions WithPodResources(HookHostingOptions options) {
  options.stage.pods_have_resources = true;
  return options;
}

class DockerLink final : public BrainLink {
 public:
  // `hosting`, which is empty after the door's end, outlives this object.
  DockerLink(EventLoop& loop, const DockerDoorOptions& options, std::optional<DoorHosting>& hosting)
      : hosting_(hosting),
        runtime_(loop, options.engine_socket, options.others),
        teller_(runtime_, hosting_) {}

  RuntimeClient& runtime() override { return teller_; }
  void Connect(RuntimeEvents events) override {
    runtime_.Start({.connected =
                        [this, connected = std::move(events.connected)] {
                          if (hosting_) hosting_->RuntimeConnected();
                          connected();
                        },
                    .disconnected = std::move(events.disconnected),
                    .happened =
                        [this, happened = std::move(events.happened)](const ContainerEvent& event) {
                          if (hosting_) hosting_->inventory().OnEvent(event);
                          happened(event);
                        }});
  }
  Status EnsureConnected() override { return runtime_.EnsureConnected(); }
  void Retire() override {}

 private:
  std::optional<DoorHosting>& hosting_;
  docker::EngineRuntime runtime_;
  UpdateTeller teller_;  // in front of the runtime
};

// Limit of clients: each takes two file descriptors, and the rest of the daemon needs some.
size_t ClientsWith(size_t file_limit) {
  constexpr size_t kOthers = 256;
  constexpr size_t kFewest = 16;
  const size_t left = file_limit > kOthers ? file_limit - kOthers : 0;
  return std::clamp(left / 2, kFewest, docker::Proxy::Options().max_clients);
}

class DockerDoor final : public FrontDoor {
 public:
  DockerDoor(const DoorContext& context, DockerDoorOptions options, ListeningSocket listener)
      : context_(context),
        options_(std::move(options)),
        listener_(std::move(listener)),
        front_(context.loop, context.pipeline, options_.engine_socket, options_.others) {
    hosting_.emplace(context_, *this, WithPodResources(options_.hooks), options_.nri_host, [this] {
      return std::make_unique<docker::EngineInspector>(context_.loop, options_.engine_socket,
                                                       options_.others);
    });
  }

  CreationWays ways() const override { return {.docker = true}; }
  void Start(dump::Dumper& dumper) override {
    watch_.emplace(context_.metrics, &dumper);
    proxy_.emplace(context_.loop, *std::exchange(listener_, std::nullopt),
                   docker::Proxy::Options{.engine_socket = options_.engine_socket,
                                          .max_clients = ClientsWith(RaiseFileLimit())},
                   &front_, &*watch_);
    hosting_->Start();
  }
  std::unique_ptr<BrainLink> MakeLink() override {
    return std::make_unique<DockerLink>(context_.loop, options_, hosting_);
  }
  void SetActive(BrainLink* link) override {
    placed_ = link != nullptr;
    if (hosting_) hosting_->SetLinked(placed_);
  }
  void Configure(const Config& config) override {
    if (hosting_) hosting_->Configure(config);
  }
  std::vector<PluginView> plugins() const override {
    return hosting_ ? hosting_->plugins() : std::vector<PluginView>();
  }
  std::vector<Problem> problems() const override {
    std::vector<Problem> all;
    if (hosting_) all = hosting_->problems();
    if (!placed_) AddUnreached("Docker engine", options_.engine_socket, all);
    return all;
  }
  std::vector<SeenContainer> seen() const override {
    return hosting_ ? hosting_->seen() : std::vector<SeenContainer>();
  }
  void Drain(std::function<void()> done) override {
    const auto stop_plugins = [this, done = std::move(done)] {
      hosting_ ? hosting_->StopPlugins(done) : done();
    };
    paused_ ? stop_plugins() : proxy_->Drain(kDrainDeadline, stop_plugins);
  }
  void Pause(std::function<void()> done) override {
    proxy_->Drain(kDrainDeadline, [this, done = std::move(done)] {
      paused_ = true;
      done();
    });
  }
  Status Resume() override {
    RESMGR_ASSIGN_OR_RETURN(ListeningSocket listener, ListeningSocket::Create(options_.socket));
    paused_ = false;
    proxy_->Resume(std::move(listener));
    return OkStatus();
  }
  void Stop() override {
    proxy_.reset();
    hosting_.reset();
  }

 private:
  const DoorContext context_;
  const DockerDoorOptions options_;
  std::optional<ListeningSocket> listener_;  // until the start
  bool paused_ = false;                      // Pause is complete
  bool placed_ = false;                      // a brain decides about requests
  docker::DockerFront front_;                // it and the next members outlive the proxy
  std::optional<DoorHosting> hosting_;
  std::optional<docker::CallWatch> watch_;
  std::optional<docker::Proxy> proxy_;
};

}  // namespace

FrontDoorFactory DockerDoorFactory(DockerDoorOptions options) {
  std::string description =
      fmt::format("serving {}, Docker engine {}", options.socket, options.engine_socket);
  std::vector<std::string> sockets = {options.socket};
  if (options.nri_host) sockets.push_back(options.nri_host->host.socket);
  return {.create = [options = std::move(options)](
                        const DoorContext& context) -> StatusOr<std::unique_ptr<FrontDoor>> {
            RESMGR_ASSIGN_OR_RETURN(ListeningSocket listener,
                                    ListeningSocket::Create(options.socket));
            return std::make_unique<DockerDoor>(context, options, std::move(listener));
          },
          .sockets = std::move(sockets),
          .description = std::move(description),
          .asks_hook_servers = true,
          .counted_methods = docker::KnownCallPaths()};
}

}  // namespace resmgr
