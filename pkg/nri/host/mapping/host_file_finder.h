// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/nri/host/mapping/host_files.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr::nri {

// Looks up files of the node for adjustments, on threads of its own: /dev and the disk with the
// seccomp profiles may hang. A hanging thread is abandoned and counts against the limit until it
// returns. Loop's thread only.
class HostFileFinder {
 public:
  using Find =
      std::function<StatusOr<FoundFiles>(const HostFiles& files, const std::string& profile_path)>;
  struct Options {
    // Directory of the seccomp profiles, created when the first is written. Only the daemon's user
    // may write there.
    std::string profile_directory;
    std::chrono::milliseconds deadline{2'000};
    size_t most_at_once = 8;
    Find find = FindHostFiles;  // called on the threads; may outlive the finder
  };
  using Done = std::function<void(StatusOr<FoundFiles>)>;

  // The loop outlives it.
  HostFileFinder(EventLoop& loop, Options options);
  HostFileFinder(const HostFileFinder&) = delete;
  HostFileFinder& operator=(const HostFileFinder&) = delete;

  // Removes profiles that former finders have left, for example of a killed daemon.
  void RemoveLeft();

  // `container` names the profile: the id that plugins know, which has letters and digits only.
  // `done` runs later, once, unless the finder ends before. kDeadlineExceeded: no result in time.
  // kUnavailable: too many requests are under way.
  void Ask(HostFiles files, std::string_view container, Done done);
  // Removes the profile: the runtime has read it while creating the container, or never will.
  void Forget(const FoundFiles& found);

 private:
  struct Question {
    Done done;
    EventLoop::HandlePtr deadline{};
  };

  void Answer(uint64_t number, StatusOr<FoundFiles> found);
  // Remove the profiles in forgotten_ on a free thread, now or in the next turn of the loop. If no
  // thread is free, they wait for the next answer.
  void RemoveForgotten();
  void RemoveForgottenSoon();
  // nullptr: all threads are busy.
  OffLoop* FreeThread();

  EventLoop& loop_;
  const Options options_;
  // Prefix of the profiles' names, different for each finder.
  const std::string prefix_;
  std::vector<std::unique_ptr<OffLoop>> threads_;
  std::map<uint64_t, Question> questions_;
  uint64_t last_ = 0;
  std::vector<std::string> forgotten_;  // profiles that are not removed yet
  EventLoop::HandlePtr soon_;
};

}  // namespace resmgr::nri
