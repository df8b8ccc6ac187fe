// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/problem.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The messages of the kubelet's v1.PodResourcesLister (Kubernetes' podresources/v1/api.proto),
// reduced to the NUMA nodes of a container's devices.

// The names by which the kubelet knows a container.
struct PodContainer {
  std::string namespace_name{};
  std::string pod{};
  std::string container{};
};

// GetPodResourcesRequest; ListPodResourcesRequest has no fields.
std::string GetPodResourcesRequest(const PodContainer& container);

// One hint for each kind of the container's devices with known nodes, in the order of the answer,
// at most kMaxHints (hint_finder.h): "pod-resources podresourceapi:vendor.com/gpu", with the nodes
// of all devices of that kind, as far as they are in `nodes`. `answer` is the answer of Get or of
// List. InvalidArgument: it is not protobuf.
StatusOr<std::vector<LocalityHint>> ReadPodDevices(std::string_view answer,
                                                   const PodContainer& container,
                                                   const NodeSet& nodes);

// The kubelet's socket, and the limits of a question.
struct PodResourcesServer {
  std::string socket{};
  NodeSet nodes{};                         // the machine's nodes; others are ignored
  std::chrono::milliseconds timeout{200};  // for all calls of one question
  size_t max_answer = size_t{16} << 20;    // bytes, as other clients of this API take
};

// Asks the kubelet's pod-resources where the devices of new containers are, off the loop. A failure
// is logged once until the kubelet answers again, and the container is placed without these hints.
// After a call without an answer the kubelet is not asked for a while, so that a kubelet that hangs
// does not delay each creation; too many questions at once have no such effect. Loop's thread only.
class PodResources final : public DeviceHints {
 public:
  struct Options {
    EventLoop& loop;
    PodResourcesServer server;               // an empty socket is never asked, and causes a problem
    std::chrono::milliseconds pause{5'000};  // after a late answer
    std::chrono::milliseconds look_again{30'000};  // between questions after a failure
  };

  // The loop must outlive it.
  explicit PodResources(Options options);

  // Sets whether the active policy needs hints from the kubelet. If so the kubelet is asked at
  // once, and again after a failure, so that an administrator learns of a failure before a
  // container lacks hints.
  void SetWanted(bool wanted);
  std::unique_ptr<HintFinder::Question> Ask(const Pod& pod, const std::string& container,
                                            std::function<void(HintFinder::Hints)> answer) override;

  // At most one problem, while the kubelet does not answer and hints are needed.
  std::vector<Problem> problems() const;

 private:
  // `trial`: the question is not about a real container, and only tests whether the kubelet
  // answers.
  std::unique_ptr<HintFinder::Question> AskFor(PodContainer container, bool trial,
                                               std::function<void(HintFinder::Hints)> answer);
  void Try();
  void Note(const Status& status, bool trial);

  const Options options_;
  HintFinder finder_;
  bool wanted_ = false;
  std::optional<Problem> problem_;
  bool wrong_answer_ = false;  // the kubelet answers, but wrongly
  EventLoop::Clock::time_point paused_until_{};
  std::unique_ptr<HintFinder::Question> trial_;
  EventLoop::HandlePtr again_;
  Lifetime lifetime_;
};

}  // namespace resmgr
