// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/base/string_map.h"
#include "pkg/classes/class_choice.h"
#include "pkg/classes/host_files.h"
#include "pkg/classes/isolation_wish.h"
#include "pkg/classes/memory_wish.h"
#include "pkg/kube/qos.h"
#include "pkg/policy/policy.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The classes of one container, of all kinds. A value type.
struct ChosenClasses {
  IsolationWish isolation{};
  MemoryWish memory{};
  // The choice for each kind ("rdt", "blockio", "cpu", "scheduling"); a kind without a class has no
  // entry.
  std::map<std::string, ClassChoice, std::less<>> by_name{};
  // Classes of isolation and memory that the pod asks for, if the configuration refuses classes
  // that the machine lacks.
  std::vector<AskedClass> asked{};
  std::string note{};  // annotations that have no effect, with the reason; usually empty

  bool any() const {
    return isolation.any() || !memory.files.empty() || memory.policy || !by_name.empty();
  }
  void AddNote(std::string_view text) {
    if (!text.empty()) note.append(note.empty() ? "" : "; ").append(text);
  }
  // nullptr: no class of this kind.
  const ClassChoice* Find(std::string_view kind) const {
    const auto found = by_name.find(kind);
    return found == by_name.end() ? nullptr : &found->second;
  }
  friend bool operator==(const ChosenClasses&, const ChosenClasses&) = default;
};

// A container that has classes. A value type.
struct ClassSubject {
  std::string container{};  // "namespace/pod/container"
  std::string id{};         // empty while it is being created
  std::string pod_uid{};
  std::string cgroup_parent{};  // the cgroup of its pod
  // The container's cgroup on cgroup v2, as a path of HostFiles; empty until the worker finds it.
  std::string cgroup{};
  std::string cgroup_v1{};  // its path in the hierarchy of the controller cpuset of cgroup v1
  QosClass qos = QosClass::kBestEffort;
  bool running = false;       // it was started and has not exited
  CpuSet cpus{};              // the CPUs that it has for itself
  bool shares = false;        // it may use other CPUs as well
  bool quota_lifted = false;  // the policy has removed its CPU quota
  std::string pool{};         // the pool that the policy chose
  int64_t cpu_quota = 0;      // in force, in microseconds per period; 0 and less: none
  int64_t cpu_period = 0;     // microseconds; 0: the default
  // The quota of a pending update, if that is lower than the one in force; 0: none.
  int64_t coming_quota = 0;
  int64_t memory_limit = 0;  // bytes; 0: none
  ChosenClasses chosen{};
  // The memory policy with which the container was created (PolicyText), "": without one; nullopt:
  // this process did not see the creation.
  std::optional<std::string> memory_policy{};
  // The files of cgroup v2 that the kubelet itself asked for at the creation; nullopt: they are not
  // known.
  std::optional<StringMap> requested_memory{};

  friend bool operator==(const ClassSubject&, const ClassSubject&) = default;
};

// Whether the container has no cgroup yet but will get one: containerd makes it at the start.
inline bool AwaitsCgroup(const ClassSubject& subject, std::string_view cgroup) {
  return subject.id.empty() || (cgroup.empty() && !subject.running);
}

// CPUs of the policy with classes of their own, with or without containers. A value type.
struct ClassPool {
  std::string name{};
  CpuSet cpus{};
  ClassNames classes{};

  friend bool operator==(const ClassPool&, const ClassPool&) = default;
};

// One class of one container, or of the configuration, and its outcome.
struct ClassPart {
  static constexpr size_t kNoSubject = static_cast<size_t>(-1);

  size_t subject = kNoSubject;       // kNoSubject: a part of the configuration, for any container
  std::string_view kind{};           // "interrupts", "rdt", ...: a constant of the program
  std::string name{};                // "isolate", "10us", "gold"
  std::string source{};              // as ClassChoice::source
  std::string_view way{};            // "by CPU", "at creation", "before start", "after start"
  std::vector<std::string> paths{};  // the files whose values it needs
  Status possible{};                 // not OK: why it cannot be applied; nothing is written then
  std::string note{};                // an effect that the class lacks although it is active
  std::string in_force{};            // the effect, if it is not a value of a file
};

// The values that the host's files are to have, and the parts that the containers need.
struct ClassPlan {
  std::vector<HostValue> values{};  // each path once, in the order in which they are written
  std::vector<ClassPart> parts{};
  // Names of the interrupts, by the paths of their values: "24 (eth0-rx-0)".
  std::map<std::string, std::string, std::less<>> interrupts{};
  std::set<std::string, std::less<>> paths{};  // the paths of `values`
  AbsentKinds absent{};  // kinds that the machine lacks, if the configuration refuses such classes

  // Adds a value. If a path has two values, the first one counts.
  void Add(HostValue value) {
    if (paths.insert(value.path).second) values.push_back(std::move(value));
  }
};

}  // namespace resmgr
