// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/model/problem.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// The policy of the kubelet's CPU manager in its state file; "" if the text is not such a file.
std::string CpuManagerPolicyOf(std::string_view text);

// Reads the state file of the kubelet's CPU manager now and then, off the loop, to find out whether
// the manager is on: it would place the same containers as this daemon. A node without that file
// has no such problem. Loop's thread only.
class KubeletWatch {
 public:
  static constexpr std::string_view kStateFile = "/var/lib/kubelet/cpu_manager_state";

  struct Options {
    EventLoop& loop;
    std::string file{kStateFile};
    std::chrono::milliseconds period = std::chrono::minutes(1);
  };
  // The loop must outlive it.
  explicit KubeletWatch(Options options);
  KubeletWatch(const KubeletWatch&) = delete;
  KubeletWatch& operator=(const KubeletWatch&) = delete;

  std::vector<Problem> problems() const;

 private:
  void Look();
  void Take(std::string policy);

  const Options options_;
  OffLoop off_loop_;
  std::string policy_;  // "": not known
  std::chrono::system_clock::time_point since_{};
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
