// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "pkg/node/policy_host.h"
#include "pkg/resmgr/observer.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Tells which CPUs are allocated, as JSON (node_cpus.h), "" under the null policy: at once when
// another configuration is in force, and otherwise a period after a change, with all that has
// changed by then. Nothing is told before the runtime has listed what it has: a daemon that starts
// knows of no container. Loop's thread only.
class CpusWatch final : public Observer {
 public:
  using Tell = std::function<void(std::string cpus)>;

  // All must outlive this object. `tell` may get the same text again.
  CpusWatch(EventLoop& loop, const Machine& machine, Tell tell,
            std::chrono::milliseconds period = std::chrono::seconds(5))
      : loop_(loop), machine_(machine), tell_(std::move(tell)), period_(period) {}

  // From now on the brain is looked at. It must live as long.
  void Follow(PolicyHost& host) { host_ = &host; }
  // Another configuration is in force, or the first one.
  void NoteConfiguration() { Look(); }

  void OnPlaced(const Act&) override { Note(); }
  void OnUpdated(const Act&) override { Note(); }
  void OnMoved(const Act&, const Shift&) override { Note(); }
  void OnReleased(const Act&) override { Note(); }
  void OnAdopted(std::span<const Act>) override { Note(); }
  void OnFoundEnded(std::span<const Act>) override { Note(); }

 private:
  void Note();
  void Look();

  EventLoop& loop_;
  const Machine& machine_;
  const Tell tell_;
  const std::chrono::milliseconds period_;
  PolicyHost* host_ = nullptr;
  EventLoop::HandlePtr timer_;  // when it is looked at next
};

}  // namespace resmgr
