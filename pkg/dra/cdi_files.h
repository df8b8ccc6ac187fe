// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/claims/claim.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr::dra {

// The file of a claim, and when it was written: when the claim was prepared, since a file that is
// right stays as it is.
struct CdiFile {
  std::string path{};
  std::chrono::system_clock::time_point written{};
};
// Finds it, of either kind, the newer one of two. NotFound: there is none. Blocks.
StatusOr<CdiFile> FindCdiFile(const std::string& directory, std::string_view uid);

// Keeps the CDI files of claims in one directory, away from the loop and one after the other, so
// that the last order for a claim is the one that stays. Files of others are never touched. Loop's
// thread only.
class CdiFiles {
 public:
  struct Options {
    EventLoop& loop;
    std::string directory{};  // made when it is missing
    // A disk that takes longer is not waited for; its work may still be done.
    std::chrono::milliseconds deadline{10'000};
  };
  // OK: it is done, also after a power failure. kDeadlineExceeded: it may be done later.
  // kResourceExhausted: too much waits. Never runs within the call; not after this object's end.
  using Done = std::function<void(Status)>;

  // Orders that wait, at most.
  static constexpr size_t kMostWaiting = 1024;

  explicit CdiFiles(Options options);

  // The file of a claim, with these CPUs. One that has them stays as it is.
  void Write(std::string_view kind, const std::string& uid, const CpuSet& cpus, Done done);
  // Removes the files of a claim; none is a success.
  void Remove(const std::string& uid, Done done);
  // Whether `held` are all claims there are: of those that a lost state held, files stay.
  enum class Others { kRemove, kKeep };
  // Removes the files of claims that are not held, and writes what held ones lack, or what names
  // other CPUs than they hold. A file of the other kind stays: the kubelet names it when it
  // restarts a container.
  void Reconcile(std::string_view kind, std::vector<ClaimGrant> held, Others others, Done done);

 private:
  struct Order {
    std::function<Status()> work{};  // runs on another thread
    Done done{};
    EventLoop::HandlePtr deadline{};
  };

  void Add(std::function<Status()> work, Done done);
  void Begin();
  void Ended(const Status& status);
  void Late(std::list<Order>::iterator order);

  const Options options_;
  std::list<Order> orders_;  // the first one is under way
  bool under_way_ = false;
  OffLoop off_loop_;
};

}  // namespace resmgr::dra
