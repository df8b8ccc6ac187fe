// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "pkg/classes/host_classes.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/resmgr/observers.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::bench {

// The module of classes in a daemon: it is not there, is there without classes, or gives each
// container classes of memory, block I/O, scheduling and caches.
enum class ClassesMode { kWithout, kOff, kOn };

// The outcome of some creations.
struct Creations {
  std::chrono::nanoseconds cpu{0};  // of the loop's thread, for one creation
  int waited = 0;                   // whose answer did not come at once
  int held_starts = 0;              // starts that waited for the worker
  std::chrono::nanoseconds longest_start{0};
};

// A brain with the static policy that holds containers on shared CPUs, and a pipeline. The host's
// files are a tree in memory.
class ClassedNode {
 public:
  ClassedNode(ClassesMode mode, int containers);

  // Creates so many containers, a multiple of 20, and starts and removes them 20 at a time.
  Creations Create(int count);

 private:
  struct Running {
    PodSandboxId pod;
    ContainerId id;
  };

  static ResourceManager::Options Observed(Observer& observer);
  void PutTree();
  void Put(const std::string& path, std::string_view text) const;
  void PutCgroup(const ContainerId& id) const;
  // With the classes that its pod chooses, or without any.
  Running CreateOne(bool chooses, Creations& creations);
  void Start(const ContainerId& id, Creations& creations);
  void Remove(const Running& running);

  const ClassesMode mode_;
  const TempDir directory_;
  Observers observers_;
  test::TestNode node_;
  LoopClock clock_;
  Pipeline pipeline_;
  std::unique_ptr<HostClasses> classes_;
  int last_ = 0;
};

}  // namespace resmgr::bench
