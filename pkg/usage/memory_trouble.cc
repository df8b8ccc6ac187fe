// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/memory_trouble.h"

#include <fmt/format.h>

#include "pkg/base/amount_text.h"

namespace resmgr {
namespace {

constexpr std::chrono::minutes kMinute{1};

std::string AmountText(uint64_t bytes) {
  return BytesText(static_cast<int64_t>(bytes));
}

// "300 MiB (200 MiB on node 0, 100 MiB on node 1)"
std::string MemoryText(const ContainerFigures& container) {
  if (!container.memory_bytes) return "an amount that is not known";
  std::string where;
  for (const auto& [node, bytes] : container.memory_by_node) {
    if (bytes == 0) continue;
    where += fmt::format("{}{} on node {}", where.empty() ? "" : ", ", BytesText(bytes), node);
  }
  const std::string all = AmountText(*container.memory_bytes);
  return where.empty() ? all : fmt::format("{} ({})", all, where);
}

// Cgroup v1 does not report which limit was the cause; there the container's own limit counts if it
// has one.
bool OwnLimitReached(const ContainerFigures& container) {
  if (!container.memory_limit) return false;
  return !container.oom_events || *container.oom_events > 0;
}

// Names other causes: a limit of a cgroup above, or no memory left on the nodes that the container
// may use.
std::string CauseBeyondIt(const ContainerFigures& container) {
  const std::string own = container.memory_limit ? fmt::format("not by its limit of {} but by",
                                                               AmountText(*container.memory_limit))
                                                 : "by";
  const NodeSet& mems = container.subject.mems;
  const std::string memory =
      mems.empty() ? "the memory of the machine"
                   : fmt::format("the memory of its {} {}", mems.size() == 1 ? "node" : "nodes",
                                 mems.ToString());
  return fmt::format("{} the limit of its pod or {}", own, memory);
}

}  // namespace

void KillsOfAnHour::Add(std::chrono::steady_clock::time_point at, uint64_t count) {
  if (minutes_.empty() || at - minutes_.back().begin >= kMinute) minutes_.push_back({.begin = at});
  minutes_.back().count += count;
}

uint64_t KillsOfAnHour::Count(std::chrono::steady_clock::time_point now) {
  while (!minutes_.empty() && now - minutes_.front().begin >= kHour)
    minutes_.pop_front();
  uint64_t count = 0;
  for (const Minute& minute : minutes_)
    count += minute.count;
  return count;
}

std::string KillsText(const std::string& name, uint64_t kills) {
  return fmt::format("{} process{} of {} {} killed for want of memory in the last hour", kills,
                     kills == 1 ? "" : "es", name, kills == 1 ? "was" : "were");
}

Problem KilledForMemory(const ContainerFigures& container) {
  const UsageSubject& subject = container.subject;
  Problem problem{.kind = "out-of-memory", .objects = {subject.FullName()}};
  if (OwnLimitReached(container)) {
    problem.message = fmt::format("by its limit of {}; afterwards it had {}",
                                  AmountText(*container.memory_limit), MemoryText(container));
    problem.next = fmt::format("kubectl -n {} patch pod {} --subresource resize with more memory",
                               subject.namespace_name, subject.pod);
  } else {
    problem.message =
        fmt::format("{}; afterwards it had {}", CauseBeyondIt(container), MemoryText(container));
    problem.next = "cri-resmgr-ctl top nodes";
  }
  return problem;
}

Problem KilledWithContainer(const std::string& pod) {
  const size_t slash = pod.find('/');
  return {.kind = "out-of-memory",
          .message = "with containers that have ended",
          .objects = {pod},
          .next = fmt::format("kubectl -n {} describe pod {}", pod.substr(0, slash),
                              slash == std::string::npos ? "" : pod.substr(slash + 1))};
}

Problem ReachesMemoryHigh(const ContainerFigures& container, double times_a_minute) {
  const std::string name = container.subject.FullName();
  Problem problem{.kind = "memory-high", .objects = {name}};
  problem.message = fmt::format(
      "{} reaches memory.high{} {:.0f} times a minute, and the kernel slows it down: it has {}",
      name, container.memory_high ? fmt::format(" ({})", AmountText(*container.memory_high)) : "",
      times_a_minute, MemoryText(container));
  if (container.memory_limit)
    problem.message += fmt::format(", its limit is {}", AmountText(*container.memory_limit));
  if (container.memory_pressure)
    problem.message += fmt::format("; some task of it waits for memory in {:.0f} % of the time",
                                   container.memory_pressure->some60);
  problem.next = fmt::format(
      "cri-resmgr-ctl explain {} tells its class of memory, which sets memory.high; without one, "
      "the kubelet's MemoryQoS does",
      name);
  return problem;
}

}  // namespace resmgr
