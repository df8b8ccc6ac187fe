// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/hooks/hook_store.h"
#include "pkg/hooks/hook_sync.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/metrics/metrics.h"
#include "pkg/model/resource_values.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/pipeline/stage.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::hooks {

struct HookStageOptions {
  // For all servers of one call together, the search for what they are told included: a kubelet
  // gives a call two minutes.
  std::chrono::milliseconds budget{20'000};
  // Nothing is asked about pods that have this label or annotation with this value. "": all.
  std::string skip_key = "runtimeproxy.koordinator.sh/skip-hookserver";
  std::string skip_value = "true";
  // Nothing is asked about pods of these runtime handlers.
  std::set<std::string> skip_handlers{};
  // The request that makes a pod sandbox has a place for resources: they are the pause container's.
  bool pods_have_resources = false;
};

// Asks Koordinator's hook servers about calls and changes these as the servers want: the stage
// behind the policy.
//
//   before the runtime  PreRunPodSandbox, PreCreateContainer, PreStartContainer,
//                       PreUpdateContainerResources: the servers that want this hook are asked one
//                       after the other, and each sees what those before it changed. One that fails
//                       or is late refuses the call or is passed over, as its file says.
//   after it            PostStartContainer, PostStopContainer, PostStopPodSandbox: once, where the
//                       runtime has done it; the client does not wait, and failures are logged
//
// When the budget is spent, what the servers wanted so far counts; the call is refused where one
// that may not fail was not heard. Loop's thread only.
class HookStage final : public Stage {
 public:
  using Servers = std::vector<std::shared_ptr<HookServerPort>>;

  // All outlive it.
  struct Context {
    EventLoop& loop;
    resmgr::Clock& clock;
    RuntimeAccess& runtime;
    const HookServersPort& servers;
    Metrics* metrics = nullptr;  // null: nothing is counted
  };

  HookStage(const Context& context, HookStageOptions options);
  ~HookStage() override;

  // The servers are known from now on; until then calls that they may be asked about wait.
  void OpenServers();
  // Learns what the runtime has; again when the runtime was away.
  void Start() { sync_.Refresh(); }
  // For calls that begin from now on.
  void SetSkip(std::string key, std::string value);
  // Forgets what it knows of the runtime: it was not in the pipeline for a while.
  void Forget() { store_.Clear(); }
  // The runtime, or a client to whom it told it, says that something happened.
  void OnContainerEvent(const ContainerEvent& event);
  // The container has these values now, by an update that was no call of a client.
  void OnUpdated(const ContainerId& id, const ResourceValues& values) {
    store_.SetValues(id, values);
  }

  std::unique_ptr<StageCall> Begin(const Request& request) override;

  // How often a call went on without a server that failed.
  uint64_t ignored_failures() const { return ignored_failures_; }

  // For its calls.
  bool knows_servers() const { return knows_servers_; }
  void WhenServersKnown(std::function<void()> then) { waiting_.push_back(std::move(then)); }
  const HookStageOptions& hook_options() const { return hook_options_; }
  HookStore& store() { return store_; }
  const HookStore& store() const { return store_; }
  HookSync& sync() { return sync_; }
  resmgr::Clock& clock() { return context_.clock; }
  Servers ServersOf(HookPoint point) const { return context_.servers.ServersOf(point); }
  bool Skips(const api::PodSandboxHookRequest& pod) const;
  // A post hook.
  void Tell(HookPoint point, const std::string& request);
  // A call went on without a server's answer.
  void NoteIgnored(const Status& why);
  void NoteConflict(HookPoint point, const std::string& conflict);
  // A server's answer may be what ends the last use of the server: it stays a moment longer.
  void KeepForNow(Servers servers);

 private:
  const Context context_;
  HookStageOptions hook_options_;
  Logger& log_;
  HookStore store_;
  HookSync sync_;
  RateLimit failures_limit_;
  RateLimit conflicts_limit_;
  uint64_t ignored_failures_ = 0;
  bool knows_servers_ = false;
  std::vector<std::function<void()>> waiting_;          // for the servers to be known
  std::list<std::shared_ptr<HookServerPort>> telling_;  // servers of post hooks, until they answer
  Lifetime lifetime_;
};

}  // namespace resmgr::hooks
