// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pkg/model/snapshot.h"
#include "pkg/node/policy_host.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/observer.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Reports the allocated CPUs as JSON (ToJson), "" under the null policy. Reports at once when
// another configuration is in force; otherwise one period after a change, for all changes in that
// time. Nothing is reported before the runtime's first list, since a starting daemon knows no
// containers. Loop's thread only.
class CpusWatch final : public Observer {
 public:
  using Tell = std::function<void(std::string cpus)>;

  // All arguments must outlive this object. `tell` may get an unchanged text.
  CpusWatch(EventLoop& loop, const Machine& machine, Tell tell,
            std::chrono::milliseconds period = std::chrono::seconds(5))
      : loop_(loop), machine_(machine), tell_(std::move(tell)), period_(period) {}

  // Observes the host's brain from now on. The host must live as long as this object.
  void Follow(PolicyHost& host) { host_ = &host; }
  // Called when another configuration, or the first one, is in force.
  void NoteConfiguration() { Look(); }

  void OnPlaced(const Act&) override { Note(); }
  void OnUpdated(const Act&) override { Note(); }
  void OnMoved(const Act&, const Shift&) override { Note(); }
  void OnReleased(const Act&) override { Note(); }
  void OnAdopted(std::span<const Act>) override { Note(); }
  void OnFoundEnded(std::span<const Act>) override { Note(); }
  void OnClaims(const HeldClaims&) override { Note(); }

 private:
  void Note();
  void Look();

  EventLoop& loop_;
  const Machine& machine_;
  const Tell tell_;
  const std::chrono::milliseconds period_;
  PolicyHost* host_ = nullptr;
  EventLoop::HandlePtr timer_;  // fires for the next report
};

// The numbers of CPUs of one NUMA node, by use.
struct NumaCpus {
  int node = 0;  // operating-system number
  // CPUs that may be granted exclusively: the policy's CPUs without the reserved ones.
  int allocatable = 0;
  int exclusive = 0;  // exclusive CPUs of containers and claims
  int free = 0;       // allocatable CPUs that are not exclusive

  friend bool operator==(const NumaCpus&, const NumaCpus&) = default;
};

// The CPUs of each NUMA node that has CPUs, ordered by node number. Exited containers have none.
std::vector<NumaCpus> CpusByNumaNode(const Machine& machine, const Policy& policy,
                                     const Snapshot& snapshot);

// The value of a node annotation that docs/annotations.md describes:
// {"version":1,"numa":[{"id":0,"allocatable":15,"exclusive":4,"free":11}]}
std::string ToJson(const std::vector<NumaCpus>& cpus);

}  // namespace resmgr
