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
#include "pkg/hooks/hook_view.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/metrics/metrics.h"
#include "pkg/pipeline/stage.h"
#include "pkg/runtime/inventory.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::hooks {

struct HookStageOptions {
  // Time limit for all servers of one call together, including the search for the request's
  // contents: a kubelet gives a call two minutes.
  std::chrono::milliseconds budget{20'000};
  // Servers are not asked about pods with a label or annotation of this name and value. "": about
  // all.
  std::string skip_key = "runtimeproxy.koordinator.sh/skip-hookserver";
  std::string skip_value = "true";
  // Servers are not asked about pods of these runtime handlers.
  std::set<std::string> skip_handlers{};
  // True if the request that creates a pod sandbox has a place for the pause container's resources
  // (Docker).
  bool pods_have_resources = false;
};

// Asks Koordinator's hook servers about calls and changes these as the servers want: the stage
// behind the policy.
//
//   before the runtime  PreRunPodSandbox, PreCreateContainer, PreStartContainer,
//                       PreUpdateContainerResources: the servers with this hook are asked one
//                       after the other, and each sees the former ones' changes. One that fails
//                       or is late refuses the call or is ignored, as its file says.
//   after it            PostStartContainer, PostStopContainer, PostStopPodSandbox: called once, if
//                       the runtime succeeded; the client does not wait, and failures are logged
//
// When the budget is spent, the changes so far count; the call is refused if a server whose policy
// is Fail was not heard. Loop's thread only.
class HookStage final : public Stage {
 public:
  using Servers = std::vector<std::shared_ptr<HookServerPort>>;

  // All outlive the stage.
  struct Context {
    EventLoop& loop;
    resmgr::Clock& clock;
    Inventory& inventory;
    const HookServersPort& servers;
    Metrics* metrics = nullptr;  // null: no counting
  };

  HookStage(const Context& context, HookStageOptions options);
  ~HookStage() override;

  // Learns of the runtime's pods and containers, until Forget: the stage is in the pipeline. Calls
  // that servers may be asked about wait until it is known which there are.
  void Start();
  // Marks the servers as known.
  void OpenServers();
  // Calls under way do not wait any more.
  void Forget();
  // Applies to calls that begin from now on.
  void SetSkip(std::string key, std::string value);

  std::unique_ptr<StageCall> Begin(const Request& request) override;

  // How often a call went on without a server that failed.
  uint64_t ignored_failures() const { return ignored_failures_; }

  // Used by the calls.
  bool knows_servers() const { return knows_servers_; }
  void WhenServersKnown(std::function<void()> then) { waiting_.push_back(std::move(then)); }
  const HookStageOptions& hook_options() const { return hook_options_; }
  HookView& view() { return view_; }
  const HookView& view() const { return view_; }
  resmgr::Clock& clock() { return context_.clock; }
  Servers ServersOf(HookPoint point) const { return context_.servers.ServersOf(point); }
  bool Skips(const api::PodSandboxHookRequest& pod) const;
  // Calls a post hook; the answer is only logged if it is an error.
  void Tell(HookPoint point, const std::string& request);
  // Counts a call that went on without a server's answer.
  void NoteIgnored(const Status& why);
  void NoteConflict(HookPoint point, const std::string& conflict);
  // Keeps servers until the next turn of the loop: otherwise an answer could destroy its own
  // server.
  void KeepForNow(Servers servers);

 private:
  const Context context_;
  HookStageOptions hook_options_;
  Logger& log_;
  HookView view_;
  RateLimit failures_limit_;
  RateLimit conflicts_limit_;
  uint64_t ignored_failures_ = 0;
  bool knows_servers_ = true;                   // or no directory is read
  std::vector<std::function<void()>> waiting_;  // calls that wait for the servers to be known
  std::list<std::shared_ptr<HookServerPort>> telling_;  // servers of post hooks, until they answer
  Lifetime lifetime_;
};

}  // namespace resmgr::hooks
