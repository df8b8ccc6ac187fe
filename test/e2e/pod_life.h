// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <string>

#include "pkg/base/status.h"
#include "test/e2e/node.h"

namespace resmgr::test {

// One pod after the other, each created, started, resized, stopped and removed as a kubelet does
// it, through a relay that may die in the middle of any call. Thread-compatible; each of several on
// one node may have a thread of its own.
class PodLife {
 public:
  enum class Stage { kAbsent, kPod, kCreated, kRunning, kStopped, kEmptyPod };

  PodLife(Node& node, std::string name, uint64_t seed)
      : node_(node), name_(std::move(name)), random_(seed) {}

  // Goes on until `dying`, and returns the error of the call that failed before that.
  Status Live(const std::atomic<bool>& dying);

  // After the relay died: asks the runtime for the outcome of the call under way.
  Status LookWhatBecameOfIt();
  // With a new relay: sends the resize again whose outcome was not known.
  Status FinishResize();
  // Called when every container is at its right place, so that the watch may judge the container.
  void Settled();
  // Removes the pod's containers and sandbox.
  Status End();

  Stage stage() const { return stage_; }
  const RunningPod& pod() const { return pod_; }
  bool HasContainer() const { return stage_ == Stage::kCreated || stage_ == Stage::kRunning; }
  // A resize was sent, and it is unknown whether it took effect.
  bool unclear() const { return unclear_; }
  // The number of pods begun. May be called while the life runs on another thread.
  int pods() const { return count_; }
  // The number of calls that succeeded.
  int calls() const { return calls_; }

 private:
  Status Step();
  Status CreatePod();
  Status CreateContainer();
  Status StartOrGiveUp();
  Status ResizeOrStop();
  Status Pause();
  Status RemoveContainer();
  Status RemovePod();
  void Watch();
  bool Chance(unsigned percent) { return random_() % 100 < percent; }

  Node& node_;
  const std::string name_;
  std::mt19937_64 random_;
  std::atomic<int> count_ = 0;
  int calls_ = 0;
  Stage stage_ = Stage::kAbsent;
  RunningPod pod_;
  Workload wanted_;  // the workload of the resize under way
  bool unclear_ = false;
  // It became exclusive by a resize, which does not wait: others may still have to leave.
  bool grown_ = false;
};

}  // namespace resmgr::test
