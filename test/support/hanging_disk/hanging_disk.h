// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "pkg/sys/unique_fd.h"
#include "test/support/hanging_disk/memory_files.h"

namespace resmgr::test {

// A file system (FUSE, in memory) that stops answering on command, as a disk does whose controller
// or network is gone: every system call on it then waits inside the kernel, each write, sync and
// rename included. Seen by the thread that mounts it and by the processes that this thread starts.
//
// Thread-safe. The caller must not touch the mounted directory while the disk hangs.
class HangingDisk {
 public:
  HangingDisk() = default;
  // Lets all calls that wait for it fail.
  ~HangingDisk();
  HangingDisk(const HangingDisk&) = delete;
  HangingDisk& operator=(const HangingDisk&) = delete;

  // False where the kernel or the rights of this process do not allow it. Once.
  bool MountOn(const std::string& directory);

  // From now on no new call returns; calls under way may.
  void Hang();
  // The calls that wait go on.
  void Answer();
  // Waits until a call hangs; false if none does in time.
  bool WaitForCall(std::chrono::milliseconds timeout);

  // A file's content, past the kernel: also while the disk hangs. The path is relative.
  std::optional<std::string> Content(const std::string& path);

 private:
  void Serve();
  void Wake();
  bool hangs();

  std::string directory_;
  UniqueFd device_;
  UniqueFd wake_;  // an eventfd
  std::mutex mutex_;
  bool hangs_ = false;
  bool ending_ = false;
  MemoryFiles files_;
  std::thread thread_;
};

}  // namespace resmgr::test
