// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/classes/isolation_wish.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// A container with CPUs of its own that are to be kept free of something. A value.
struct IsolationSubject {
  std::string container{};  // "namespace/pod/container"
  std::string id{};         // empty while it is being created
  std::string pod_uid{};
  std::string cgroup_parent{};  // of its pod
  // Its own one on cgroup v2, from the root of the host; found by the worker, empty until then.
  std::string cgroup{};
  CpuSet cpus{};              // its own
  bool shares = false;        // it may use other CPUs as well
  bool quota_lifted = false;  // its own one, by the policy
  IsolationWish wish{};

  friend bool operator==(const IsolationSubject&, const IsolationSubject&) = default;
};

// One thing that a CPU is kept free of, for one container.
struct IsolationPart {
  static constexpr size_t kNoSubject = static_cast<size_t>(-1);

  size_t subject = kNoSubject;       // kNoSubject: what the configuration names, for any container
  std::string_view kind{};           // "interrupts", "workqueues", "quota", "partition", ...
  std::string name{};                // "isolate", "lift", "10us", "performance"
  std::string_view way{};            // "by CPU", "after creation"
  std::vector<std::string> paths{};  // of the values that it needs
  Status possible{};                 // why not; nothing is written then
};

struct IsolationPlan {
  std::vector<HostValue> values{};  // each path once
  std::vector<IsolationPart> parts{};
  // Names of the interrupts, by the paths of their values: "24 (eth0-rx-0)".
  std::map<std::string, std::string, std::less<>> interrupts{};
};

// Decides what files of the host are to have for these containers. Reads the host's files
// with what they had before our first write, so that the same containers give the same values
// again. May block.
IsolationPlan PlanIsolation(const std::vector<IsolationSubject>& subjects,
                            const ClassesConfig& config, HostKeeper& host);

}  // namespace resmgr
