// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/kubelet/ask_pod_resources.h"
#include "pkg/model/problem.h"
#include "pkg/pipeline/device_hints.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Asks the kubelet's pod-resources where the devices of new containers are, off the loop. A failure
// is logged once until the kubelet answers again, and the container is placed without these hints.
// After an answer that came too late nothing is asked for a while, so that a kubelet that hangs
// does not delay each creation. Loop's thread only.
class PodResources final : public DeviceHints {
 public:
  struct Options {
    EventLoop& loop;
    PodResourcesServer server;                     // an empty socket: not asked, which is a problem
    std::chrono::milliseconds pause{5'000};        // after a late answer
    std::chrono::milliseconds look_again{30'000};  // between questions after a failure
  };

  // The loop must outlive it.
  explicit PodResources(Options options);

  // Whether the active policy needs hints from the kubelet. If so the kubelet is asked at once, and
  // again after a failure, so that an administrator learns of it before a container does.
  void SetWanted(bool wanted);
  std::unique_ptr<HintFinder::Question> Ask(const Pod& pod, const std::string& container,
                                            std::function<void(HintFinder::Hints)> answer) override;

  // At most one problem, while the kubelet does not answer and hints are needed.
  std::vector<Problem> problems() const;

 private:
  // `trial`: the question is about no container and only tests whether the kubelet answers.
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
